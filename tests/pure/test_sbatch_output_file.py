"""The file of a task's output: its name as Slurm expands it, and whose file is replaced by what.

The rows of `NAMES` are what Slurm 22.05 wrote, for the same patterns.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stado_worker.shim.output_file import NO_INDEX, begin, expand, finish, is_written_by, values_of

SLURM = {
    "SLURM_JOB_ID": "36",
    "SLURM_JOB_NAME": "e.sh",
    "SLURMD_NODENAME": "vm.cluster.local",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "0",
}
ARRAY = {**SLURM, "SLURM_ARRAY_JOB_ID": "35", "SLURM_ARRAY_TASK_ID": "3"}

NAMES = [
    ("o-%5a-%A-%j-%x-%N-%t-%n-%u-%%-%3x-%J-%s.txt", "o-00003-35-36-e.sh-vm-0-0-root-%-e.sh-36-batch.txt"),
    ("%12j", "0000000036"),
    ("%q-%z", "%q-%z"),
    (r"p2\%j.txt", "p2%j.txt"),
    ("%%j", "%j"),
    ("p%%.%", "p%.%"),
    ("%5%", "5%"),
    ("plain.log", "plain.log"),
]


@pytest.mark.parametrize(("pattern", "name"), NAMES, ids=[row[0] for row in NAMES])
def test_a_pattern_is_expanded_as_slurm_does(pattern: str, name: str) -> None:
    assert expand(pattern, values_of(ARRAY, "root")) == name


def test_a_job_that_is_no_array_has_slurms_number_for_none() -> None:
    assert expand("%A-%a", values_of(SLURM, "root")) == f"36-{NO_INDEX}"


def test_a_jobs_name_makes_no_folder() -> None:
    assert expand("%x", values_of({**SLURM, "SLURM_JOB_NAME": "../a/b"}, "root")) == ".._a_b"


@pytest.mark.parametrize(
    ("pattern", "rank", "together", "writes"),
    [
        ("o", 0, 4, True),
        ("o", 1, 4, False),
        ("o-%t", 1, 4, True),
        ("o-%2N", 3, 4, True),
        ("o-%%t", 1, 4, False),
        ("o", 3, 1, True),
    ],
)
def test_one_file_of_a_gang_is_written_by_its_first_member(
    pattern: str, rank: int, together: int, writes: bool
) -> None:
    assert is_written_by(pattern, rank, together) is writes


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "attempts" / "default.a.1.00000.000001"
    folder.mkdir(parents=True)
    (folder / "log").write_bytes(b"one\n")
    return folder / "log"


def beside(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry.name != "attempts")


def test_the_file_follows_the_log_and_stays_as_a_copy(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "job.out"
    assert begin(path, log) == ""
    with log.open("ab") as out:
        out.write(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    assert finish(path, log) == ""
    log.unlink()
    assert not path.is_symlink()
    assert path.read_bytes() == b"one\ntwo\n"
    assert beside(path) == ["job.out"]


def test_a_file_that_was_there_is_replaced(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "job.out"
    path.write_text("of yesterday")
    assert (begin(path, log), path.read_bytes()) == ("", b"one\n")


def test_a_later_attempt_takes_the_file_and_an_earlier_one_leaves_it(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "job.out"
    later = log.parent.parent / "default.a.1.00000.000002" / "log"
    later.parent.mkdir()
    later.write_text("later")
    assert begin(path, log) == begin(path, later) == ""
    assert "is not this attempt's any more" in finish(path, log)
    assert path.read_text() == "later"
    assert (finish(path, later), path.is_symlink(), path.read_text()) == ("", False, "later")


def test_a_file_that_the_script_moved_away_stays_away(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "job.out"
    begin(path, log)
    path.rename(tmp_path / "result.out")
    assert "is not this attempt's any more" in finish(path, log)
    assert not path.exists()


def test_a_persons_link_is_followed(tmp_path: Path, log: Path) -> None:
    (tmp_path / "latest.out").symlink_to("real.out")
    assert begin(tmp_path / "latest.out", log) == finish(tmp_path / "latest.out", log) == ""
    assert os.readlink(tmp_path / "latest.out") == "real.out"
    assert (tmp_path / "real.out").read_bytes() == b"one\n"
    assert not (tmp_path / "real.out").is_symlink()


def test_a_directory_that_does_not_exist_is_a_note(tmp_path: Path, log: Path) -> None:
    note = begin(tmp_path / "logs" / "job.out", log)
    assert f"the directory {tmp_path / 'logs'} does not exist" in note
    assert not (tmp_path / "logs").exists()


def test_a_directory_and_a_pipe_are_not_touched(tmp_path: Path, log: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert "it is a directory" in begin(tmp_path / "folder", log)
    assert "it is no regular file" in begin(tmp_path / "pipe", log)
    assert "no regular file" in begin(Path("/dev/null"), log)
    assert beside(tmp_path / "pipe") == ["folder", "pipe"]
    assert Path("/dev/null").is_char_device()


def test_a_ring_of_links_is_a_note(tmp_path: Path, log: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "No output file at" in begin(tmp_path / "a", log)


def test_of_a_long_log_the_end_is_copied(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "job.out"
    log.write_bytes(b"0123456789")
    begin(path, log)
    assert "holds the last 4 bytes of the output; 6 before them" in finish(path, log, most_bytes=4)
    assert path.read_bytes() == b"6789"


def test_a_log_that_is_gone_is_a_note_and_leaves_nothing_behind(tmp_path: Path, log: Path) -> None:
    path = tmp_path / "job.out"
    begin(path, log)
    log.unlink()
    assert "No copy of the output at" in finish(path, log)
    assert beside(path) == ["job.out"]
