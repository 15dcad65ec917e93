"""How commands end, and how they are stopped, on a real worker: exits, signals, grace, limits, what is left behind."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from stado_like.bucket import cancel
from stado_like.job import keys
from stado_like.job.records import Pointer, Verdict
from stado_like.job.states import Cause, JobState, Outcome, TaskState
from tests.process.rig import Rig, carrying, until

pytestmark = pytest.mark.serial


def test_grandchild_holds_stdout_completed_at_once_and_it_is_gone(shared: Rig) -> None:
    """Time limit passes, runner hangs: a grandchild keeps stdout open."""
    began_s = time.monotonic()
    j = shared.submit("grandchild", "sleep 301.5 & exit 0")
    end = shared.end(j)
    assert time.monotonic() - began_s < 3
    assert (end.outcome, end.exit_code, end.signal) == (Outcome.COMPLETED, 0, None)
    assert end.ended_at - end.running_at < 2
    assert carrying("sleep 301.5") == set()
    assert any("outlived" in note for note in end.notes)


@pytest.mark.parametrize(
    ("name", "script", "code", "signal_name"),
    [
        ("exit-137", "exit 137", 137, None),
        ("killed-9", "kill -9 $$", 137, "SIGKILL"),
        ("killed-15", "kill -15 $$", 143, "SIGTERM"),
        ("exit-3", "exit 3", 3, None),
    ],
)
def test_exit_status_is_told_from_signal(
    shared: Rig, name: str, script: str, code: int, signal_name: str | None
) -> None:
    """OOM-killed step recorded as success: a negative return code tested for > 0."""
    j = shared.submit(name, script, task={"restart_policy": "Never"})
    end = shared.end(j)
    assert (end.outcome, end.state, end.cause) == (Outcome.FAILED, TaskState.FAILED, Cause.FAILURE)
    assert (end.exit_code, end.signal) == (code, signal_name)


def test_command_not_found_is_127_and_says_which(shared: Rig) -> None:
    j = shared.submit("missing", ["no-such-program-anywhere"], task={"restart_policy": "Never"})
    end = shared.end(j)
    assert (end.outcome, end.exit_code) == (Outcome.FAILED, 127)
    assert "no-such-program-anywhere" in end.reason


def test_missing_working_directory_has_no_exit_code(shared: Rig) -> None:
    j = shared.submit("no-cwd", "true", cwd="/no/such/directory", task={"restart_policy": "Never"})
    end = shared.end(j)
    assert (end.outcome, end.exit_code, end.signal) == (Outcome.FAILED, None, None)
    assert "/no/such/directory" in end.reason


def test_ignored_sigterm_stop_file_before_signal_killed_at_grace(shared: Rig) -> None:
    """SIGKILL at once, no chance to save: TERM first, KILL at grace."""
    script = "exec 2>/dev/null; trap 'cat \"$STADO_STOP_FILE\"' TERM; echo ready; while :; do sleep 0.05; done"
    j = shared.submit("ignores", script, task={"stop_grace_seconds": 2})
    shared.running(j)
    asked_s = time.monotonic()
    cancel.cancel_job(shared.bucket, j, reason="no longer wanted")
    end = shared.end(j)
    took_s = time.monotonic() - asked_s
    assert (end.outcome, end.state, end.cause) == (Outcome.CANCELLED, TaskState.CANCELLED, Cause.REQUESTED)
    assert (end.exit_code, end.signal, end.reason) == (137, "SIGKILL", "no longer wanted")
    assert "killed after 2 s of grace" in end.notes
    assert 2 <= took_s < 5
    told = json.loads(shared.output(j).decode().removeprefix("ready\n"))
    assert set(told) == {"cause", "reason", "signal", "grace_seconds", "deadline", "attempt", "restarts"}
    assert (told["cause"], told["signal"], told["attempt"], told["restarts"]) == ("requested", "SIGTERM", 1, False)
    assert (told["grace_seconds"], told["reason"]) == (2, "no longer wanted")


def test_handler_that_saves_and_exits_0_is_cancelled_with_exit_0(shared: Rig) -> None:
    script = "exec 2>/dev/null; trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    j = shared.submit("saves", script)
    shared.running(j)
    cancel.cancel_job(shared.bucket, j)
    end = shared.end(j, within_s=5)
    assert (end.outcome, end.exit_code, end.signal, end.is_final) == (Outcome.CANCELLED, 0, None, True)
    assert shared.output(j) == b"ready\nsaved\n"


def test_whole_tree_gets_the_grace_not_only_the_leader(shared: Rig) -> None:
    """The leader ends at once; a member of its group that needs a second to save still gets it."""
    child = "trap 'sleep 0.7; echo child saved; exit 0' TERM; while :; do sleep 0.05; done"
    script = f"sh -c '{child.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}' & trap 'exit 0' TERM; wait"
    j = shared.submit("tree", script)
    shared.running(j)
    cancel.cancel_job(shared.bucket, j)
    end = shared.end(j, within_s=6)
    assert end.outcome is Outcome.CANCELLED
    assert b"child saved" in shared.output(j)


def test_time_limit_is_final_and_failed(shared: Rig) -> None:
    j = shared.submit("limit", "exec sleep 300", time_limit_s=2)
    end = shared.end(j, within_s=8)
    assert (end.outcome, end.state, end.cause, end.is_final) == (
        Outcome.CANCELLED,
        TaskState.FAILED,
        Cause.TIME_LIMIT,
        True,
    )
    assert end.reason == "Exceeded its time limit of 2s"
    assert end.signal == "SIGTERM"


def test_cancel_begins_within_two_seconds(shared: Rig) -> None:
    j = shared.submit("quick-cancel", "exec 2>/dev/null; trap 'date +%s.%N; exit 0' TERM; while :; do sleep 0.02; done")
    shared.running(j)
    asked = time.time()
    cancel.cancel_job(shared.bucket, j)
    shared.end(j, within_s=5)
    assert float(shared.output(j)) - asked < 2


def test_stop_of_one_task_leaves_the_others(shared: Rig) -> None:
    j = shared.submit(
        "one-of-three",
        "trap 'exit 0' TERM; [ $RANK = 1 ] || sleep 1.5; while [ $RANK = 1 ]; do sleep 0.02; done",
        array={"size": 3},
    )
    shared.running(j, rank=1)
    asked_s = time.monotonic()
    cancel.stop_task(shared.bucket, j, 1, reason="this one only")
    stopped = shared.end(j, rank=1)
    assert time.monotonic() - asked_s < 2
    assert (stopped.outcome, stopped.reason) == (Outcome.CANCELLED, "this one only")
    assert [shared.end(j, rank=rank).outcome for rank in (0, 2)] == [Outcome.COMPLETED] * 2
    final = until(lambda: shared.bucket.final(j), 5, "the job's final")
    assert final.state.value == "Cancelled"


def test_lost_ring_cancel_begins_within_a_quarter_ttl(shared: Rig) -> None:
    j = shared.submit("no-ring", "exec sleep 300")
    shared.running(j)
    asked_s = time.monotonic()
    verdict = Verdict(nonce=shared.bucket.token(), state=JobState.CANCELLED, reason="unheard", early=True)
    shared.bucket.decide(keys.verdict(j), verdict)
    shared.bucket.ensure(keys.cancel_index(j), Pointer(what="unheard"))  # and nobody rings
    end = shared.end(j, within_s=6)
    assert time.monotonic() - asked_s < 10 / 4 + 1.0
    assert (end.outcome, end.reason) == (Outcome.CANCELLED, "unheard")


def test_failing_command_restarts_and_ends_with_its_budget(shared: Rig) -> None:
    j = shared.submit("fails", "exit 1", resilience={"max_restarts": 2})
    n, end = shared.last(j)
    assert (n, end.budgets.failures) == (3, 2)
    assert end.reason == "Retry budget exhausted after 2/2 restarts for its own failures; the last: Exited with code 1"
    first, second = shared.end(j, n=1), shared.end(j, n=2)
    assert 0.99 < first.due_ms / 1000 - first.ended_at < 1.01
    assert second.started_at >= first.due_ms / 1000 - 0.05
    assert second.started_at - first.due_ms / 1000 < 1.5


def test_always_runs_again_after_exit_0(shared: Rig, tmp_path: Path) -> None:
    j = shared.submit("always", f"echo x >> {tmp_path}/runs", task={"restart_policy": "Always"})
    shared.end(j, n=2)
    assert shared.end(j, n=1).budgets.failures == 0
    cancel.cancel_job(shared.bucket, j)
    n, end = shared.last(j)
    assert end.outcome in (Outcome.CANCELLED, Outcome.COMPLETED)
    assert end.is_final
    assert (tmp_path / "runs").read_text() in ("x\n" * (n - 1), "x\n" * n)
