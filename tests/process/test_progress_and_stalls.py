"""What a supervisor makes of a task's progress file, and of its silence: real files, a clock that is stepped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from stado_like.bucket.bucket import Bucket
from stado_like.errors import CredentialsRefused, StoreUnavailable
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, Job
from stado_like.job.states import Cause, Event, TaskState
from stado_like.job.terms import Stall
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Page
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.heartbeat import Io
from stado_worker.shim.life import Gate, Life
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.progress import AT_ONCE_BYTES, LONGEST_LINE_BYTES, WHOLE_BYTES, ProgressFile
from stado_worker.shim.signs import watch_of
from stado_worker.shim.stall import Watch
from stado_worker.shim.task import Task, read_of
from tests.contract.stepped_ambient import SteppedAmbient

# ---- the progress file


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_appended_lines_are_read_on_and_the_last_value_counts(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    assert not file.look(1.0)
    append(path, "step=1 total=10\n")
    assert file.look(2.0)
    assert (file.values, file.at) == ({"step": 1, "total": 10}, 2.0)
    assert not file.look(3.0)
    append(path, "step=2\nloss=0.5\n")
    assert file.look(4.0)
    assert (file.values, file.at) == ({"step": 2, "total": 10, "loss": 0.5}, 4.0)


def test_file_that_is_written_anew_each_time_counts_also_at_the_same_size(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    for at, text in enumerate(["step=9\n", "step=8\n", "step=10\n", "s=1\n"], 1):
        path.write_text(text)
        os.utime(path, ns=(at, at))
        assert file.look(float(at))
    assert file.values == {"s": 1}


def test_file_that_is_replaced_by_rename_is_read_anew(tmp_path: Path) -> None:
    path, fresh = tmp_path / "progress", tmp_path / "fresh"
    file = ProgressFile(path)
    for step in (1, 2):
        fresh.write_text(f"step={step}")
        fresh.rename(path)
        file.look(0.0)
        file.look(0.0)  # no line's end: it counts once the file rests
        assert file.values == {"step": step}


def test_half_a_line_counts_when_the_file_rests_or_the_task_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    file = ProgressFile(path)
    append(path, "loss=0.31\nloss=0.2")
    file.look(1.0)
    assert file.values == {"loss": 0.31}
    append(path, "9\n")
    file.look(2.0)
    assert file.values == {"loss": 0.29}
    append(path, "loss=0.1")
    file.look(3.0, ended=True)
    assert file.values == {"loss": 0.1}


def test_large_file_is_read_in_parts_and_every_look_catches_up(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_text("total=7\n" + "".join(f"step={step}\n" for step in range(100_000)))
    assert path.stat().st_size > 2 * AT_ONCE_BYTES > WHOLE_BYTES
    file = ProgressFile(path)
    file.look(1.0)
    first = file.values["step"]
    for _ in range(5):
        file.look(2.0)
    assert isinstance(first, int)
    assert 0 < first < 99_999
    assert file.values == {"total": 7, "step": 99_999}
    append(path, "step=100000\n")
    file.look(3.0)
    assert file.values == {"total": 7, "step": 100_000}


@pytest.mark.parametrize("garbage", [b"\x00\xff" * 50_000, b"x" * (LONGEST_LINE_BYTES * 3), b"a b c\n" * 1000])
def test_garbage_is_counted_and_does_not_hide_what_comes_after(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "progress"
    path.write_bytes(garbage + b"\nstep=1\n")
    file = ProgressFile(path)
    file.read_to_end(1.0)
    assert file.values == {"step": 1}
    assert file.ignored > 0


def test_pipe_link_or_folder_says_nothing_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link", "folder"):
        file = ProgressFile(tmp_path / name)
        assert not file.look(1.0, ended=True)
        assert file.values == {}


def test_steps_are_kept_only_where_tasks_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    alone, member = ProgressFile(path), ProgressFile(path, window_s=300.0)
    for step in range(3):
        append(path, f"step={step}\n")
        alone.look(step * 100.0)
        member.look(step * 100.0)
    assert alone.steps == ()
    assert member.steps == ((0.0, 0.0), (100.0, 1.0), (200.0, 2.0))


# ---- silence


class Scene:
    """A running task that is watched: its log, its progress, what the store says of its checkpoints."""

    def __init__(self, folder: Path, after_s: int = 1800, *, restart: bool = False) -> None:
        self.ambient = SteppedAmbient(wall_s=1_800_000_000.0)
        self.life = Life(self.ambient, claimed_at=500.0, claimed_boot_s=self.ambient.boot_s())
        self.progress = folder / "progress"
        self.saves = folder / "saves"
        self.log_bytes = 0
        self.in_store_s: Callable[[], float | None] = lambda: None
        self.watch = Watch(
            self.life,
            self.ambient,
            ProgressFile(self.progress),
            lambda: self.log_bytes,
            stall=Stall(after_s, restart),
            checkpoint_dir=self.saves,
            checkpoint_age_s=lambda: self.in_store_s(),
        )
        self.life.move(Event.START, "Process started")
        self.life.move(Event.RUN, "Process running")

    def step(self, seconds: float) -> None:
        """Looks every cadence, as the I/O thread does."""
        while seconds > 0:
            passed = min(seconds, self.watch.cadence_s)
            self.ambient.sleep(passed)
            self.watch.look()
            seconds -= passed

    def stalled(self) -> dict[str, float] | None:
        return None if self.life.stalled is None else dict(self.life.stalled)

    @property
    def told(self) -> list[str]:
        return [change.reason for change in self.life.history.changes]


def test_silent_task_is_marked_once_and_unmarked_when_it_writes(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.step(1799)
    assert scene.stalled() is None
    scene.step(20)
    assert scene.stalled() == {"since": 500.0, "after_seconds": 1800}
    assert scene.life.reason == "Stalled: no log, checkpoint or progress for 30m"
    assert scene.life.state is TaskState.RUNNING
    scene.step(3600)
    assert sum("Stalled" in reason for reason in scene.told) == 1
    scene.log_bytes += 1
    scene.step(10)
    assert scene.stalled() is None
    assert scene.life.reason.startswith("Process running: it writes again, after 1h30m")
    assert scene.life.stop is None


@pytest.mark.parametrize("sign", ["log", "progress"])
def test_every_sign_begins_the_silence_anew(tmp_path: Path, sign: str) -> None:
    scene = Scene(tmp_path)
    for number in range(4):
        scene.step(1700)
        if sign == "log":
            scene.log_bytes += 1
        else:
            append(scene.progress, f"step={number}\n")
        scene.step(10)
        assert scene.stalled() is None
    scene.step(1800)
    assert scene.stalled() is not None


def test_checkpoint_here_or_in_the_store_is_a_sign_of_its_own_age(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.saves.mkdir()
    (scene.saves / "deep").mkdir()
    saved = scene.saves / "deep" / "model"
    saved.write_text("weights")
    for path, age_s in ((saved, 1000), (scene.saves / "deep", 5000)):
        os.utime(path, (scene.ambient.wall_s() - age_s,) * 2)
    scene.step(1800)
    assert scene.stalled() is None  # it saved 1000 s ago
    os.utime(saved, (scene.ambient.wall_s() - 9000,) * 2)
    scene.step(790)
    assert scene.stalled() is None
    scene.in_store_s = lambda: 60.0
    scene.step(20)
    assert scene.stalled() is None
    scene.in_store_s = lambda: 9000.0
    scene.step(1760)
    assert scene.stalled() is not None
    scene.in_store_s = lambda: 5.0
    scene.step(460)
    assert scene.stalled() is None


def test_store_that_does_not_answer_is_no_evidence(tmp_path: Path) -> None:
    scene = Scene(tmp_path, restart=True)

    def unreachable() -> float | None:
        raise StoreUnavailable("no answer", "")

    scene.step(1795)
    scene.in_store_s = unreachable
    with pytest.raises(StoreUnavailable):
        scene.step(10)
    assert (scene.stalled(), scene.life.stop) == (None, None)


def test_suspended_machine_and_frozen_tree_are_not_its_silence(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.step(100)
    scene.ambient.sleep(50_000)  # a lid was closed
    scene.watch.look()
    assert scene.stalled() is None
    scene.life.gate = Gate.ASKED
    scene.step(5000)
    assert scene.stalled() is None
    scene.life.gate = Gate.PASSED
    scene.step(1660)
    assert scene.stalled() is None
    scene.step(60)
    assert scene.stalled() is not None


def test_time_before_running_and_under_a_stop_does_not_count(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.step(1700)
    scene.life.move(Event.ASK_STOP, "Stopped on request")
    scene.step(5000)
    assert scene.stalled() is None


def test_stall_with_restart_asks_for_a_stop_in_the_published_words(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 7200, restart=True)
    scene.step(7210)
    stop = scene.life.stop
    assert stop is not None
    assert stop.cause is Cause.STALLED
    assert stop.reason == "Stalled, restarted by its run's policy: no log, checkpoint or progress for 2h"


def test_short_limit_is_looked_at_more_often(tmp_path: Path) -> None:
    assert Scene(tmp_path, 2).watch.cadence_s == 0.5
    assert Scene(tmp_path, 1800).watch.cadence_s == 10.0


class NoLists(MemoryStore):
    """A store whose credentials may not list, as a worker's need not in every place."""

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        raise CredentialsRefused("may not list", "")


def test_heartbeats_go_on_when_the_store_would_not_be_asked_about_checkpoints(tmp_path: Path) -> None:
    """Healthy job cancelled because its status could not be read: here, because its silence could not be judged."""
    ambient = SteppedAmbient()
    bucket = Bucket(NoLists(str(tmp_path), ambient=ambient), ambient=ambient)
    template = {"command": "x", "heartbeat_ttl_seconds": 40}
    resilience = {"stall": {"after_seconds": 60, "restart": True}}
    document = {"metadata": {"name": "train"}, "spec": {"task_template": {**template, "resilience": resilience}}}
    j = JobId("default", "train", 1)
    job = Job(
        nonce="n", request_id="r", workspace="default", name="train", incarnation=1, created_ms=1, document=document
    )
    claim = Claim(nonce="c", attempt=str(AttemptId(j, 0, 1)), worker="w1")
    task = Task(
        attempt=claim.attempt, store="memory://x", worker="w1", claim=claim, job=job, claimed_boot_s=ambient.boot_s()
    )
    read = read_of(task)
    life = Life(ambient, 0.0, ambient.boot_s())
    folder = AttemptDir.make(tmp_path, claim.attempt)
    shipping = LogShipping(bucket, read.a, folder.log)
    watch = watch_of(read, life, bucket, folder, shipping, ambient)
    io = Io(read, life, bucket, folder, shipping, ambient, watch=watch)
    life.move(Event.START, "Process started")
    life.move(Event.RUN, "Process running")
    while ambient.boot_s() < 1_300:
        wait_s = io.step()
        assert wait_s is not None
        ambient.sleep(max(wait_s, 0.01))
    found = bucket.heartbeat(read.a)
    assert found is not None
    assert found.record.seq > 25
    assert (life.stop, life.stalled) == (None, None)
    assert "may not list" in io.complaint
