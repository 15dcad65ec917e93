"""A directory as a store: crashes, full disks, foreign files, network disks, and many objects."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stado_like.ambient import RealAmbient
from stado_like.errors import BucketMissing, CredentialsRefused, StoreUnavailable, UsageError
from stado_like.store.conditional import Won, create_once
from stado_like.store.local import LocalStore
from stado_like.store.protocol import Applied, Rejected, Unknown, list_all
from stado_like.store.temporaries import sweep


def test_an_object_is_a_file_that_holds_the_body_and_nothing_else(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "s"))
    store.create("jobs/default/train.1.json", b"{}")
    store.put("capacity/w.json", b"[]")
    assert (tmp_path / "s/jobs/default/train.1.json").read_bytes() == b"{}"
    (tmp_path / "s/by-hand").write_bytes(b"written by a person")
    found = store.get("by-hand")
    assert found is not None and found.body == b"written by a person"
    assert [row.key for row in list_all(store, "")] == ["by-hand", "capacity/w.json", "jobs/default/train.1.json"]
    left = {path.name for path in (tmp_path / "s/.tmp").iterdir()}
    assert left <= {"clock"}


def test_a_directory_that_does_not_exist_is_empty_for_a_reader_and_made_by_a_writer(tmp_path: Path) -> None:
    place = tmp_path / "not" / "yet"
    store = LocalStore(str(place))
    assert store.get("x") is None
    assert store.head("x") is None
    assert store.list("").rows == ()
    assert isinstance(store.delete("x"), Applied)
    assert isinstance(store.replace("x", b"1", "e"), Rejected)
    assert abs(store.now() - time.time()) < 5
    assert not (tmp_path / "not").exists()
    assert isinstance(store.create("x", b"1"), Applied)
    assert place.is_dir()


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BucketMissing, match="is a file"):
        LocalStore(str(tmp_path / "file"))


def test_no_key_leaves_the_directory(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    store = LocalStore(str(tmp_path / "s"))
    store.create("a/b", b"x")
    for key in ("../secret", "a/../../secret", "/etc/passwd", "a//b", ".tmp/clock", "a/.", "x\x00y"):
        for ask in (store.get, store.head, store.delete, lambda key: store.create(key, b"")):
            with pytest.raises(UsageError):
                ask(key)
    for prefix in ("../", "a/../../", "/", ".tmp/", "./"):
        assert store.list(prefix).rows == ()
    assert (tmp_path / "secret").read_bytes() == b"secret"


def test_foreign_files_do_not_break_a_listing(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.create("jobs/a", b"1")
    (tmp_path / "jobs/sub/deeper").mkdir(parents=True)
    (tmp_path / "jobs/a b?#").touch()
    (tmp_path / "jobs/c\x01d\n").touch()
    os.close(os.open(os.fsencode(tmp_path) + b"/jobs/\xff\xfe", os.O_CREAT))
    os.mkfifo(tmp_path / "jobs/pipe")
    (tmp_path / "jobs/loop").symlink_to(tmp_path / "jobs")
    (tmp_path / "jobs/gone").symlink_to(tmp_path / "nowhere")
    assert [row.key for row in list_all(store, "jobs/")] == ["jobs/a", "jobs/a b?#", "jobs/c\x01d\n"]
    assert store.get("jobs/pipe") is None
    assert store.head("jobs/pipe") is None
    assert store.get("jobs/sub") is None
    assert store.head("jobs/gone") is None
    assert isinstance(store.create("jobs/a/below", b"x"), Unknown)
    assert isinstance(store.put("jobs/sub", b"x"), Unknown)
    assert isinstance(store.delete("jobs/sub"), Applied)
    assert (tmp_path / "jobs/sub").is_dir()


def test_a_listing_reads_nothing_outside_its_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path))
    for key in ("a/1/x", "a/2/x", "b/1/x"):
        store.create(key, b"")
    read: list[str] = []
    scandir = os.scandir

    def note(path: str) -> Any:
        read.append(os.path.relpath(path, tmp_path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", note)
    assert [row.key for row in store.list("a/1/").rows] == ["a/1/x"]
    assert [row.key for row in store.list("a/2").rows] == ["a/2/x"]
    assert read == ["a/1", "a", "a/2"]


def test_names_are_kept_while_the_directory_stands_still_and_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(str(tmp_path), durable=False)
    for number in range(100):
        store.create(f"q/{number:03d}", b"")
    past = time.time() - 60
    os.utime(tmp_path / "q", (past, past))
    scans: list[str] = []
    scandir = os.scandir

    def note(path: str) -> Any:
        scans.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", note)
    for _ in range(3):
        assert len(store.list("q/").rows) == 100
    assert len(scans) == 1
    for number in range(100, 120):  # each seen at once, also when several fall into one grain of the directory's time
        store.create(f"q/{number:03d}", b"")
        assert store.list("q/").rows[-1].key == f"q/{number:03d}"
        store.delete(f"q/{number - 100:03d}")
        assert store.list("q/").rows[0].key == f"q/{number - 99:03d}"


def test_many_objects_in_one_prefix(tmp_path: Path) -> None:
    place = tmp_path / "q"
    place.mkdir()
    for number in range(20_000):
        os.close(os.open(place / f"{number:06d}", os.O_CREAT | os.O_WRONLY))
    past = time.time() - 60
    os.utime(place, (past, past))
    store = LocalStore(str(tmp_path), durable=False)
    assert [int(row.key[2:]) for row in list_all(store, "q/")] == list(range(20_000))


WRITER = """
import sys
from stado_like.store.local import LocalStore
store = LocalStore(sys.argv[1], durable=False)
body = bytes(range(256)) * 4096
print("ready", flush=True)
n = 0
while True:
    store.create(f"made/{sys.argv[2]}.{n}", body)
    store.put("beat", body[: (n % 7 + 1) * 100_000])
    n += 1
"""


def test_a_killed_writer_leaves_no_half_object(tmp_path: Path) -> None:
    body = bytes(range(256)) * 4096
    store = LocalStore(str(tmp_path), durable=False)
    for turn in range(5):
        before = len(list((tmp_path / "made").iterdir())) if turn else 0
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(turn)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 30
        while len(list_all_keys(store, "made/")) < before + 3 + turn:
            assert time.monotonic() < deadline
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        for key in list_all_keys(store, "made/"):
            found = store.get(key)
            assert found is not None and found.body == body
        beat = store.get("beat")
        assert beat is not None and len(beat.body) % 100_000 == 0
    assert not any(".tmp" in key for key in list_all_keys(store, ""))
    left = [path for path in (tmp_path / ".tmp").iterdir() if path.name != "clock"]
    assert sweep(str(tmp_path / ".tmp"), time.time()) == 0  # a writer that is only paused still owns them
    assert sweep(str(tmp_path / ".tmp"), time.time() + 86_500) == len(left)


def list_all_keys(store: LocalStore, prefix: str) -> list[str]:
    return [row.key for row in list_all(store, prefix)]


def test_durable_writes_sync_file_directory_and_every_parent_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append("file" if "/.tmp/" in path else os.path.relpath(path, tmp_path))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    store = LocalStore(str(tmp_path / "s"))
    store.create("a/b/one", b"1")
    assert synced == [".", "s", "file", "s", "s/a", "s/a/b"]
    synced.clear()
    one = store.create("a/b/two", b"1")
    assert synced == ["file", "s/a/b"]
    synced.clear()
    store.put("a/b/beat", b"1")
    assert synced == []
    assert isinstance(one, Applied)
    store.replace("a/b/two", b"2", one.etag)
    assert synced == ["file", "s/a/b"]
    synced.clear()
    fast = LocalStore(str(tmp_path / "fast"), durable=False)
    fast.create("a/b/one", b"1")
    assert synced == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_unknown_and_named(tiny_disk: Path) -> None:
    store = LocalStore(str(tiny_disk))
    assert isinstance(store.create("small", b"1"), Applied)
    for write in (store.create, store.put):
        answer = write("large", bytes(200_000))
        assert isinstance(answer, Unknown)
        assert "ENOSPC" in answer.why and str(tiny_disk) in answer.why
    assert store.head("large") is None
    assert [path.name for path in (tiny_disk / ".tmp").iterdir() if path.name != "clock"] == []
    with pytest.raises(StoreUnavailable, match="ENOSPC"):
        create_once(store, "large", bytes(200_000), budget_s=0.05)
    assert isinstance(create_once(store, "fits", b"1"), Won)


def _failing_once(monkeypatch: pytest.MonkeyPatch, name: str, error: int, where: Callable[[Any], bool]) -> list[int]:
    real = getattr(os, name)
    failed: list[int] = []

    def step(path: Any, *rest: Any, **more: Any) -> Any:
        if not failed and where(path):
            failed.append(error)
            raise OSError(error, os.strerror(error), str(path))
        return real(path, *rest, **more)

    monkeypatch.setattr(os, name, step)
    return failed


def test_a_stale_handle_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ESTALE crash on network disks: the handle was invalidated by another host's unlink."""
    store = LocalStore(str(tmp_path))
    store.create("a/x", b"1")
    failed = _failing_once(monkeypatch, "open", errno.ESTALE, lambda path: str(path).endswith("/a/x"))
    found = store.get("a/x")
    assert failed and found is not None and found.body == b"1"
    for name in ("stat", "scandir"):
        failed = _failing_once(monkeypatch, name, errno.ESTALE, lambda path: "/a" in str(path))
        assert [row.key for row in store.list("a/").rows] == ["a/x"]
        assert failed
    failed = _failing_once(monkeypatch, "stat", errno.ESTALE, lambda path: str(path).endswith("/a/x"))
    assert store.head("a/x") is not None and failed
    failed = _failing_once(monkeypatch, "open", errno.ESTALE, lambda path: "/.tmp/" in str(path))
    assert isinstance(store.create("a/y", b"1"), Applied) and failed


def test_a_disk_that_cannot_be_read_is_no_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(str(tmp_path))
    store.create("a/x", b"1")
    for error, kind in ((errno.EIO, StoreUnavailable), (errno.EACCES, CredentialsRefused)):
        asks: list[Callable[[], object]] = [lambda: store.get("a/x"), lambda: store.get_if_changed("a/x", "e")]
        for ask in asks:
            with monkeypatch.context() as patch:
                _failing_once(patch, "open", error, lambda path: str(path).endswith("/a/x"))
                with pytest.raises(kind, match=errno.errorcode[error]):
                    ask()
        with monkeypatch.context() as patch:
            _failing_once(patch, "stat", error, lambda path: str(path).endswith("/a/x"))
            with pytest.raises(kind):
                store.head("a/x")


def test_a_refused_link_whose_file_has_two_names_was_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network disk may carry out a link and refuse its repetition."""
    link = os.link

    def linked_twice(source: str, target: str) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", linked_twice)
    assert isinstance(LocalStore(str(tmp_path)).create("x", b"1"), Applied)


def test_a_file_system_without_hard_links_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    answer = LocalStore(str(tmp_path)).create("x", b"1")
    assert isinstance(answer, Unknown) and "refuses hard links" in answer.why


def test_time_is_the_disks(tmp_path: Path) -> None:
    """Network disks have a clock of their own: ages compare times of that disk only."""

    class Wrong(RealAmbient):
        def wall_s(self) -> float:
            return 5.0

    store = LocalStore(str(tmp_path), ambient=Wrong())
    store.create("x", b"1")
    reader = LocalStore(str(tmp_path), ambient=Wrong())
    found = reader.get("x")
    assert found is not None
    assert 0 <= found.now - found.last_modified < 5
    assert abs(reader.now() - time.time()) < 5


def test_a_forked_child_goes_on_writing(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), durable=False)
    store.create("parent/0", b"0")
    child = os.fork()
    if child == 0:
        made = all(isinstance(store.create(f"child/{number}", b"c"), Applied) for number in range(200))
        os._exit(0 if made else 1)
    made = all(isinstance(store.create(f"parent/{number}", b"p"), Applied) for number in range(1, 200))
    assert made and os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list_all_keys(store, "")) == 400
