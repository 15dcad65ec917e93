"""Syncs side by side: everything that a durable store says stands is on the disk, and what may wait for it does."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

import pytest

from stado_like.errors import StoreUnavailable
from stado_like.store.local import LocalStore
from stado_like.store.protocol import Applied, Rejected
from stado_like.store.syncing import Begun, together


def test_steps_run_side_by_side_and_the_first_failure_is_raised() -> None:
    meet = threading.Barrier(3, timeout=10)
    together(meet.wait, meet.wait, meet.wait)  # type: ignore[arg-type]  # one after the other would never meet
    done: list[str] = []

    def fail(name: str) -> None:
        done.append(name)
        raise OSError(5, name)

    with pytest.raises(OSError, match="first"):
        together(lambda: done.append("own"), lambda: fail("first"), lambda: fail("second"))
    assert sorted(done) == ["first", "own", "second"]
    with pytest.raises(OSError, match="own"):
        together(lambda: fail("own"), lambda: done.append("beside"))
    assert done[-2:] in (["own", "beside"], ["beside", "own"])
    together()


def test_a_begun_step_gives_its_result_to_whoever_asks_when() -> None:
    go = threading.Event()
    begun = Begun(lambda: go.wait(10) and "made")
    go.set()
    assert begun.result() == "made"
    assert begun.result() == "made"


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        seen.append("file" if "/.tmp/" in path else os.path.relpath(path, tmp_path))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return seen


def test_what_is_begun_ahead_is_nobodys_before_its_create(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(str(tmp_path / "s"))
    store.create("a/first", b"1")
    synced.clear()
    store.ahead("a/b/one", b"body")
    assert store.head("a/b/one") is None
    assert [row.key for row in store.list("").rows] == ["a/first"]
    assert isinstance(store.create("a/b/one", b"body"), Applied)
    assert Counter(synced) == Counter(["file", "s/a", "s/a/b"]), "its body once, and the new directory"
    found = store.get("a/b/one")
    assert found is not None and found.body == b"body"


def test_another_body_than_the_one_begun_is_written_itself(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "s"))
    store.ahead("a/one", b"mine")
    other = LocalStore(str(tmp_path / "s"))
    assert isinstance(other.create("a/one", b"theirs"), Applied)
    assert isinstance(store.create("a/one", b"mine"), Rejected)
    assert isinstance(store.create("a/two", b"other"), Applied)
    found = store.get("a/one")
    assert found is not None and found.body == b"theirs"


def test_directories_of_a_block_are_synced_once_at_its_end(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(str(tmp_path / "s"))
    for key in ("jobs/a", "queued/a"):
        store.create(key, b"1")
    synced.clear()
    with store.synced_together():
        store.create("jobs/b", b"1")
        store.create("queued/b", b"2")
        store.create("queued/c", b"3")
        assert synced == ["file"] * 3
    assert Counter(synced[3:]) == Counter(["s/jobs", "s/queued"])
    synced.clear()
    store.create("jobs/d", b"1")
    assert synced == ["file", "s/jobs"], "after the block each create syncs for itself again"


def test_a_block_belongs_to_its_thread(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(str(tmp_path / "s"))
    store.create("a/one", b"1")
    synced.clear()
    with store.synced_together():
        beside = threading.Thread(target=lambda: store.create("a/two", b"2"))
        beside.start()
        beside.join(10)
        assert synced == ["file", "s/a"]


def test_a_block_whose_directory_cannot_be_synced_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path / "s"))
    store.create("a/one", b"1")
    fsync = os.fsync

    def refuse(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("/s/a"):
            raise OSError(5, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreUnavailable, match="EIO"), store.synced_together():
        assert isinstance(store.create("a/two", b"2"), Applied)


def test_the_doorbell_is_replaced_without_a_sync(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(str(tmp_path / "s"))
    bell = store.create("state/doorbell.json", b"1")
    other = store.create("state/holds.json", b"1")
    assert isinstance(bell, Applied) and isinstance(other, Applied)
    synced.clear()
    assert isinstance(store.replace("state/doorbell.json", b"2", bell.etag), Applied)
    assert synced == []
    assert isinstance(store.replace("state/holds.json", b"2", other.etag), Applied)
    assert synced == ["file", "s/state"]
