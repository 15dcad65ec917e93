"""`stado storage fsck` on a directory store: what it prints, its exit codes, and that a check writes nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stado_cli.commands import storage_fsck
from stado_like.bucket import cancel
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Exit
from stado_like.job import keys
from stado_like.store.url import open_store
from tests.builders_jobs import attempt, run, submit
from tests.cli.conftest import Stado


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    url = f"file://{tmp_path / 'store'}?durable=0"
    monkeypatch.setenv("STADO_STORE", url)
    monkeypatch.setattr(storage_fsck, "SETTLE_S", 0.0)
    return Bucket(open_store(url))


def _files(tmp_path: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in sorted((tmp_path / "store").rglob("*"))
        if path.is_file() and ".tmp" not in path.parts
    }


def _lose_an_entry(bucket: Bucket) -> str:
    submit(bucket)
    (row,) = bucket.store.list(keys.QUEUED_OPEN).rows
    bucket.store.delete(row.key)
    return row.key


def test_an_empty_store_is_clean_and_stays_empty(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    said = stado("storage", "fsck", "--repair")
    assert (said.code, said.out) == (Exit.DONE, "")
    assert "is clean: 0 objects, 0 jobs" in said.err
    assert not (tmp_path / "store").exists()


def test_a_clean_store_gives_no_finding_in_json_too(stado: Stado, bucket: Bucket) -> None:
    run(bucket, attempt(submit(bucket)))
    submit(bucket, "waits")
    said = stado("storage", "fsck", "--json", "--audit")
    assert said.code == Exit.DONE
    assert said.value["findings"] == []
    checked = said.value["checked"]
    assert (checked["jobs"], checked["entries"], checked["ends"], checked["audit"]) == (2, 1, 1, True)
    assert checked["seconds"] >= 0


def test_a_finding_is_one_line_with_what_repair_would_do_and_nothing_is_written(
    stado: Stado, bucket: Bucket, tmp_path: Path
) -> None:
    key = _lose_an_entry(bucket)
    before = _files(tmp_path)
    said = stado("storage", "fsck")
    assert said.code == Exit.FAILED
    header, line = said.out.splitlines()
    assert header.split() == ["CODE", "KEY", "WHAT", "WAS", "FOUND", "--REPAIR", "WOULD"]
    assert line.startswith(f"attempt-lost  {key}  ")
    assert line.endswith("queue the attempt again")
    assert "1 left, of which --repair mends 1" in said.err
    assert _files(tmp_path) == before


def test_repair_is_exit_0_once_and_then_there_is_nothing_to_do(stado: Stado, bucket: Bucket) -> None:
    key = _lose_an_entry(bucket)
    said = stado("storage", "fsck", "--repair", "--json")
    assert said.code == Exit.DONE
    (row,) = said.value["findings"]
    assert (row["code"], row["key"], row["repaired"]) == ("attempt-lost", key, True)
    assert set(row) == {"code", "key", "sentence", "remedy", "repaired"}
    assert bucket.store.head(key) is not None
    assert stado("storage", "fsck", "--repair", "--json").value["findings"] == []


def test_what_no_repair_may_choose_is_left_and_exit_1(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    _lose_an_entry(bucket)
    (tmp_path / "store" / "jobs" / "readme.txt").write_bytes(b"x")
    said = stado("storage", "fsck", "--repair")
    assert said.code == Exit.FAILED
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == ["attempt-lost", "foreign-key"]
    assert "1 repaired; 1 left (" in said.err


def test_a_key_with_control_characters_is_shown_quoted(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    """A foreign key with control characters in the bucket: it is reported, and the list survives."""
    submit(bucket)
    (tmp_path / "store" / "queued" / "open" / "a\x1b[31m\x01\nb").write_bytes(b"x")
    said = stado("storage", "fsck")
    assert said.code == Exit.FAILED
    assert len(said.out.splitlines()) == 2
    assert "\x1b" not in said.out and "\x01" not in said.out
    assert "foreign-key" in said.out
    (row,) = stado("storage", "fsck", "--json").value["findings"]
    assert row["key"] == ascii("queued/open/a\x1b[31m\x01\nb")


def test_an_audit_reads_what_a_check_passes_over(stado: Stado, bucket: Bucket) -> None:
    j = submit(bucket, array={"size": 3})
    cancel.cancel_job(bucket, j)
    bucket.store.put(keys.final(j), b"{")
    assert stado("storage", "fsck").code == Exit.DONE
    said = stado("storage", "fsck", "--audit", "--json")
    assert said.code == Exit.FAILED
    assert {row["code"] for row in said.value["findings"]} == {"record-unreadable"}


def test_a_store_that_cannot_be_reached_is_exit_5(stado: Stado) -> None:
    said = stado("storage", "fsck", "--store", "s3://bucket/prefix?endpoint_url=http://127.0.0.1:9&region=us-east-1")
    assert said.code == Exit.STORE


def test_a_terminal_sees_how_far_it_is_and_a_pipe_does_not(
    stado: Stado, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(120):
        bucket.store.put(f"deleted/default.old.{n + 1}.json", b'{"nonce":"n"}')
    assert "checking" not in stado("storage", "fsck").err
    monkeypatch.setattr(storage_fsck, "SHOWN_EVERY_S", 0.0)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    said = stado("storage", "fsck").err
    assert "checking: 100 objects" in said
    assert said.rstrip("\n").rsplit("\r", 1)[-1].startswith("file://")
