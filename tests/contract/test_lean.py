"""The lean driver beside the plain one: where requests go, what they carry, what is left to the plain driver, and XML.

That both answer alike is the rest of the suite's subject; here is what only one of them does by itself.
"""

from __future__ import annotations

import datetime
import io
import ipaddress
import ssl
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from stado_like.errors import StoreUnavailable, UsageError
from stado_like.store import s3, s3_store, wire
from stado_like.store.protocol import Applied, ObjectStore, Rejected, Unknown
from stado_like.store.s3_store import S3Store, addressing_for
from stado_like.store.s3_xml import Malformed, read_error, read_listing, read_versioning
from stado_like.store.url import open_store
from stado_like.store.wire import Place
from tests.contract.conftest import BUCKET
from tests.contract.stepped_ambient import SteppedAmbient
from tests.fault_proxy import FaultProxy, fault_proxy
from tests.servers import Server, free_port


@pytest.fixture(autouse=True)
def fresh_clients() -> Iterator[None]:
    """These tests change what clients are built from."""
    wire.forget_clients()
    yield
    wire.forget_clients()


# ---- where


def _asked_by_plain(bucket: str, endpoint_url: str | None, region: str, addressing: str, key: str) -> str:
    """The URL that boto3 would send to: its request is caught before it leaves."""

    class Caught(Exception):
        """It would be sent now."""

    seen: list[str] = []

    def catch(request: Any, **_: Any) -> None:
        seen.append(request.url)
        raise Caught

    client = s3.PlainConnection(Place("plain", endpoint_url, region, addressing, 1)).client()
    client.meta.events.register_first("before-send.s3", catch)
    with pytest.raises(Caught):
        client.get_object(Bucket=bucket, Key=key)
    return seen[0]


@pytest.mark.parametrize("addressing", ["auto", "path", "virtual"])
@pytest.mark.parametrize(
    ("bucket", "endpoint_url", "region"),
    [
        ("b-1", None, "us-east-1"),
        ("b-1", None, "eu-central-1"),
        ("b-1", None, "us-gov-west-1"),
        ("b-1", None, "cn-north-1"),
        ("my.bucket", None, "eu-west-1"),
        ("Old_Bucket", None, "us-east-1"),
        ("b-1", "http://h:9000", "us-east-1"),
        ("b-1", "http://h:9000/base/", "us-east-1"),
        ("b-1", "https://s3.example.com", "us-east-1"),
        ("b-1", "https://s3.example.com:443", "us-east-1"),
        ("my.bucket", "http://s3.example.com", "us-east-1"),
        ("my.bucket", "https://s3.example.com", "us-east-1"),
        ("b-1", "http://127.0.0.1:9000", "us-east-1"),
        ("b-1", "http://[::1]:9000", "us-east-1"),
    ],
)
def test_requests_go_where_the_plain_driver_sends_them(
    bucket: str, endpoint_url: str | None, region: str, addressing: str
) -> None:
    from stado_like.store.lean import LeanConnection

    style = addressing_for(bucket, endpoint_url, addressing)
    key = "status/a b+c%d~(é)/x=1&y"
    lean = LeanConnection(Place("lean", endpoint_url, region, style, 1))
    target = lean._target(bucket)
    from stado_like.store.lean import _path_and_query

    mine = urlsplit(target.origin + _path_and_query(target.base, "get_object", {"Key": key})[0])
    theirs = urlsplit(_asked_by_plain(bucket, endpoint_url, region, style, key))
    assert (mine.scheme, mine.hostname, mine.path) == (theirs.scheme, theirs.hostname, theirs.path)
    assert (mine.port or {"http": 80, "https": 443}[mine.scheme]) == (
        theirs.port or {"http": 80, "https": 443}[theirs.scheme]
    )


@pytest.mark.parametrize(
    ("environment", "config", "bucket", "region", "names"),
    [
        ({"AWS_USE_FIPS_ENDPOINT": "true"}, "", "b-1", "us-east-1", "use_fips_endpoint"),
        ({}, "use_dualstack_endpoint = true", "b-1", "us-east-1", "use_dualstack_endpoint"),
        ({}, "s3 =\n  use_accelerate_endpoint = true", "b-1", "us-east-1", "sets s3"),
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}, "", "b-1", None, "names an endpoint"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "", "b-1", None, "names an endpoint"),
        ({}, "endpoint_url = http://127.0.0.1:1", "b-1", None, "names an endpoint"),
        ({"HTTPS_PROXY": "http://127.0.0.1:1"}, "", "b-1", "eu-west-1", "a proxy is set for https://b-1.s3.eu-west-1"),
        ({}, "", "b-1", "us-iso-east-1", "the region us-iso-east-1"),
        ({}, "", "b-1--use1-az4--x-s3", "us-east-1", "no ordinary bucket"),
    ],
)
def test_what_it_does_not_know_is_left_to_the_plain_driver(
    environment: dict[str, str],
    config: str,
    bucket: str,
    region: str | None,
    names: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "config").write_text(f"[default]\n{config}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=names) as refused:
        S3Store(bucket, region=region, driver="lean").prepare()
    assert "driver=plain" in refused.value.next_step
    monkeypatch.setattr(s3_store, "DEFAULT_DRIVER", "lean")
    store = S3Store(bucket, region=region)
    store.prepare()
    assert store._wire.driver == "plain"


def test_a_region_that_is_none_is_refused_by_both(driver: str) -> None:
    with pytest.raises(UsageError, match="'a b'"):
        S3Store("b-1", region="a b", driver=driver).prepare()


# ---- what


def test_a_request_carries_no_more_than_it_must(moto_server: Server) -> None:
    with fault_proxy(moto_server.endpoint) as proxy:
        store = open_store(Server(proxy.endpoint, 0).url(BUCKET, "carried", "lean"))
        body = b"x" * 300_000
        assert isinstance(store.put_file("file", io.BytesIO(body)), Applied)
        assert isinstance(store.create("empty", b""), Applied)
        sent, empty = proxy.requests("PUT")
    assert sent.headers["content-length"] == "300000" and empty.headers["content-length"] == "0"
    assert sent.headers["x-amz-content-sha256"] == sha256(body).hexdigest()  # nothing guards it on the way but this
    known = {
        "host", "accept-encoding", "user-agent", "authorization", "x-amz-date", "x-amz-content-sha256",
        "content-length",
    }  # fmt: skip
    assert set(sent.headers) == known
    assert set(empty.headers) == known | {"if-none-match"}
    assert "SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date" in empty.headers["authorization"]


def _certificate(folder: Path) -> Path:
    """A key and a certificate of 127.0.0.1 that signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain_key = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "both.pem").write_bytes(plain_key + made.public_bytes(pem))
    (folder / "ca.pem").write_bytes(made.public_bytes(pem))
    return folder / "both.pem"


def test_over_tls_files_are_not_read_twice_and_strangers_are_not_trusted(
    moto_server: Server, driver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path))
    proxy = FaultProxy(moto_server.endpoint)
    proxy._server.socket = context.wrap_socket(proxy._server.socket, server_side=True)
    proxy.start()
    try:
        url = Server(proxy.endpoint.replace("http:", "https:"), 0).url(BUCKET, f"tls-{driver}", driver)
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
            open_store(url, ambient=SteppedAmbient()).get("x")
        assert proxy.log == []
        wire.forget_clients()
        monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        store = open_store(url)
        assert isinstance(store.create("x", b"1"), Applied)
        assert isinstance(store.create("x", b"2"), Rejected)
        with tempfile.TemporaryFile() as file:
            file.write(b"y" * 200_000)
            assert isinstance(store.put_file("file", file), Applied)
        assert store.get_range("file", 199_990, 100) == b"y" * 10
        hashes = [seen.headers["x-amz-content-sha256"] for seen in proxy.requests("PUT")]
        assert hashes[0] == sha256(b"1").hexdigest()
        if driver == "lean":
            assert hashes[2] == "UNSIGNED-PAYLOAD"
    finally:
        proxy.stop()


def _answering(answer: bytes) -> Iterator[ObjectStore]:
    import socket
    from threading import Thread

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(65536)
                    peer.sendall(answer)

        Thread(target=serve, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        yield S3Store(BUCKET, endpoint_url=endpoint, driver="lean", ambient=SteppedAmbient())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nLast-Modified: yesterday\r\n\r\nhi",
        b"HTTP/1.1 twohundred\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
    ],
)
def test_an_answer_that_is_not_whole_is_no_answer(answer: bytes) -> None:
    for store in _answering(answer):
        with pytest.raises(StoreUnavailable):
            store.get("x")
        with pytest.raises(StoreUnavailable):
            store.list("")


def test_a_file_that_cannot_be_sent_is_unknown() -> None:
    store = S3Store(BUCKET, endpoint_url=f"http://127.0.0.1:{free_port()}", driver="lean")
    assert isinstance(store.put_file("x", io.BytesIO(b"1")), Unknown)


def test_keys_that_expire_are_found_afresh_after_a_fork(
    moto_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims cannot be renewed from a forked child: the lock of the refresh was held by a thread it does not have."""
    until = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=2)).isoformat()
    (tmp_path / "keys").write_text(
        f'{{"Version": 1, "AccessKeyId": "K", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "{until}"}}'
    )
    (tmp_path / "config").write_text(f"[profile role]\ncredential_process = cat {tmp_path / 'keys'}\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "role")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    store = open_store(moto_server.url(BUCKET, "forked", "lean"))
    # At the first request of a role the server loads more: longer than one request has on a loaded machine.
    assert any(isinstance(store.put("x", b"1"), Applied) for _ in range(4))
    (connection,) = wire._connections.values()
    client = connection.client()
    assert client.credentials._refresh_lock.acquire(blocking=False)  # as a thread would, just then
    connection.after_fork()
    assert connection._client is None
    assert isinstance(store.put("x", b"2"), Applied)
    assert connection.client() is not client


# ---- XML

ROW = (
    "<Contents><Key>{key}</Key><LastModified>2026-11-29T21:49:05.000Z</LastModified><ETag>{etag}</ETag>"
    "<Size>5</Size>{more}</Contents>"
)
OWNER = "<Owner><ID>1</ID><DisplayName/></Owner><StorageClass>STANDARD</StorageClass>"


def _page(*rows: str, more: str = "<IsTruncated>false</IsTruncated>", head: str = '<?xml version="1.0"?>\n') -> bytes:
    return f'{head}<ListBucketResult xmlns="http://s3/">{more}{"".join(rows)}</ListBucketResult>\n'.encode()


def test_rows_of_several_shapes_are_all_read() -> None:
    plain = [ROW.format(key=f"a/{number}", etag="&quot;e&quot;", more="") for number in range(50)]
    owned = [ROW.format(key=f"b/{number}", etag='"e"', more=OWNER) for number in range(50)]
    mixed = [row for pair in zip(plain, owned, strict=True) for row in pair]
    for rows in (plain, owned, mixed, [*plain, *owned], [f"\n  {row}" for row in mixed]):
        read, truncated = read_listing(_page(*rows, more="\n<IsTruncated>true</IsTruncated>\n"))
        assert truncated and len(read) == len(rows)
        assert {(row.etag, row.size_bytes, row.last_modified) for row in read} == {('"e"', 5, 1795988945.0)}
        assert {row.key for row in read} == {row.split("<Key>")[1].split("<")[0] for row in rows}
    assert read_listing(_page()) == ((), False)


def test_characters_of_keys_are_decoded_once() -> None:
    keys = {"a&amp;amp;b": "a&amp;b", "&lt;&#65;&#x42;&gt;": "<AB>", "a&amp;quot;": "a&quot;", "é%20+": "é%20+"}
    rows = [ROW.format(key=key, etag="e", more="") for key in keys]
    assert [row.key for row in read_listing(_page(*rows))[0]] == list(keys.values())
    encoded = "<IsTruncated>false</IsTruncated><EncodingType>url</EncodingType>"
    row = ROW.format(key="a%01b+c%2Bd%C3%A9", etag="e", more="")
    assert read_listing(_page(row, more=encoded))[0][0].key == "a\x01b c+dé"


GOOD = ROW.format(key="a", etag="e", more="")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>hello",
        b"<html></html>",
        b"\xff\xfe",
        _page(GOOD)[:-40],
        _page(GOOD, GOOD)[:-60],
        _page(GOOD) + b"<more/>",
        _page(GOOD, more=""),
        _page(GOOD, more="<IsTruncated>maybe</IsTruncated>"),
        _page(GOOD.replace("<Contents>", "<Contents x='1'>")),
        _page(GOOD, GOOD.replace("<Contents>", "<Contents x='1'>"), GOOD),
        _page(GOOD, "loose words", GOOD),
        _page(GOOD, "<Other/>", GOOD),
        _page(GOOD.replace("<Key>a</Key>", "")),
        _page(GOOD.replace("<Key>a</Key>", "<Key>a</Key><Key>b</Key>")),
        _page(GOOD.replace("<Size>5", "<Size>-5")),
        _page(GOOD.replace("<Size>5", "<Size>five")),
        _page(GOOD.replace("2026-11", "2026-13")),
        _page(GOOD.replace("<Key>a", "<Key>&unknown;")),
        _page(GOOD.replace("<Key>a", "<Key>&#1114112;")),
        _page(GOOD.replace("<Key>a", "<Key>a & b")),
        _page(GOOD.replace("<Key>a", "<Key><![CDATA[a]]>")),
        _page(GOOD.replace("</Contents>", "")),
        _page(GOOD, "<!-- words -->"),
        _page(GOOD, head='<!DOCTYPE x [<!ENTITY a "aaaa">]>'),
        b"<a>" * 100_000,
    ],
)
def test_a_listing_that_is_not_understood_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_listing(body)


def test_errors_are_read_where_they_can_be() -> None:
    said = read_error(
        b"<?xml version='1.0'?><Error><Code>A</Code><Message>b &amp; c</Message><Region>r</Region></Error>"
    )
    assert [said.child(name) for name in ("Code", "Message", "Region")] == ["A", "b & c", "r"]
    wrapped = read_error(b"<ErrorResponse><Error><Code>A</Code></Error></ErrorResponse>")
    assert wrapped.child("Code") == "A"
    for body in (b"", b"<html>", b"\xff", b"no", b"<!DOCTYPE html><html></html>"):
        assert read_error(body).child("Code") == ""
    assert read_versioning(b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>") == "Enabled"
    assert read_versioning(b"<VersioningConfiguration/>") == ""
    with pytest.raises(Malformed):
        read_versioning(b"<html></html>")
