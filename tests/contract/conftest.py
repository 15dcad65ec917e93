"""Four stores and one suite: memory, a directory, moto's server and SeaweedFS, the last two through both S3 drivers.

Every test gets a store of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from stado_like.ambient import REAL, Ambient
from stado_like.store.protocol import ObjectStore
from stado_like.store.url import open_store
from tests import servers
from tests.fault_proxy import FaultProxy, fault_proxy

BUCKET = "contract"
S3_KINDS = [f"{server}-{driver}" for server in ("moto", "seaweedfs") for driver in ("lean", "plain")]
KINDS = ["memory", "local", *S3_KINDS]
AWS = {
    **servers.CREDENTIALS,
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    """The test servers' keys, and nothing of the person who runs the suite."""
    before = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in before:
        del os.environ[name]
    os.environ.update(AWS)
    yield
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(before)


def _must_be_conditional(server: servers.Server, name: str) -> None:
    """Some emulators ignored the condition and overwrote: on one, every test would be green and mean nothing."""
    client = server.client()
    client.put_object(Bucket=BUCKET, Key="suite-probe", Body=b"1", IfNoneMatch="*")
    try:
        client.put_object(Bucket=BUCKET, Key="suite-probe", Body=b"2", IfNoneMatch="*")
    except client.exceptions.ClientError as refused:
        if refused.response["ResponseMetadata"]["HTTPStatusCode"] == 412:
            return
    pytest.exit(f"store emulator is not conditional: {name} took a second create of one key", returncode=3)


@pytest.fixture(scope="session")
def moto_server(credentials: None) -> Iterator[servers.Server]:
    with servers.moto() as server:
        server.make_bucket(BUCKET)
        _must_be_conditional(server, "moto")
        yield server


@pytest.fixture(scope="session")
def weed_server(credentials: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.seaweedfs(tmp_path_factory.mktemp("seaweedfs") / "data") as server:
        server.make_bucket(BUCKET)
        _must_be_conditional(server, "SeaweedFS")
        yield server


@pytest.fixture(scope="session")
def gateway(credentials: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    with servers.rclone_gateway(tmp_path_factory.mktemp("rclone") / "data") as server:
        server.make_bucket(BUCKET)
        yield server


@dataclass(frozen=True)
class Subject:
    """A fresh store by its URL; `open` opens it again, as another process would. `kind` names the server alone."""

    kind: str
    url: str

    def open(self, ambient: Ambient = REAL) -> ObjectStore:
        return open_store(self.url, ambient=ambient)


@pytest.fixture
def subject_of(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Subject]:
    """A fresh store of a kind; its server is started when first asked for."""

    def make(kind: str) -> Subject:
        token = REAL.token()
        if kind == "memory":
            return Subject(kind, f"memory://{token}")
        if kind == "local":
            return Subject(kind, f"file://{tmp_path / token}?durable=0")
        name, _, driver = kind.partition("-")
        return Subject(name, _server(request, name).url(BUCKET, token, driver))

    return make


def _server(request: pytest.FixtureRequest, name: str) -> servers.Server:
    server: servers.Server = request.getfixturevalue({"moto": "moto_server", "seaweedfs": "weed_server"}[name])
    return server


@pytest.fixture(params=["lean", "plain"])
def driver(request: pytest.FixtureRequest) -> str:
    """For tests that name their server themselves."""
    return str(request.param)


@pytest.fixture(params=KINDS)
def subject(request: pytest.FixtureRequest, subject_of: Callable[[str], Subject]) -> Subject:
    return subject_of(request.param)


@pytest.fixture
def store(subject: Subject) -> ObjectStore:
    return subject.open()


@dataclass(frozen=True)
class Proxied:
    """A store reached through a proxy that can be told to misbehave, and the same store `beside` it."""

    proxy: FaultProxy
    url: str
    direct_url: str

    def open(self, ambient: Ambient = REAL) -> ObjectStore:
        return open_store(self.url, ambient=ambient)

    def beside(self) -> ObjectStore:
        return open_store(self.direct_url)


@pytest.fixture(params=S3_KINDS)
def proxied(request: pytest.FixtureRequest) -> Iterator[Proxied]:
    name, _, driver = request.param.partition("-")
    server, token = _server(request, name), REAL.token()
    with fault_proxy(server.endpoint) as proxy:
        url = servers.Server(proxy.endpoint, 0).url(BUCKET, token, driver)
        yield Proxied(proxy, url, server.url(BUCKET, token, driver))
