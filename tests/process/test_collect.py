"""The files that a task leaves: into the store, and from there below a directory, never outside it."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from stado_like import fetching
from stado_like.bucket import submit
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, NotFound
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Collected, CollectedFile
from stado_like.job.spec.validate import validate
from stado_like.store.local import LocalStore
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Unknown, Write
from stado_worker.shim.collect import GaveUp, collect, notes_of
from tests.contract.stepped_ambient import SteppedAmbient


class Stingy(MemoryStore):
    """Puts of files go wrong a few times."""

    def __init__(self, name: str, failing: int) -> None:
        super().__init__(name)
        self.failing = failing

    def put_file(self, key: str, file: BinaryIO) -> Write:
        if self.failing:
            self.failing -= 1
            file.read(3)
            return Unknown("503")
        return super().put_file(key, file)


class Place:
    """A working directory, and a store that collected files go to."""

    def __init__(self, root: Path, store: Any = None, *, tasks: int = 1) -> None:
        self.cwd = root / "cwd"
        self.cwd.mkdir()
        self.ambient = SteppedAmbient()
        self.bucket = Bucket(store or LocalStore(str(root / "store"), durable=False), ambient=self.ambient)
        document: dict[str, Any] = {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}}}
        document["spec"]["collect"] = ["*"]
        if tasks > 1:
            document["spec"]["array"] = {"size": tasks}
        done = submit.submit(self.bucket, validate(document))
        assert isinstance(done, submit.Submitted)
        self.j: JobId = done.id

    def write(self, path: str, text: str = "x") -> Path:
        made = self.cwd / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text)
        return made

    def collect(self, *patterns: str, n: int = 1, rank: int = 0, **more: Any) -> Collected:
        a = AttemptId(self.j, rank, n)
        return collect(self.bucket, a, self.cwd, patterns, lambda seconds: self._waited(seconds), **more)

    def _waited(self, seconds: float) -> bool:
        self.ambient.sleep(seconds)
        return False

    def fetch(self, into: Path, **more: Any) -> list[fetching.Fetched]:
        return fetching.fetch(self.bucket, self.j, into, **more)


def paths(made: Collected) -> list[str]:
    return [one.path for one in made.files]


def why(made: Collected) -> dict[str, str]:
    return {one.path: one.why for one in made.left_out}


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["a.txt"], ["a.txt"]),
        (["./sub/../a.txt"], ["a.txt"]),
        (["*.txt"], ["a.txt", "b.txt"]),
        (["sub"], ["sub/c.txt", "sub/deep/d.bin"]),
        (["sub/"], ["sub/c.txt", "sub/deep/d.bin"]),
        (["**/*.txt"], ["a.txt", "b.txt", "sub/c.txt"]),
        (["sub/*"], ["sub/c.txt", "sub/deep/d.bin"]),
        (["[ab].txt", "a.txt"], ["a.txt", "b.txt"]),
        (["odd[1].log"], ["odd[1].log"]),
    ],
)
def test_paths_globs_and_folders(tmp_path: Path, patterns: Sequence[str], found: list[str]) -> None:
    place = Place(tmp_path)
    for name in ("a.txt", "b.txt", "sub/c.txt", "sub/deep/d.bin", "odd[1].log", ".hidden"):
        place.write(name)
    made = place.collect(*patterns)
    assert (paths(made), made.left_out) == (found, ())


def test_working_directory_with_wildcards_in_its_name_is_taken_as_it_stands(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.cwd = tmp_path / "run[1]*"
    place.write("a.txt")
    assert paths(place.collect("*.txt")) == ["a.txt"]


def test_manifest_tells_names_sizes_digests_and_modes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("out/model é.pt", "weights").chmod(0o750)
    place.write("empty", "")
    made = place.collect("out", "empty")
    stored = place.bucket.read(Collected, keys.collected(AttemptId(place.j, 0, 1)))
    assert stored is not None
    assert stored.record == made
    first = made.files[0]
    assert (first.name, first.path, first.size_bytes, first.mode) == ("000001-model_.pt", "out/model é.pt", 7, 0o750)
    assert (made.size_bytes, made.left_out_count) == (7, 0)


def test_missing_files_are_noted_and_an_empty_folder_too(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.cwd / "empty").mkdir()
    made = place.collect("gone", "*.pt", "empty")
    assert why(made) == {"gone": "there is no such file", "*.pt": "nothing matches it", "empty": "an empty folder"}
    assert all(one.missing for one in made.left_out)


def test_links_that_leave_and_special_files_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    (tmp_path / "secret").write_text("outside")
    inside = place.write("real.txt", "inside")
    (place.cwd / "out").mkdir()
    (place.cwd / "out" / "good").symlink_to(inside)
    (place.cwd / "out" / "bad").symlink_to(tmp_path / "secret")
    (place.cwd / "out" / "etc").symlink_to("/etc")
    (place.cwd / "out" / "broken").symlink_to("nowhere")
    os.mkfifo(place.cwd / "out" / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(place.cwd / "out")  # a socket's path must be short
    listening.bind("sock")
    made = place.collect("out", "out/etc")
    listening.close()
    assert paths(made) == ["out/good"]
    assert why(made)["out/bad"] == "a link that leaves the folder it was asked for in"
    assert why(made)["out/broken"] == "there is no such file"
    assert {path.rsplit("/", 1)[-1] for path in why(made)} >= {"bad", "broken", "etc", "pipe", "sock"}


def test_absolute_path_is_collected_and_fetched_below_the_directory(tmp_path: Path) -> None:
    place = Place(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    (data / "x.csv").write_text("1,2")
    made = place.collect(str(data / "*.csv"), str(data))
    assert paths(made) == [str(data / "x.csv")]
    place.fetch(tmp_path / "got")
    assert contents(tmp_path / "got") == {str(data / "x.csv").lstrip("/"): "1,2"}


def test_over_the_cap_what_fits_in_order_is_kept(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name, size in (("a", 60), ("b", 50), ("c", 40)):
        place.write(name, "x" * size)
    made = place.collect("a", "b", "c", most_bytes=100)
    assert paths(made) == ["a", "c"]
    assert why(made)["b"].startswith("it has 50 bytes, and 40 bytes of 100 bytes were free")
    assert "collect_max" in notes_of(made)[0]
    done = place.fetch(tmp_path / "got")
    assert not done[0].is_whole


def test_name_that_is_no_text_is_kept_and_fetched(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (place.cwd / os.fsdecode(b"bad\xff.txt")).write_text("x")
    made = place.collect("*.txt")
    assert paths(made) == ["bad\\xff.txt"]
    place.fetch(tmp_path / "got")
    assert contents(tmp_path / "got") == {"bad\\xff.txt": "x"}


def test_lost_answers_are_sent_again_from_the_beginning(tmp_path: Path) -> None:
    place = Place(tmp_path, Stingy(str(tmp_path), 3))
    place.write("a", "whole")
    made = place.collect("a")
    assert paths(made) == ["a"]
    place.fetch(tmp_path / "got")
    assert contents(tmp_path / "got") == {"a": "whole"}


def test_store_that_takes_nothing_leaves_the_file_out_in_time(tmp_path: Path) -> None:
    place = Place(tmp_path, Stingy(str(tmp_path), 10_000))
    place.write("a")
    made = place.collect("a", within_s=60.0)
    assert why(made) == {"a": "the store did not take it in time"}
    assert sum(place.ambient.slept) < 120


def test_attempt_that_nobody_wants_gives_up_and_leaves_no_manifest(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a")
    a = AttemptId(place.j, 0, 1)
    with pytest.raises(GaveUp):
        collect(place.bucket, a, place.cwd, ["a"], lambda seconds: True)
    assert place.bucket.present(keys.collected(a)) == [False]


# ---- fetch


def test_newest_attempt_with_a_manifest_is_fetched(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a", "one")
    place.collect("a", n=1)
    place.write("a", "two")
    place.collect("a", n=2)
    for n in (1, 2, 3):
        place.bucket.store.put(f"status/default/train.1/00000/heartbeat.{n:06d}", b"{}")
    place.bucket.store.put(keys.collected_file(AttemptId(place.j, 0, 3), "000001-a"), b"three, cut short")
    assert [one.attempt for one in place.fetch(tmp_path / "got")] == [2]
    assert contents(tmp_path / "got") == {"a": "two"}
    place.fetch(tmp_path / "first", attempt=1)
    assert contents(tmp_path / "first") == {"a": "one"}


def test_several_tasks_have_a_folder_each(tmp_path: Path) -> None:
    place = Place(tmp_path, tasks=3)
    place.write("a")
    for rank in (0, 2):
        place.collect("a", rank=rank)
    place.fetch(tmp_path / "got")
    assert set(contents(tmp_path / "got")) == {"train-0/a", "train-2/a"}
    place.fetch(tmp_path / "one", task=2)
    assert set(contents(tmp_path / "one")) == {"train-2/a"}
    with pytest.raises(NotFound, match="nothing was collected of task 1"):
        place.fetch(tmp_path / "none", task=1)
    with pytest.raises(NotFound, match="no task 7"):
        place.fetch(tmp_path / "none", task=7)
    assert not (tmp_path / "none").exists()


def test_same_files_are_left_and_others_refuse_before_anything_is_written(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a", "new")
    place.write("b", "new")
    place.collect("a", "b")
    got = tmp_path / "got"
    place.fetch(got)
    (got / "a").write_text("mine")
    (got / "b").unlink()
    with pytest.raises(Conflict, match="1 of the files are there already"):
        place.fetch(got)
    assert contents(got) == {"a": "mine"}
    place.fetch(got, force=True)
    assert contents(got) == {"a": "new", "b": "new"}
    place.fetch(got)


def test_modes_come_back(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("run.sh").chmod(0o755)
    place.collect("run.sh")
    place.fetch(tmp_path / "got")
    assert (tmp_path / "got" / "run.sh").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "path", ["../out", "a/../../out", "..", "", "/", ".", "a/\0b", "/../../out"], ids=lambda path: repr(path)
)
def test_path_of_a_bad_manifest_never_leaves_the_directory(tmp_path: Path, path: str) -> None:
    place = Place(tmp_path)
    place.write("a", "evil")
    made = place.collect("a")
    bad = replace(made, files=(replace(made.files[0], path=path), made.files[0]))
    place.bucket.put(keys.collected(AttemptId(place.j, 0, 1)), bad)
    before = contents(tmp_path)
    (done,) = place.fetch(tmp_path / "got")
    assert list(done.failed) == [path]
    assert {name for name in contents(tmp_path) if name not in before} == {"got/a"}


@pytest.mark.parametrize("name", ["../../../jobs/default/train.1.json", "manifest.json", "000001/../x", ""])
def test_name_of_a_bad_manifest_reads_no_other_object(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path)
    place.write("a")
    made = place.collect("a")
    bad = replace(made, files=(replace(made.files[0], name=name),))
    place.bucket.put(keys.collected(AttemptId(place.j, 0, 1)), bad)
    (done,) = place.fetch(tmp_path / "got")
    assert list(done.failed) == ["a"]
    assert contents(tmp_path / "got") == {}


def test_links_in_the_directory_are_not_followed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("out/a", "evil")
    place.write("top", "evil")
    place.collect("out", "top")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    got = tmp_path / "got"
    got.mkdir()
    (got / "out").symlink_to(elsewhere)
    (got / "top").symlink_to(elsewhere / "top")
    (done,) = place.fetch(got, force=True)
    assert list(done.failed) == ["out/a"]
    assert contents(elsewhere) == {}
    assert (got / "top").read_text() == "evil"
    assert not (got / "top").is_symlink()


@pytest.mark.parametrize("damage", ["other bytes", "shorter", "gone"])
def test_what_is_not_what_the_manifest_says_is_not_written(tmp_path: Path, damage: str) -> None:
    place = Place(tmp_path)
    place.write("a", "right")
    place.write("b", "right")
    place.collect("a", "b")
    key = keys.collected_file(AttemptId(place.j, 0, 1), "000001-a")
    if damage == "gone":
        place.bucket.store.delete(key)
    else:
        place.bucket.store.put(key, b"wrong" if damage == "other bytes" else b"ri")
    (done,) = place.fetch(tmp_path / "got")
    assert list(done.failed) == ["a"]
    assert contents(tmp_path / "got") == {"b": "right"}


def test_two_files_of_one_place_do_not_hide_each_other(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("a")
    made = place.collect("a")
    twin: CollectedFile = replace(made.files[0], path="/a")
    place.bucket.put(keys.collected(AttemptId(place.j, 0, 1)), replace(made, files=(*made.files, twin)))
    (done,) = place.fetch(tmp_path / "got")
    assert done.failed == {"/a": "another file has the place a"}
