"""`stado storage …` on a directory store: what it prints, what it refuses, and that a reader writes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stado_like.errors import Exit
from tests.cli.conftest import Stado

LOOPBACK_CLOSED = "s3://bucket/prefix?endpoint_url=http://127.0.0.1:9&region=us-east-1"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "store"
    monkeypatch.setenv("STADO_STORE", f"file://{place}")
    return place


def test_put_then_cat_gives_the_same_bytes(stado: Stado, store: Path) -> None:
    body = bytes(range(256))
    said = stado("storage", "put", "data/all", stdin=body)
    assert (said.code, said.out) == (Exit.DONE, "Wrote 256 bytes to data/all.\n")
    assert stado("storage", "cat", "data/all").out_bytes == body
    assert (store / "data" / "all").read_bytes() == body


def test_cat_json_is_one_value_for_text_and_for_binary(stado: Stado, store: Path) -> None:
    """Binary output breaks the viewer: the JSON view stays valid."""
    stado("storage", "put", "a/text", stdin="zażółć".encode())
    stado("storage", "put", "a/binary", stdin=b"\xff\x00")
    assert stado("storage", "cat", "a/text", "--json").value["text"] == "zażółć"
    assert stado("storage", "cat", "a/binary", "--json").value["base64"] == "/wA="


def test_put_if_absent_on_an_existing_key_is_a_conflict_and_changes_nothing(stado: Stado, store: Path) -> None:
    assert stado("storage", "put", "k/one", "--if-absent", stdin=b"first").code == Exit.DONE
    for second in (b"second", b"first"):
        said = stado("storage", "put", "k/one", "--if-absent", "--json", stdin=second)
        assert said.code == Exit.CONFLICT
        assert said.error["code"] == "CONFLICT"
    assert stado("storage", "cat", "k/one").out == "first"


def test_put_from_a_file(stado: Stado, store: Path, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"from a file")
    assert stado("storage", "put", "k/file", tmp_path / "body").code == Exit.DONE
    assert stado("storage", "cat", "k/file").out == "from a file"
    assert stado("storage", "put", "k/none", tmp_path / "absent").code == Exit.REFUSED
    assert stado("storage", "stat", "k/none").code == Exit.NOT_FOUND


def test_ls_is_ordered_and_limited(stado: Stado, store: Path) -> None:
    for key in ("p/b", "p/a", "p/c", "q/d"):
        stado("storage", "put", key, stdin=key.encode())
    for more, keys in (([], "abc"), (["--limit", 1], "a"), (["--start-after", "p/a"], "bc")):
        rows = stado("storage", "ls", "p/", *more, "--json").value
        assert [row["key"] for row in rows] == [f"p/{letter}" for letter in keys]
    lines = stado("storage", "ls", "p/").out.splitlines()
    assert lines[0].split() == ["SIZE", "LAST", "MODIFIED", "KEY"]
    assert [line.split()[-1] for line in lines[1:]] == ["p/a", "p/b", "p/c"]


def test_rows_of_ls_hold_times_in_utc_with_milliseconds(stado: Stado, store: Path) -> None:
    stado("storage", "put", "p/a", stdin=b"x")
    row = stado("storage", "ls", "p/", "--json").value[0]
    assert len(row["last_modified"]) == len("2026-01-31T12:00:00.250Z")
    assert row["last_modified"].endswith("Z")
    assert row["size_bytes"] == 1


def test_stat_tells_size_and_age_on_the_store_clock(stado: Stado, store: Path) -> None:
    stado("storage", "put", "p/a", stdin=b"12345")
    shown = stado("storage", "stat", "p/a", "--json").value
    assert shown["size_bytes"] == 5
    assert 0 <= shown["age_s"] < 60


def test_absent_key_is_exit_3(stado: Stado, store: Path) -> None:
    for verb in ("cat", "stat", "rm"):
        said = stado("storage", verb, "no/such", "--json")
        assert said.code == Exit.NOT_FOUND, verb
        assert said.error["code"] == "NOT_FOUND"


def test_rm_of_some_present_keys_is_done_in_part(stado: Stado, store: Path) -> None:
    stado("storage", "put", "p/a", stdin=b"a")
    stado("storage", "put", "p/b", stdin=b"b")
    said = stado("storage", "rm", "p/a", "p/none", "--json")
    assert said.code == Exit.PARTLY
    assert said.value == {"deleted": ["p/a"], "absent": ["p/none"]}
    assert said.error["detail"] == {"p/none": "there is no such object"}
    assert stado("storage", "rm", "p/b").code == Exit.DONE
    assert stado("storage", "ls", "p/", "--json").value == []


def test_reader_of_a_store_that_does_not_exist_sees_an_empty_one_and_makes_nothing(stado: Stado, store: Path) -> None:
    assert stado("storage", "ls", "--json").value == []
    assert stado("storage", "cat", "a/b").code == Exit.NOT_FOUND
    assert not store.exists()


def test_key_that_a_store_cannot_hold_is_refused(stado: Stado, store: Path) -> None:
    """LIST XML cannot be parsed: a name with a control character is refused, exit 2, and nothing is written."""
    for key in ("a//b", "../x", "a\x01b", "/a", "a/", "a b"):
        said = stado("storage", "put", key, stdin=b"x")
        assert said.code == Exit.REFUSED, key
        assert "Traceback" not in said.err
    assert [row["key"] for row in stado("storage", "ls", "--json").value] == ["state/store.json"]


def test_check_of_a_good_directory_is_exit_0(stado: Stado, store: Path) -> None:
    said = stado("storage", "check", "--json")
    assert said.code == Exit.DONE
    assert said.value["trusted"] is True
    assert all(promise["kept"] is not False for promise in said.value["promises"])
    assert "create-if-absent" in stado("storage", "check").out
    assert stado("storage", "ls", "--json").value == [], "a check leaves nothing behind"


def test_store_that_cannot_be_reached_is_exit_5_and_nothing_else(
    stado: Stado, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    said = stado("storage", "ls", "--store", LOOPBACK_CLOSED, "--json")
    assert said.code == Exit.STORE
    assert said.out == ""
    assert said.error["code"] == "STORE_UNAVAILABLE"
    assert said.error["next_step"]


def test_stats_tell_the_requests_and_their_price(stado: Stado, store: Path) -> None:
    said = stado("storage", "stat", "a/b", "--stats")
    assert said.code == Exit.NOT_FOUND
    assert "store requests: 1 (head 1)" in said.err
    assert "price" in said.err


def test_commands_on_a_directory_do_not_import_boto3(stado: Stado, store: Path) -> None:
    program = (
        "import sys; from stado_cli.main import main; code = main(sys.argv[1:]);"
        "print(code, 'boto3' in sys.modules, 'rich' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "storage", "ls"], capture_output=True, text=True, timeout=60
    )
    assert ran.stderr.splitlines()[-1] == "0 False False"
