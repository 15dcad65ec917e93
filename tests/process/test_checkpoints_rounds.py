"""Directories saved and laid out again: names, changes under way, what is sent, what is kept, what is damaged."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stado_like.bucket import checkpoints
from stado_like.errors import BadRecord
from stado_like.job import checkpoint, keys
from stado_like.job.checkpoint import Ref
from stado_like.job.checkpoint_keys import Shelf
from tests.builders_checkpoints import Bench, J, tree, write


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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
