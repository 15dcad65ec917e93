"""Directories saved while their program writes, while the store is away, and when nobody waits for it any more."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from stado_like.ambient import REAL
from stado_like.bucket import checkpoints
from stado_like.errors import StoreUnavailable
from stado_like.job.checkpoint import Ref
from stado_like.store.protocol import Unknown, Write
from stado_worker.checkpoints.restore import Restoring
from stado_worker.checkpoints.saving import Saver
from stado_worker.checkpoints.scan import scan
from stado_worker.checkpoints.sending import Sender, Sizes
from stado_worker.shim.life import Life
from stado_worker.shim.preparing import GivenUp
from tests.builders_checkpoints import Bench, tree, write
from tests.process.rig import until


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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


# ---- when the process is gone


def ended(bench: Bench, sender: Sender, final_s: float = 60.0) -> Saver:
    """A saver whose process has just gone, once it is finished."""
    life = Life(REAL, 0.0, REAL.boot_s())
    saver = Saver(life, REAL, 3600.0, final_s)
    saver.begin(sender)
    until(saver.is_finished, 20, "the last round is over")
    return saver


def test_how_old_the_newest_of_what_was_saved_is_known(bench: Bench) -> None:
    """What the program did since then is lost with it: whoever must stop somebody asks for the least."""
    here = bench.folder(1)
    for name, ago_s in (("old", 5000), ("new", 100)):
        write(here, name, b"x")
        os.utime(here / name, (REAL.wall_s() - ago_s,) * 2)
    life = Life(REAL, 0.0, REAL.boot_s())
    saver = Saver(life, REAL, 3600.0, 60.0)
    saver.begin(bench.sender())
    until(saver.is_finished, 20, "the last round is over")
    assert life.now() - life.saved_at == pytest.approx(100, abs=5)


def test_directory_that_the_program_removed_holds_nothing_up_and_forgets_nothing(bench: Bench) -> None:
    here = bench.folder(1)
    write(here, "state", b"x")
    sender = bench.sender()
    assert sender.save() == Ref(1, 1)
    shutil.rmtree(here)
    saver = ended(bench, sender)
    assert (saver.saved, saver.notes) == (True, ())
    restored = bench.next(2)[1]
    assert restored is not None and restored.manifest.ref == Ref(1, 1)


def test_trouble_of_the_disk_is_not_waited_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    write(bench.folder(1), "state", b"x")

    def refusing(path: Any, *rest: Any, **more: Any) -> Any:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", refusing)
    saver = ended(bench, bench.sender())
    assert not saver.saved
    (note,) = saver.notes
    assert note == "its last checkpoint was not uploaded: [Errno 5] Input/output error; it saved none before"


def test_without_time_for_a_last_upload_none_is_begun(bench: Bench) -> None:
    write(bench.folder(1), "state", b"x")
    saver = ended(bench, bench.sender(), final_s=0)
    assert not saver.saved and bench.keys == []
    assert saver.notes == ("its last checkpoint was not uploaded within 0 s; it saved none before",)
