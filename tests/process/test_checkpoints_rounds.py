"""Directories saved and laid out again: names, changes under way, what is sent, what is kept, what is damaged."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from stado_like.bucket import checkpoints
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, StoreUnavailable
from stado_like.job import checkpoint, keys
from stado_like.job.checkpoint import Ref
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.ids import AttemptId, JobId
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import Unknown, Write
from stado_worker.checkpoints.restore import Restored, Restoring
from stado_worker.checkpoints.scan import scan
from stado_worker.checkpoints.sending import Sender, Sizes
from stado_worker.shim.preparing import GivenUp
from tests.builders_jobs import Clock

J = JobId("default", "train", 1)
SMALL = Sizes(small=64, pack=256, part=128)


class Watched(MemoryStore):
    """`before_put(key)` runs before each upload of a file."""

    before_put: Callable[[str], None] = staticmethod(lambda key: None)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        self.before_put(key)
        return super().put_file(key, file)


class Bench:
    """One task: a store, and a directory for each attempt."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = Clock()
        self.clock.now_s = 4e9  # every file was written long ago
        self.inner = Watched(str(place), self.clock)
        self.meter = Meter()
        self.bucket = Bucket(MeteredStore(self.inner, self.meter), ambient=self.clock)
        self.shelf = Shelf(J, 0)
        self.said: list[str] = []

    def attempt(self, n: int) -> AttemptId:
        return AttemptId(J, 0, n)

    def folder(self, n: int) -> Path:
        path = self.place / f"attempt-{n}"
        path.mkdir(exist_ok=True)
        return path

    def sender(self, n: int = 1, keep: int = 2, sizes: Sizes = SMALL) -> Sender:
        return Sender(
            self.bucket, self.shelf, self.attempt(n), os.fsencode(self.folder(n)), keep, lambda s: False, sizes=sizes
        )

    def restoring(self, n: int) -> Restoring:
        return Restoring(self.bucket, os.fsencode(self.folder(n)), self.said.append, lambda s: False)

    def next(self, n: int, keep: int = 2) -> tuple[Sender, Restored | None, list[str]]:
        """Attempt `n`, laid out from what the earlier ones left."""
        restoring = self.restoring(n)
        restored = restoring.newest(self.shelf, before=n)
        sender = self.sender(n, keep)
        sender.start_from(restoring.held, restored)
        return sender, restored, restoring.notes

    @property
    def keys(self) -> list[str]:
        return [row.key for row in self.inner.list("checkpoints/").rows]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def tree(folder: Path) -> dict[str, Any]:
    """Everything below a folder: mode and content."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name, mode = str(path.relative_to(folder)), stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = oct(mode)
        elif path.is_file():
            found[name] = (oct(mode), path.read_bytes(), path.stat().st_mtime_ns)
    return found


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_any_name_any_mode_links_and_empty_folders_come_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    here = bench.folder(1)
    names = ["plain", "a b/c%2f", "ü/é", os.fsdecode(b"\xff\xfe\n\t"), "-rf", "x" * 255, "deep/" * 20 + "end", ".hid"]
    for number, name in enumerate(names):
        write(here, name, name.encode(errors="surrogateescape") * number)
    write(here, "large", os.urandom(1000)).chmod(0o600)
    write(here, "run", b"#!/bin/sh").chmod(0o755)
    write(here, "nothing", b"")
    (here / "empty/inside").mkdir(parents=True)
    (here / "empty").chmod(0o750)
    (here / "latest").symlink_to("deep/deep")
    (here / "ü/up").symlink_to("../plain")
    (here / "ü/here").symlink_to(here / "plain")
    (here / "dangling").symlink_to("not-yet")
    os.mkfifo(here / "pipe")
    (here / "out").symlink_to("/etc/passwd")
    (here / "climbs").symlink_to("../../elsewhere")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(here)  # a socket's path is short
        server.bind("sock")
        sender = bench.sender()
        assert sender.save() == Ref(1, 1)
    notes = " ".join(sender.notes)
    assert "climbs, out not in the checkpoint: a link that leads out" in notes
    assert "pipe, sock not in the checkpoint: neither a file" in notes
    _, restored, told = bench.next(2)
    assert restored is not None and told == []
    wanted = {name: one for name, one in tree(here).items() if name not in ("out", "climbs")}
    wanted["ü/here"] = "../plain"
    assert tree(bench.folder(2)) == wanted
    assert bench.said == [f"Restoring checkpoint 1 of attempt 1 ({restored.manifest.size_bytes / 1024:.1f} KiB)"]


def test_only_what_changed_is_sent_and_a_quiet_round_costs_nothing(bench: Bench) -> None:
    here = bench.folder(1)
    for n in range(20):
        write(here, f"small/{n}", bytes([n]) * 50)
    write(here, "large", b"".join(bytes([n]) * 128 for n in range(5)))
    sender = bench.sender()
    assert sender.save() == Ref(1, 1)
    assert len(bench.keys) == 5 + 4 + 1  # parts, packs of 256 bytes, the manifest
    before = bench.meter.snapshot()
    assert sender.save() is None
    os.utime(here / "small/3", ns=(1, 1))
    assert sender.save() is None  # touched, and the same bytes
    assert bench.meter.snapshot() == before
    write(here, "large", b"".join(bytes([n]) * 128 for n in range(6)))
    write(here, "copy", bytes([4]) * 50)
    assert sender.save() == Ref(1, 2)
    assert len(bench.keys) == 5 + 4 + 1 + 1 + 1  # one more part; the copy is there already; the second manifest
    (here / "small/7").unlink()
    (here / "small/8").rename(here / "renamed")
    (here / "copy").chmod(0o700)
    assert sender.save() == Ref(1, 3)
    assert len(bench.keys) == 11 + 1


def test_newest_are_kept_across_attempts_and_their_blobs(bench: Bench) -> None:
    here = bench.folder(1)
    stays = write(here, "stays", os.urandom(500))
    sender = bench.sender(keep=2)
    for step in range(5):
        write(here, "step", os.urandom(200))
        assert sender.save() == Ref(1, step + 1)
    held = checkpoints.held(bench.bucket, bench.shelf)
    assert held.newest_first == [Ref(1, 5), Ref(1, 4)]
    assert len(held.blobs) == 4 + 2 + 2  # stays, and two of each of the steps
    second, restored, _ = bench.next(2, keep=2)
    assert restored is not None and restored.manifest.ref == Ref(1, 5)
    write(bench.folder(2), "step", os.urandom(200))
    assert second.save() == Ref(2, 1)
    held = checkpoints.held(bench.bucket, bench.shelf)
    assert held.newest_first == [Ref(2, 1), Ref(1, 5)]
    assert {n for n, _ in held.blobs} == {1, 2} and len([n for n, _ in held.blobs if n == 2]) == 2
    write(bench.folder(2), "step", os.urandom(200))
    assert second.save() == Ref(2, 2)
    third, restored, notes = bench.next(3)
    assert restored is not None and restored.manifest.ref == Ref(2, 2) and notes == []
    assert (bench.folder(3) / "stays").read_bytes() == stays.read_bytes()
    assert third.save() is None


def test_programs_own_objects_are_not_touched(bench: Bench) -> None:
    own = [f"{keys.checkpoints_of(bench.attempt(1))}{name}" for name in ("mine", "step/1", "blob.x", "manifest.1.json")]
    for key in own:
        bench.inner.put(key, b"x")
    here = bench.folder(1)
    sender = bench.sender(keep=1)
    for _ in range(4):
        write(here, "step", os.urandom(100))
        sender.save()
    second, restored, _ = bench.next(2, keep=1)
    assert restored is not None
    write(bench.folder(2), "step", os.urandom(100))
    second.save()
    assert set(own) <= set(bench.keys)
    assert len(bench.keys) == len(own) + 2


def test_prefix_is_a_folder_of_the_attempts_place(bench: Bench) -> None:
    bench.shelf = Shelf(J, 0, "run-7/state")
    write(bench.folder(1), "a", b"x")
    assert bench.sender().save() == Ref(1, 1)
    assert all(key.startswith(f"{keys.checkpoints_of(bench.attempt(1))}run-7/state/") for key in bench.keys)
    assert checkpoints.held(bench.bucket, bench.shelf).newest_first == [Ref(1, 1)]
    assert checkpoints.held(bench.bucket, Shelf(J, 0)).newest_first == []
    assert bench.next(2)[1] is not None


def test_zombie_that_was_ended_removes_nothing_and_has_its_own_place(bench: Bench) -> None:
    """Whoever cleans up looks for its own end after it published."""
    zombie = bench.sender(1, keep=1)
    write(bench.folder(1), "step", b"1" * 100)
    assert zombie.save() == Ref(1, 1)
    bench.inner.put(keys.end(bench.attempt(1)), b"{}")  # declared dead
    second, restored, _ = bench.next(2, keep=1)
    assert restored is not None and restored.manifest.ref == Ref(1, 1)
    write(bench.folder(1), "step", b"2" * 100)
    assert zombie.save() == Ref(1, 2)  # it does not know yet
    assert checkpoints.held(bench.bucket, bench.shelf).newest_first == [Ref(1, 2), Ref(1, 1)]
    write(bench.folder(2), "other", b"3" * 100)
    assert second.save() == Ref(2, 1)
    _, restored, notes = bench.next(3, keep=1)
    assert restored is not None and restored.manifest.ref == Ref(2, 1) and notes == []
    assert (bench.folder(3) / "step").read_bytes() == b"1" * 100


def test_blobs_that_a_zombie_may_remove_are_not_taken_over(bench: Bench) -> None:
    sender = bench.sender(1, keep=2)
    write(bench.folder(1), "a", b"1" * 100)
    sender.save()
    write(bench.folder(1), "a", b"2" * 100)
    sender.save()
    second, _, _ = bench.next(2)
    write(bench.folder(2), "a", b"1" * 100)  # lies there, in a checkpoint that is not the newest
    second.save()
    assert second.published is not None and {blob.n for blob in second.published.blobs} == {2}


@pytest.mark.parametrize("harm", ["missing", "other bytes", "short", "manifest", "manifest gone wild"])
def test_damaged_newest_is_told_and_the_one_before_it_taken(bench: Bench, harm: str) -> None:
    sender = bench.sender()
    write(bench.folder(1), "step", b"1" * 100)
    write(bench.folder(1), "other", b"other" * 10)
    sender.save()
    write(bench.folder(1), "step", b"2" * 100)
    sender.save()
    assert sender.published is not None
    before = sender._known[Ref(1, 1)].blobs
    (blob,) = sender.published.blobs - before
    key, manifest = bench.shelf.blob(1, blob.digest), bench.shelf.manifest(Ref(1, 2))
    if harm == "missing":
        bench.inner.delete(key)
    elif harm == "other bytes":
        bench.inner.put(key, b"3" * 100)
    elif harm == "short":
        bench.inner.put(key, b"2" * 99)
    elif harm == "manifest":
        bench.inner.put(manifest, b"{}")
    else:
        body = checkpoint.encode(sender.published).replace(b'"step"', b'"../step"')
        bench.inner.put(manifest, body)
    second, restored, notes = bench.next(2)
    assert restored is not None and restored.manifest.ref == Ref(1, 1) and not restored.is_newest
    assert len(notes) == 1 and notes[0].startswith("checkpoint 2 of attempt 1 was not restored: ")
    assert (bench.folder(2) / "step").read_bytes() == b"1" * 100
    assert not (bench.place / "step").exists()
    assert second.save() == Ref(2, 1)  # whole again, without what the damaged one was made of
    assert second.published is not None and {blob.n for blob in second.published.blobs} == {2}
    for blob in before:
        bench.inner.delete(bench.shelf.blob(1, blob.digest))
    assert bench.next(3)[1] is not None


def test_nothing_whole_is_a_start_without_and_leaves_the_folder_as_it_is(bench: Bench) -> None:
    sender = bench.sender()
    write(bench.folder(1), "step", b"1" * 100)
    sender.save()
    for key in bench.keys:
        if "blob" in key:
            bench.inner.delete(key)
    write(bench.folder(2), "of the bundle", b"x")
    _, restored, notes = bench.next(2)
    assert restored is None and len(notes) == 1 and "1 of the 1 objects" in notes[0]


def test_what_lay_there_before_goes_when_a_checkpoint_is_laid_out(bench: Bench, tmp_path: Path) -> None:
    sender = bench.sender()
    write(bench.folder(1), "step", b"1" * 100)
    sender.save()
    kept = write(tmp_path / "outside", "kept", b"x")
    write(bench.folder(2), "step", b"old")
    write(bench.folder(2), "deep/newer", b"old")
    (bench.folder(2) / "link").symlink_to(kept.parent)
    _, restored, _ = bench.next(2)
    assert restored is not None
    assert os.listdir(bench.folder(2)) == ["step"] and kept.exists()


HARMFUL = {
    "climbs": {"files": [["../x", 420, 1, 0, "", []]]},
    "is absolute": {"files": [["/etc/x", 420, 1, 0, "", []]]},
    "below a link": {"links": [["a", "b"]], "files": [["a/x", 420, 1, 0, "", []]]},
    "below a file": {"files": [["a", 420, 1, 0, "", []], ["a/x", 420, 1, 0, "", []]]},
    "twice": {"files": [["a", 420, 1, 0, "", []]], "links": [["a", "b"]]},
    "a link outside": {"links": [["a", "../../etc"]]},
    "an absolute link": {"links": [["a", "/etc"]]},
    "a NUL": {"files": [["a%00", 420, 1, 0, "", []]]},
    "pieces that do not add up": {"files": [["a", 420, 1, 5, "", []]]},
    "a blob of a later attempt": {"blobs": [[9, "0" * 64, 1]]},
    "a blob without a name": {"blobs": [[1, "../x", 1]]},
    "a piece behind its blob": {"blobs": [[1, "0" * 64, 1]], "files": [["a", 420, 1, 2, "", [[0, 0, 2]]]]},
    "a negative size": {"files": [["a", 420, 1, -1, "", []]]},
    "no lists": {"files": 5},
}


@pytest.mark.parametrize("what", HARMFUL)
def test_manifest_that_leaves_its_directory_is_refused(what: str) -> None:
    whole = {"attempt": "a", "seq": 1, "at": 1.0, "blobs": [], "directories": [], "links": [], "files": []}
    checkpoint.decode(checkpoint.codec.encode(whole), "key", 1)
    with pytest.raises(BadRecord, match="key"):
        checkpoint.decode(checkpoint.codec.encode({**whole, **HARMFUL[what]}), "key", 1)


# ---- while the program writes


def test_file_that_changes_while_it_is_sent_is_taken_when_it_stands_still(bench: Bench) -> None:
    here = bench.folder(1)
    write(here, "large", b"a" * 1000)
    changes = [b"c" * 1000, b"b" * 1000]

    def change(key: str) -> None:
        if changes:
            write(here, "large", changes.pop())

    bench.inner.before_put = change  # type: ignore[method-assign]
    sender = bench.sender()
    assert sender.save() == Ref(1, 1)
    bench.next(2)
    assert (bench.folder(2) / "large").read_bytes() == b"c" * 1000


def test_file_replaced_by_renames_all_the_time_is_taken_as_it_was_at_one_moment(bench: Bench) -> None:
    here = bench.folder(1)
    write(here, "count", b"0" * 50)
    write(here, "large", b"0" * 500)
    number = iter(range(1, 10**6))

    def count(key: str) -> None:
        for name, size in (("count", 50), ("large", 500)):
            write(here, "new", str(next(number) % 10).encode() * size).rename(here / name)

    bench.inner.before_put = count  # type: ignore[method-assign]
    sender = bench.sender()
    assert sender.save() == Ref(1, 1)
    bench.next(2)
    for name, size in (("count", 50), ("large", 500)):
        content = (bench.folder(2) / name).read_bytes()
        assert len(content) == size and len(set(content)) == 1


def test_file_that_never_stands_still_is_as_it_was_before_or_left_for_the_next_round(bench: Bench) -> None:
    here = bench.folder(1)
    write(here, "busy", b"first" * 100)
    write(here, "calm", b"calm")
    sender = bench.sender()
    assert sender.save() == Ref(1, 1)
    number = iter(range(10**6))

    def scribble(key: str) -> None:
        write(here, "busy", os.urandom(500) + str(next(number)).encode())
        write(here, "new", os.urandom(500))

    bench.inner.before_put = scribble  # type: ignore[method-assign]
    scribble("")
    write(here, "calm", b"calmer")
    assert sender.save() == Ref(1, 2)
    assert sorted(sender.late) == [b"busy", b"new"]
    _, restored, _ = bench.next(2)
    assert restored is not None
    assert {name: (bench.folder(2) / name).read_bytes() for name in os.listdir(bench.folder(2))} == {
        "busy": b"first" * 100,
        "calm": b"calmer",
    }
    bench.inner.before_put = lambda key: None  # type: ignore[method-assign]
    assert sender.save() == Ref(1, 3) and sender.late == ()
    bench.next(3)
    assert (bench.folder(3) / "busy").read_bytes() == (here / "busy").read_bytes()


def test_bytes_that_change_under_a_file_whose_times_do_not_are_noticed(bench: Bench) -> None:
    """As a mapped file's do: what was sent is not what was read before."""
    here = bench.folder(1)
    path = write(here, "mapped", b"a" * 100)
    os.utime(path, ns=(1, 1))
    once = iter([1])

    def scribble(key: str) -> None:
        if next(once, 0):
            with path.open("r+b") as file:
                file.write(b"b")
            os.utime(path, ns=(1, 1))

    bench.inner.before_put = scribble  # type: ignore[method-assign]
    assert bench.sender().save() == Ref(1, 1)
    bench.next(2)
    assert (bench.folder(2) / "mapped").read_bytes() == b"b" + b"a" * 99
    assert len([key for key in bench.keys if "blob" in key]) == 1


def test_directory_replaced_by_a_link_sends_nobody_outside(bench: Bench, tmp_path: Path) -> None:
    here = bench.folder(1)
    write(tmp_path / "outside", "secret", b"s" * 100)
    write(here, "dir/secret", b"mine" * 25)

    def swap(key: str) -> None:
        if not (here / "dir").is_symlink():
            (here / "dir").rename(here / "was")
            (here / "dir").symlink_to(tmp_path / "outside")

    write(here, "before", b"x" * 100)
    bench.inner.before_put = swap  # type: ignore[method-assign]
    sender = bench.sender()
    assert sender.save() is not None
    bench.next(2)
    assert sorted(tree(bench.folder(2))) == ["before", "was", "was/secret"]
    assert all(b"ssss" not in (bench.inner.get(key) or pytest.fail(key)).body for key in bench.keys if "blob" in key)


def test_files_that_may_not_be_read_are_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    here = bench.folder(1)
    write(here, "secret", b"x")
    write(here, "open", b"x")
    real = os.open

    def refusing(path: Any, *rest: Any, **more: Any) -> int:
        if path == b"secret":
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    sender = bench.sender()
    assert sender.save() == Ref(1, 1)
    assert sender.notes == ("secret not in the checkpoint: Permission denied",)
    assert sender.save() is None


# ---- the store


def test_outage_in_the_middle_leaves_no_checkpoint_and_is_made_up_for(bench: Bench) -> None:
    here = bench.folder(1)
    write(here, "large", os.urandom(1000))
    sent = []

    real = bench.inner.put_file

    def failing(key: str, file: BinaryIO) -> Write:
        if len(sent) == 3:
            return Unknown("away")
        sent.append(key)
        return real(key, file)

    bench.inner.put_file = failing  # type: ignore[method-assign]
    sender = bench.sender()
    with pytest.raises(StoreUnavailable):
        sender.save()
    assert checkpoints.held(bench.bucket, bench.shelf).newest_first == []
    bench.inner.put_file = real  # type: ignore[method-assign]
    assert sender.save() == Ref(1, 1)
    assert len(bench.keys) == 8 + 1
    assert bench.next(2)[1] is not None


def test_shared_blob_of_which_little_is_used_is_not_kept_for_the_rest(bench: Bench) -> None:
    here = bench.folder(1)
    for n in range(5):
        write(here, f"{n}", bytes([n]) * 50)
    sender = bench.sender(keep=1)
    sender.save()
    for n in range(4):
        (here / f"{n}").unlink()
    sender.save()
    sizes = [len(found.body) for key in bench.keys if "blob" in key and (found := bench.inner.get(key))]
    assert sizes == [50]
    bench.next(2)
    assert os.listdir(bench.folder(2)) == ["4"]


def test_preparation_that_is_given_up_ends(bench: Bench) -> None:
    write(bench.folder(1), "a", os.urandom(10_000))
    bench.sender().save()
    count = iter(range(100))
    restoring = Restoring(bench.bucket, os.fsencode(bench.folder(2)), bench.said.append, lambda s: next(count) > 10)
    with pytest.raises(GivenUp):
        restoring.newest(bench.shelf, before=2)


def test_two_thousand_small_files_take_a_few_requests(bench: Bench) -> None:
    here = bench.folder(1)
    for n in range(2000):
        write(here, f"{n // 100}/{n}", os.urandom(20))
    assert bench.sender(sizes=Sizes()).save() == Ref(1, 1)
    assert len(bench.keys) == 2
    bench.next(2)
    assert scan(os.fsencode(bench.folder(2))).links == {} and tree(bench.folder(2)) == tree(here)
