"""Documents that no person means, and that somebody sends: each is one clear error before anything is written.

Every row goes through the command line as a file: exit code 2, one error with a code, a message and a next step, no
traceback, within a second, and the store is not even made. Beside them stand look-alikes that must pass: what is
refused for its looks alone is as wrong as what is let through.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Said, Stado
from tests.cli.malformed_rows import MALFORMED, OK, VALID, Body, as_json


def submit(stado: Stado, folder: Path, row: tuple[str, Body], *more: str) -> Said:
    where, source = row
    body = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    if where == "-":
        return stado("--json", "submit", "-f", "-", *more, stdin=body)
    (folder / where).write_bytes(body)
    return stado("--json", "submit", "-f", folder / where, *more)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    return tmp_path / "store"


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """The first validation of a process loads the models: no row's fault."""
    from stado_like.job.spec.validate import validate

    validate(OK)


@pytest.mark.parametrize("row", MALFORMED)
def test_malformed_document_is_one_clear_error_and_nothing_is_written(
    stado: Stado, store: Path, tmp_path: Path, row: str
) -> None:
    where, source, says = MALFORMED[row]
    began = time.process_time()
    said = submit(stado, tmp_path, (where, source))
    assert time.process_time() - began < 1
    assert (said.code, said.out) == (2, ""), said.err[-500:]
    assert len(said.err.splitlines()) == 1 and "Traceback" not in said.err
    assert len(said.err) < 100_000
    error = said.error
    assert error["code"] in ("REFUSED", "VALIDATION_ERROR", "UNKNOWN_FIELD")
    assert error["message"] and error["next_step"]
    told = " | ".join([error["message"], *error["detail"].values(), *error["detail"]])
    assert says in told
    assert told.isprintable()
    assert not store.exists()


@pytest.mark.parametrize("row", VALID)
def test_what_only_looks_malformed_passes(stado: Stado, store: Path, tmp_path: Path, row: str) -> None:
    where, source, look, value = VALID[row]
    began = time.process_time()
    said = submit(stado, tmp_path, (where, source), "--dry-run")
    assert time.process_time() - began < 2
    assert said.code == 0, said.err[-500:]
    assert look(said.value["spec"]["task_template"]) == value
    assert not store.exists()


def test_a_store_that_is_there_stays_as_it_was(stado: Stado, store: Path, tmp_path: Path) -> None:
    assert submit(stado, tmp_path, ("ok.json", as_json())).code == 0
    before = _contents(store)
    for row in ("laughs of lists", "NaN in JSON", "30,000 unknown fields", "the name is a path", "deep JSON"):
        where, source, _ = MALFORMED[row]
        assert submit(stado, tmp_path, (where, source)).code == 2
    assert _contents(store) == before


def _contents(store: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("what", ["absent.yaml", ".", "locked"], ids=["absent", "a folder", "a name that is too long"])
def test_a_file_that_cannot_be_read(stado: Stado, store: Path, tmp_path: Path, what: str) -> None:
    path = tmp_path / (what if what != "locked" else "n" * 300)
    said = stado("--json", "submit", "-f", path)
    assert said.code == 2
    assert "cannot be read" in said.error["message"] and said.error["next_step"]
    assert not store.exists()


@pytest.mark.serial
@pytest.mark.parametrize(
    "row", ["laughs of mappings", "deep JSON lists on standard input", "a picture", "many anchors"]
)
def test_as_a_process_it_ends_in_time(store: Path, tmp_path: Path, row: str) -> None:
    """With the interpreter's start, the models' loading and nothing shared with other rows."""
    where, source, _ = MALFORMED[row]
    body = source if isinstance(source, bytes) else source.encode()
    (tmp_path / "r.yaml").write_bytes(body)
    given = "-" if where == "-" else str(tmp_path / "r.yaml")
    ran = subprocess.run(
        [sys.executable, "-m", "stado_cli", "--json", "submit", "-f", given],
        input=body,
        capture_output=True,
        timeout=10,
    )
    assert ran.returncode == 2
    error = json.loads(ran.stderr.splitlines()[-1])
    assert error["message"] and error["next_step"]
    assert b"Traceback" not in ran.stderr and not store.exists()
