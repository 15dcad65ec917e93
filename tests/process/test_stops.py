"""Stops as control makes them: which of several prevails, what a task is told, when it is warned and when killed.

Time is moved by hand, and the process is a script."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stado_like.job.records import Claim, Job
from stado_like.job.states import Cause
from stado_like.job.terms import terms_of
from stado_worker.shim.control import Control
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.life import RANK_OF_STOP, Life, Over, StopAsked
from stado_worker.shim.preparing import Prepared
from stado_worker.shim.runner import Gone
from stado_worker.shim.stop_file import iso_milliseconds
from stado_worker.shim.task import Read, Task, read_of
from tests.builders_jobs import Clock

GRACE_S = 30
ORDER = (
    (Cause.REQUESTED,),
    (Cause.TIME_LIMIT,),
    (Cause.STALLED,),
    (Cause.GANG, Cause.BARRIER),
    (Cause.REQUEUED,),
    (Cause.MOVED,),
    (Cause.PREEMPTED,),
    (Cause.MACHINE_LOST,),
)
"""Verdict or a person's stop, time limit, gang, moved, preempted; a stall is the task's own, a requeue a person's."""


@dataclass
class Script:
    """A process that ends when a signal it does not ignore reaches it. `told`: what the stop file said then."""

    stop_file: Path
    ignores: bool = True
    exits: Exit | None = None
    oom: bool = False
    signals: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)

    def prepared(self, ready: Prepared) -> None:
        raise AssertionError(ready)

    def start(self) -> None:
        return

    def leader_exit(self) -> Exit | None:
        return self.exits

    def others_alive(self) -> bool:
        return False

    def signal(self, name: str) -> None:
        self.signals.append(name)
        self.told.append(json.loads(self.stop_file.read_text()) if self.stop_file.exists() else {})
        if not self.ignores:
            self.exits = Exit(0)

    def finish(self, within_s: float) -> Gone:
        self.exits = self.exits or Exit(137, "SIGKILL")
        return Gone(self.exits, out_of_memory=self.oom)

    def freeze(self) -> None:
        self.signals.append("freeze")

    def thaw(self) -> None:
        return

    def wait_fd(self) -> int | None:
        return None


class Bench:
    def __init__(self, place: Path, **template: Any) -> None:
        self.clock = Clock()
        document = {
            "metadata": {"name": "train"},
            "spec": {"task_template": {"command": "x", "heartbeat_ttl_seconds": 3600, **template}},
        }
        job = Job(
            nonce="n", request_id="r", workspace="default", name="train", incarnation=1, created_ms=1, document=document
        )
        attempt = "default.train.1.00000.000001"
        task = Task(
            attempt=attempt,
            store="memory://x",
            worker="w1",
            claim=Claim(nonce="c", attempt=attempt, worker="w1"),
            job=job,
            claimed_boot_s=self.clock.boot_s(),
            claimed_at=self.clock.now_s,
            grace_s=GRACE_S,
        )
        self.read: Read = read_of(task)
        assert self.read.terms == terms_of(document)
        self.life = Life(self.clock, task.claimed_at, task.claimed_boot_s)
        self.stop_file = place / "stop"
        self.script = Script(self.stop_file)
        self.control = Control(self.read, self.life, self.script, self.stop_file, self.clock)
        self.control.step()
        self.control.step()
        assert self.control.started

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stop_file.read_text())
        return found

    def over(self) -> Over | None:
        return self.life.over

    def stop(self) -> StopAsked | None:
        return self.life.stop

    def pass_s(self, seconds: float) -> None:
        self.clock.now_s += seconds
        self.control.step()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_cause_of_a_stop_has_its_rank() -> None:
    ranked = [cause for causes in ORDER for cause in causes]
    assert sorted(ranked) == sorted(RANK_OF_STOP)
    by_rank = sorted(ORDER, key=lambda causes: RANK_OF_STOP[causes[0]])
    assert tuple(by_rank) == ORDER


@pytest.mark.parametrize(
    ("first", "second"),
    list(itertools.permutations([cause for causes in ORDER for cause in causes], 2)),
    ids=lambda cause: cause.value,
)
def test_graver_stop_prevails_also_during_grace(tmp_path: Path, first: Cause, second: Cause) -> None:
    """Rule: verdict or stop, then time limit, gang, moved, preempted; the deadline of the first one is kept."""
    bench = Bench(tmp_path)
    rank = {cause: number for number, causes in enumerate(ORDER) for cause in causes}
    wins = second if rank[second] < rank[first] else first
    bench.life.ask_stop(first, f"first, {first}")
    bench.control.step()
    deadline = bench.told()["deadline"]
    bench.pass_s(5)
    bench.life.ask_stop(second, f"second, {second}")
    bench.control.step()
    told = bench.told()
    said_as = Cause.MOVED if wins is Cause.MACHINE_LOST else wins
    assert (told["cause"], told["deadline"], told["grace_seconds"]) == (said_as.value, deadline, GRACE_S)
    assert bench.script.signals == ["SIGTERM"], "a second stop signals nobody again"
    bench.pass_s(GRACE_S)
    over = bench.over()
    assert over is not None and over.cause is wins
    assert over.reason.endswith(str(wins))


def test_stop_file_is_whole_before_the_signal_with_every_field(bench: Bench) -> None:
    bench.life.ask_stop(Cause.PREEMPTED, "Preempted by higher-priority work (urgent)")
    began_s = bench.life.now()
    bench.control.step()
    assert bench.script.told == [
        {
            "cause": "preempted",
            "reason": "Preempted by higher-priority work (urgent)",
            "signal": "SIGTERM",
            "grace_seconds": GRACE_S,
            "deadline": iso_milliseconds(began_s + GRACE_S),
            "attempt": 1,
            "restarts": True,
        }
    ]


@pytest.mark.parametrize("cause", sorted(RANK_OF_STOP))
@pytest.mark.parametrize("policy", ["OnFailure", "Never"])
def test_stop_file_says_whether_it_starts_again_as_the_end_will_decide(
    tmp_path: Path, cause: Cause, policy: str
) -> None:
    bench = Bench(tmp_path, restart_policy=policy)
    bench.life.ask_stop(cause, "why")
    bench.control.step()
    always = cause in (Cause.PREEMPTED, Cause.MOVED, Cause.GANG, Cause.BARRIER, Cause.REQUEUED)
    by_policy = cause in (Cause.STALLED, Cause.MACHINE_LOST)
    assert bench.told()["restarts"] is (always or (by_policy and policy == "OnFailure"))


def test_preemption_that_is_one_too_many_says_that_it_is_the_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, resilience={"max_retries_preemption": 0})
    bench.life.ask_stop(Cause.PREEMPTED, "why")
    bench.control.step()
    assert bench.told()["restarts"] is False


def test_grace_is_the_jobs_own_below_the_machines_ceiling(tmp_path: Path) -> None:
    for number, (own, grace_s) in enumerate(((None, GRACE_S), (5, 5), (3600, 3600))):
        place = tmp_path / str(number)
        place.mkdir()
        bench = Bench(place, **({"stop_grace_seconds": own} if own else {}))
        bench.life.ask_stop(Cause.REQUESTED, "why")
        bench.control.step()
        bench.pass_s(grace_s - 0.1)
        assert bench.over() is None
        bench.pass_s(0.1)
        over = bench.over()
        assert over is not None and f"killed after {grace_s} s of grace" in over.notes


def test_time_limit_counts_from_running_and_is_never_followed_by_a_restart(tmp_path: Path) -> None:
    bench = Bench(tmp_path, time_limit_seconds=7200, restart_policy="Always")
    bench.pass_s(3000)
    bench.pass_s(3000)
    bench.pass_s(1199)
    assert bench.stop() is None
    bench.pass_s(1)
    stop = bench.stop()
    assert stop is not None and stop.reason == "Exceeded its time limit of 2h"
    assert (bench.told()["cause"], bench.told()["restarts"]) == ("time-limit", False)


WARNED = {"time_limit_seconds": 7200, "resilience": {"signal_before_limit": {"signal": "SIGUSR1", "seconds": 120}}}


def test_task_is_warned_once_before_its_limit_and_no_stop_file_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, **WARNED)
    bench.pass_s(3500)
    bench.pass_s(3579)
    assert bench.script.signals == []
    assert 0 < bench.control.step() <= 1, "it wakes in time"
    for _ in range(3):
        bench.pass_s(1)
    assert bench.script.signals == ["SIGUSR1"]
    assert not bench.stop_file.exists()
    (change,) = [one for one in bench.life.history.changes if one.cause == "time-limit"]
    assert (change.state, change.reason) == ("Running", "Sent SIGUSR1 2m before its time limit of 2h")
    bench.pass_s(120)
    assert bench.script.signals == ["SIGUSR1", "SIGTERM"]


def test_task_that_is_being_stopped_is_not_warned(tmp_path: Path) -> None:
    bench = Bench(tmp_path, **WARNED, stop_grace_seconds=600)
    bench.pass_s(3500)
    bench.pass_s(3579)
    bench.life.ask_stop(Cause.PREEMPTED, "why")
    for _ in range(3):
        bench.pass_s(1)
    assert bench.script.signals == ["SIGTERM"]


def test_slept_through_its_warning_it_is_stopped_and_not_warned(tmp_path: Path) -> None:
    bench = Bench(tmp_path, **WARNED)
    bench.pass_s(3599)
    bench.clock.now_s += 3601
    bench.control.step()
    assert "SIGUSR1" not in bench.script.signals


@pytest.mark.parametrize("cause", [Cause.REQUESTED, Cause.PREEMPTED, Cause.TIME_LIMIT])
def test_out_of_memory_under_a_stop_keeps_the_stop_and_is_said(bench: Bench, cause: Cause) -> None:
    """OOM shown as "terminated by user" or silent restart: neither hides the other."""
    bench.life.ask_stop(cause, "why")
    bench.control.step()
    bench.script.oom, bench.script.exits = True, Exit(137, "SIGKILL")
    bench.control.step()
    over = bench.over()
    assert over is not None and (over.cause, over.reason) == (cause, "why")
    assert any(note.startswith("OOMKilled") for note in over.notes)


def test_out_of_memory_and_a_stop_in_the_same_look_is_out_of_memory(bench: Bench) -> None:
    """Nobody had told it anything yet: it ended by itself."""
    bench.life.ask_stop(Cause.REQUESTED, "why")
    bench.script.oom, bench.script.exits = True, Exit(137, "SIGKILL")
    bench.control.step()
    over = bench.over()
    assert over is not None and over.cause is Cause.FAILURE
    assert over.reason == "OOMKilled: the container exceeded its memory limit"


def test_child_that_was_killed_for_memory_does_not_undo_exit_0(bench: Bench) -> None:
    bench.script.oom, bench.script.exits = True, Exit(0)
    bench.control.step()
    over = bench.over()
    assert over is not None and (over.cause, over.reason) == (Cause.NONE, "Exited with code 0")
    assert any(note.startswith("OOMKilled") for note in over.notes)
