"""`stado storage …` against servers: what a person meets when a store is wrong, or is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stado_like.errors import Exit
from tests.cli.conftest import Stado
from tests.servers import CREDENTIALS, Server, moto, rclone_gateway


@pytest.fixture(scope="module")
def emulator() -> Iterator[Server]:
    with moto() as server:
        yield server


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def test_gateway_that_ignores_the_condition_is_refused_and_nothing_is_written(stado: Stado, tmp_path: Path) -> None:
    """Gateway returns 200 and overwrites in spite of the header: the check fails and names it; nothing is written."""
    with rclone_gateway(tmp_path / "data") as server:
        server.make_bucket("bucket")
        url = server.url("bucket")
        said = stado("storage", "check", "--store", url, "--json")
        assert said.code == Exit.STORE
        assert said.value["trusted"] is False
        assert said.error["code"] == "STORE_UNTRUSTED"
        assert "create-if-absent is not enforced" in said.error["message"]
        refused = stado("storage", "put", "k/one", "--store", url, stdin=b"x")
        assert refused.code == Exit.STORE
        assert "create-if-absent is not enforced" in refused.err
        assert stado("storage", "ls", "--store", url, "--json").value == []


def test_good_s3_store_is_trusted_and_holds_what_is_put(stado: Stado, emulator: Server) -> None:
    emulator.make_bucket("good")
    url = emulator.url("good", "some/prefix")
    assert stado("storage", "check", "--store", url, "--json").value["trusted"] is True
    assert stado("storage", "put", "k/one", "--if-absent", "--store", url, stdin=b"x").code == Exit.DONE
    assert stado("storage", "put", "k/one", "--if-absent", "--store", url, stdin=b"y").code == Exit.CONFLICT
    rows = stado("storage", "ls", "--store", url, "--json").value
    assert [row["key"] for row in rows] == ["k/one", "state/store.json"]


def test_missing_bucket_is_exit_5_naming_it(stado: Stado, emulator: Server) -> None:
    said = stado("storage", "ls", "--store", emulator.url("no-such-bucket"), "--json")
    assert said.code == Exit.STORE
    assert said.error["code"] == "STORE_BUCKET_MISSING"
    assert "no-such-bucket" in said.error["message"]
    assert said.out == ""


def test_a_workspace_is_edited_on_s3(stado: Stado, emulator: Server, tmp_path: Path) -> None:
    emulator.make_bucket("spaces")
    url = emulator.url("spaces")
    refused = stado("submit", "-J", "a", "-p", "3", "--store", url, "true")
    assert refused.code == Exit.REFUSED and "--max-priority 3" in refused.err
    assert stado("storage", "ls", "--store", url, "--json").value == []
    assert stado("workspace", "set", "default", "--max-priority", "3", "--store", url).code == Exit.DONE
    said = stado("workspace", "set", "default", "--bind-path", "/data", "--store", url, "--json")
    assert (said.value["max_priority"], said.value["grants"]["bind_paths"]) == (3, ["/data"])
    assert stado("submit", "-J", "a", "-p", "3", "--store", url, "true").code == Exit.DONE
