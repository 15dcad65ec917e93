"""The one client of a process: threads, forks, credentials that expire, addressing, endpoints that never answer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from stado_like.ambient import REAL
from stado_like.errors import CredentialsRefused, StoreUnavailable, UsageError
from stado_like.store import wire
from stado_like.store.protocol import Applied
from stado_like.store.s3_store import S3Store, addressing_for
from stado_like.store.url import open_store
from tests.contract.conftest import BUCKET, Proxied
from tests.contract.stepped_ambient import SteppedAmbient
from tests.servers import Server, free_port


def test_200_threads_ask_for_a_client_and_get_one(
    moto_server: Server, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random KeyError when threads start: clients were created on the shared default session."""
    import boto3
    import botocore.session

    session, method = {
        "plain": (boto3.session.Session, "client"),
        "lean": (botocore.session.Session, "get_credentials"),
    }[driver]
    wire.forget_clients()
    built: list[object] = []
    build = getattr(session, method)

    def count(self: object, *arguments: object, **more: object) -> object:
        # guard of the test: keys are never handed over, the session's own chain finds and refreshes them
        assert not {"aws_access_key_id", "aws_secret_access_key", "aws_session_token"} & set(more)
        built.append(self)
        return build(self, *arguments, **more)

    monkeypatch.setattr(session, method, count)
    line = Barrier(200)
    url = moto_server.url(BUCKET, REAL.token(), driver)

    def ask(number: int) -> None:
        store = open_store(url)
        assert isinstance(store, S3Store)
        line.wait(30)
        store.prepare()

    with ThreadPoolExecutor(200) as pool:
        list(pool.map(ask, range(200)))
    assert len(built) == 1


FORK = """
import os, sys
from stado_like.store.protocol import Applied
from stado_like.store.url import open_store
store = open_store(sys.argv[1])
def family(name):
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            made = isinstance(store.create(f"{name}.{number}", b"x"), Applied)
            both = [stat is not None for stat in store.heads([f"{name}.{number}", "nowhere"])]
            os._exit(0 if made and both == [True, False] else 1)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
store.prepare()
from stado_like.store import wire
(connection,) = wire._connections.values()
built = connection.client()
def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
def same():
    child = os.fork()
    if child == 0:
        os._exit(0 if connection._client is built else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert same()
unused = family("unused")
store.heads(["a", "b", "c"])
used = family("used")
if "driver=lean" in sys.argv[1]:
    idle = next(iter(built.targets.values())).pool.pool
    sockets = [held.sock.fileno() for held in idle.queue if held is not None and held.sock]
    child = os.fork()
    if child == 0:  # the keys are kept, the sockets are not
        os._exit(0 if connection._client is built and idle.empty() and not any(map(is_open, sockets)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sockets and all(map(is_open, sockets))
assert isinstance(store.create("parent", b"x"), Applied)
print(unused, used)
"""


def test_a_client_survives_a_fork_before_and_after_its_first_request(weed_server: Server, driver: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, weed_server.url(BUCKET, REAL.token(), driver)],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert (ran.stdout, ran.stderr) == ("[0, 0, 0] [0, 0, 0]\n", "")


PROVIDER = """
import datetime, json, pathlib, sys
count = pathlib.Path(sys.argv[1])
n = int(count.read_text()) + 1
count.write_text(str(n))
until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=30)
print(json.dumps({"Version": 1, "AccessKeyId": f"KEY{n}", "SecretAccessKey": "s", "SessionToken": "t",
                  "Expiration": until.isoformat()}))
"""


def test_expiring_credentials_are_fetched_afresh(
    moto_server: Server, driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 22-hour job succeeds, its outputs are lost: temporary role keys were frozen as static keys."""
    from tests.fault_proxy import fault_proxy

    (tmp_path / "provider.py").write_text(PROVIDER)
    (tmp_path / "count").write_text("0")
    command = f"{sys.executable} {tmp_path / 'provider.py'} {tmp_path / 'count'}"
    (tmp_path / "config").write_text(f"[profile role]\ncredential_process = {command}\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_PROFILE", "role")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with fault_proxy(moto_server.endpoint) as proxy:
        store = open_store(Server(proxy.endpoint, 0).url(BUCKET, REAL.token(), driver))
        for number in range(3):
            assert isinstance(store.create(f"end.{number}", b"x"), Applied)
        keys = [seen.headers["authorization"].split("Credential=")[1].split("/")[0] for seen in proxy.log]
        tokens = [seen.headers["x-amz-security-token"] for seen in proxy.log]
    assert len(set(keys)) == 3 and all(key.startswith("KEY") for key in keys)
    assert tokens == ["t"] * 3


def test_no_credentials_are_refused_with_a_next_step(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    store = open_store(f"s3://{BUCKET}/p?endpoint_url=http://127.0.0.1:{free_port()}&driver={driver}")
    for ask in (lambda: store.get("x"), lambda: store.create("x", b"1")):
        with pytest.raises(CredentialsRefused, match=f"no usable credentials for bucket {BUCKET}"):
            ask()


def test_a_profile_that_does_not_exist_is_refused(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(CredentialsRefused, match="nobody"):
        open_store(f"s3://{BUCKET}/p?endpoint_url=http://127.0.0.1:{free_port()}&driver={driver}").get("x")


def test_wrong_keys_are_refused(weed_server: Server, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.forget_clients()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store = open_store(weed_server.url(BUCKET, "p", driver))
    with pytest.raises(CredentialsRefused, match="HTTP 403"):
        store.get("x")
    wire.forget_clients()


def test_an_endpoint_that_never_answers_gives_its_error_within_ten_seconds(driver: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)  # connections are made by the kernel, and nobody answers
        url = f"s3://{BUCKET}/p?endpoint_url=http://127.0.0.1:{silent.getsockname()[1]}&driver={driver}"
        store = open_store(url)
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match=f"bucket {BUCKET} at http://127.0.0.1"):
            store.get("x")
        assert time.monotonic() - started < 10


def test_a_closed_port_is_unavailable_for_reads_and_unknown_for_writes(driver: str) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    ambient = SteppedAmbient()
    store = open_store(f"s3://{BUCKET}/p?endpoint_url={endpoint}&driver={driver}", ambient=ambient)
    for ask in (lambda: store.get("x"), lambda: store.list(""), lambda: store.heads(["x", "y"]), store.now):
        with pytest.raises(StoreUnavailable, match=endpoint):
            ask()
    answer = store.create("x", b"1")
    assert type(answer).__name__ == "Unknown"
    with pytest.raises(StoreUnavailable, match="no-such-host"):
        nowhere = f"s3://{BUCKET}/p?endpoint_url=http://no-such-host.invalid:9000&driver={driver}"
        open_store(nowhere, ambient=ambient).get("x")


def test_an_endpoint_that_is_no_s3_server_is_not_taken_for_an_empty_store(driver: str) -> None:
    from threading import Thread

    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            for _ in range(40):
                try:
                    peer, _address = server.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(65536)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 11\r\n\r\n<html>hello")
                    peer.shutdown(socket.SHUT_WR)

        Thread(target=babble, daemon=True).start()
        url = f"s3://{BUCKET}/p?endpoint_url=http://127.0.0.1:{server.getsockname()[1]}&driver={driver}"
        with pytest.raises(StoreUnavailable):
            open_store(url, ambient=SteppedAmbient()).list("")


@pytest.mark.parametrize(
    ("bucket", "endpoint", "asked", "style"),
    [
        ("b-1", "http://h:9000", "auto", "path"),
        ("b-1", "http://127.0.0.1", "auto", "path"),
        ("b-1", "http://[::1]", "auto", "path"),
        ("b-1", "http://localhost", "auto", "path"),
        ("my.bucket", None, "auto", "path"),
        ("my.bucket", "https://s3.example.com", "auto", "path"),
        ("b-1", "https://s3.example.com", "auto", "auto"),
        ("b-1", None, "auto", "auto"),
        ("b-1", "http://h:9000", "virtual", "virtual"),
        ("b-1", None, "path", "path"),
    ],
)
def test_addressing_fits_the_endpoint(bucket: str, endpoint: str | None, asked: str, style: str) -> None:
    """Name resolution fails for `bucket.host`: virtual-host addressing against a local server."""
    assert addressing_for(bucket, endpoint, asked) == style


def test_checksums_stay_out_of_the_body(proxied: Proxied) -> None:
    """Upload corrupt: the checksum trailer lands inside the body of a store without trailers."""
    store = proxied.open()
    store.create("x", b"12345")
    sent = proxied.proxy.requests("PUT")[-1].headers
    assert not [name for name in sent if "checksum" in name or "trailer" in name]
    assert sent["content-length"] == "5"
    assert "aws-chunked" not in sent.get("content-encoding", "")
    assert "expect" not in sent


def test_importing_the_url_imports_no_sdk() -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, json; from stado_like.store.url import open_store; open_store('memory://x');"
            "heavy = ('boto3', 'botocore', 'urllib3', 'filelock', 'pydantic');"
            "print(json.dumps([name for name in heavy if name in sys.modules]))",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    assert json.loads(ran.stdout) == []


def test_a_bad_bucket_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        open_store("s3://bad_bucket!/p")
