"""Real servers for tests and benchmarks, on loopback and free ports, ended by pid.

SeaweedFS is the real S3 server of the suite; moto's server is quicker and checks no credentials; rclone's gateway
ignores the condition of a create, and is here to be refused. Each is a context manager that yields its endpoint.
They die with the thread that started them (Linux), so a killed test run leaves nothing behind.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

ACCESS_KEY = "testkey123"
SECRET_KEY = "testsecret123"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_DEFAULT_REGION": "us-east-1"}
READY_S = 30.0
WEED_PORTS = 5  # SeaweedFS takes so many in a row, and each of them plus 10,000


@dataclass(frozen=True)
class Server:
    """A running S3 server. `pid` is this process's own for moto."""

    endpoint: str
    pid: int

    def url(self, bucket: str, prefix: str = "", driver: str = "") -> str:
        chosen = f"&driver={driver}" if driver else ""
        return f"s3://{bucket}/{prefix}".rstrip("/") + f"?endpoint_url={self.endpoint}{chosen}"

    def client(self) -> Any:
        """A plain client, for looking behind the store's back."""
        import boto3
        from botocore.config import Config

        return boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"),
        )

    def make_bucket(self, bucket: str) -> None:
        self.client().create_bucket(Bucket=bucket)


def program(name: str) -> str:
    """The program beside this interpreter, or on PATH. Raises when there is none."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} is not installed: install the test dependencies (pip install -e '.[test]')")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def free_ports_in_a_row() -> int:
    """The first of five free ports whose neighbours 10,000 above are free too, below the ephemeral range."""
    for first in range(20_000 + (os.getpid() % 900) * 10, 30_000, 10):
        taken = []
        try:
            for port in range(first, first + WEED_PORTS):
                for one in (port, port + 10_000):
                    listener = socket.socket()
                    taken.append(listener)
                    listener.bind(("127.0.0.1", one))
        except OSError:
            continue
        finally:
            for listener in taken:
                listener.close()
        return first
    raise RuntimeError("no five free ports in a row between 20,000 and 30,000")


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


@contextmanager
def _process(command: list[str], log: Path, endpoint: str, env: dict[str, str]) -> Iterator[int]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **env},
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one call of prctl, no lock is taken
        )
    try:
        _wait_ready(process, endpoint, log)
        yield process.pid
    finally:
        process.send_signal(signal.SIGCONT)  # a test may have stopped it
        process.terminate()
        try:
            process.wait(4)  # SeaweedFS needs 3.3 s, more with open connections; its data is thrown away
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(process: subprocess.Popen[bytes], endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    seen = "nothing"
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}: {log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(endpoint, timeout=2).close()
            return
        except urllib.error.HTTPError as answered:
            if answered.code != 503:
                return
            seen = "503"
        except OSError as silent:
            seen = str(silent)
        time.sleep(0.05)
    raise RuntimeError(f"{endpoint} did not answer within {READY_S:g} s ({seen}): {log.read_text()[-2000:]}")


@contextmanager
def seaweedfs(folder: Path) -> Iterator[Server]:
    """SeaweedFS with its data below `folder`, its log beside it. About 0.7 s to start, 3.3 s to end."""
    folder.mkdir(parents=True, exist_ok=True)
    first = free_ports_in_a_row()
    endpoint = f"http://127.0.0.1:{first}"
    command = [
        program("weed"),
        "-logtostderr=true",
        "mini",
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.port={first}",
        f"-master.port={first + 1}",
        f"-volume.port={first + 2}",
        f"-filer.port={first + 3}",
        f"-admin.port={first + 4}",
        "-webdav=false",
        "-admin.ui=false",
        "-master.telemetry=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.autoCreateBucket=false",
    ]
    env = {**CREDENTIALS, "GOMEMLIMIT": "512MiB", "HOME": str(folder)}
    with _process(command, folder.parent / f"{folder.name}.log", endpoint, env) as pid:
        yield Server(endpoint, pid)


@contextmanager
def moto() -> Iterator[Server]:
    """moto's server in threads of this process. It looks at a condition and then writes, without a lock, so two writers
    can win when a thread is interrupted in between; real servers have the lock that is put around it here."""
    import logging

    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    put, lock = S3Response.put_object, threading.Lock()

    def put_alone(self: Any) -> Any:
        with lock:
            return put(self)

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = free_port()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    with patch.object(S3Response, "put_object", put_alone):
        server.start()
        try:
            yield Server(f"http://127.0.0.1:{port}", os.getpid())
        finally:
            server.stop()


@contextmanager
def rclone_gateway(folder: Path) -> Iterator[Server]:
    """`rclone serve s3` on a directory: answers 200 to every create."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    command = [
        program("rclone"),
        "serve",
        "s3",
        "--addr",
        f"127.0.0.1:{port}",
        "--auth-key",
        f"{ACCESS_KEY},{SECRET_KEY}",
        "--vfs-cache-mode",
        "off",
        str(folder),
    ]
    env = {"RCLONE_CONFIG": str(folder.parent / "rclone.conf"), "HOME": str(folder.parent)}
    with _process(command, folder.parent / f"{folder.name}.log", endpoint, env) as pid:
        yield Server(endpoint, pid)
