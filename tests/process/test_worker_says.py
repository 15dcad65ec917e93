"""What tasks of a real worker say and leave: progress while they run, stalls, outputs, collected files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from stado_like import fetching
from stado_like.bucket import cancel
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Heartbeat
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.reading.shapes import job_json, progress_json
from stado_like.reading.view import read_job
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial


def left(rig: Rig, j: JobId, into: Path) -> dict[str, str]:
    fetching.fetch(rig.bucket, j, into)
    return {str(path.relative_to(into)): path.read_text() for path in into.rglob("*") if path.is_file()}


def test_progress_travels_in_the_heartbeat_and_the_end(shared: Rig) -> None:
    script = (
        "echo step=1 total=10 loss=0.5 >> $STADO_PROGRESS; while [ ! -e $STADO_STOP_FILE.go ]; do sleep 0.05; done; "
        "echo step=10 >> $ASTRAEUS_PROGRESS; exit 3"
    )
    j = shared.submit("says", script, task={"restart_policy": "Never"})

    def look() -> Heartbeat | None:
        beat = shared.beat(j)
        return beat if beat is not None and beat.progress else None

    beat = until(look, 20, "a heartbeat tells the progress")
    assert beat.progress == {"step": 1, "total": 10, "loss": 0.5}
    assert beat.progress_at >= beat.running_at > 0
    shown = progress_json(read_job(shared.bucket, j))["workers"][0]
    assert shown["progress"] == {"step": 1, "total": 10, "loss": 0.5}
    folder = shared.state / "w1" / "attempts" / str(AttemptId(j, 0, 1))
    (folder / "stop.go").touch()
    end = shared.end(j)
    assert end.progress == {"step": 10, "total": 10, "loss": 0.5}
    assert (end.exit_code, end.outcome) == (3, Outcome.FAILED)
    assert job_json(read_job(shared.bucket, j))["tasks"][0]["progress"] == {"step": 10, "total": 10, "loss": 0.5}


def test_stalled_task_is_stopped_and_started_again_by_its_policy(shared: Rig) -> None:
    script = (
        'if [ "$STADO_ATTEMPT" = 1 ]; then trap "cat $STADO_STOP_FILE; exit 0" TERM; while :; do sleep 0.1; done; fi; '
        'echo "$STADO_RESTART_CAUSE: $STADO_RESTART_REASON"'
    )
    j = shared.submit("stalls", script, resilience={"stall": {"after_seconds": 1, "restart": True}})
    end = shared.end(j)
    assert (end.cause, end.outcome, end.decision) == (Cause.STALLED, Outcome.FAILED, Decision.RETRY)
    assert end.reason == "Stalled, restarted by its run's policy: no log, checkpoint or progress for 1s"
    assert (end.budgets.failures, end.exit_code) == (1, 0)
    assert [change.state for change in end.history.changes][-3:] == ["Running", "Stopping", "Failed"]
    assert end.history.changes[-3].reason == "Stalled: no log, checkpoint or progress for 1s"
    assert b'"cause": "stalled"' in shared.output(j)
    n, last = shared.last(j)
    assert (n, last.state) == (2, TaskState.COMPLETED)
    assert shared.output(j, n=2).decode().startswith("stalled: Stalled, restarted by its run's policy: ")


def test_stalled_task_without_restart_is_marked_until_it_writes(shared: Rig) -> None:
    script = "while [ ! -e $STADO_STOP_FILE.go ]; do sleep 0.05; done; echo again; while :; do sleep 0.1; done"
    j = shared.submit("marked", script, resilience={"stall": {"after_seconds": 1}})

    def stalled(wanted: bool) -> Heartbeat | None:
        beat = shared.beat(j)
        return beat if beat is not None and beat.running_at and bool(beat.stall) is wanted else None

    beat = until(lambda: stalled(True), 20, "it is marked")
    assert (beat.state, beat.stall["after_seconds"]) == (TaskState.RUNNING, 1)
    shown = progress_json(read_job(shared.bucket, j))["workers"][0]
    assert (shown["stall"]["after_seconds"], shown["state"]) == (1, "Running")
    (shared.state / "w1" / "attempts" / str(AttemptId(j, 0, 1)) / "stop.go").touch()
    cleared = until(lambda: stalled(False), 20, "the mark goes")
    assert "writes again" in cleared.reason or "writes again" in str(cleared.history)
    cancel.cancel_job(shared.bucket, j)
    assert shared.end(j).cause is Cause.REQUESTED


@pytest.mark.parametrize("code", [0, 7])
def test_outputs_answer_and_files_are_kept_and_change_nothing_about_the_end(
    shared: Rig, tmp_path: Path, code: int
) -> None:
    script = (
        "echo name=value with spaces >> $STADO_OUTPUTS; mkdir -p out/deep; echo 42 > answer.txt; echo w > out/deep/m; "
        f"ln -s /etc/passwd out/leaves; exit {code}"
    )
    task = {"restart_policy": "Never", "outputs": {"answer_path": "answer.txt"}}
    j = shared.submit(f"leaves{code}", script, collect=["out", "gone"], task=task)
    end = shared.end(j)
    assert (end.exit_code, end.outcome) == (code, Outcome.FAILED if code else Outcome.COMPLETED)
    assert (end.outputs, end.answer) == ({"name": "value with spaces"}, "42\n")
    assert end.collected == {"files": 1, "size_bytes": 2, "left_out": 2}
    assert end.notes == (
        "Not collected: out/leaves: a link that leaves the folder it was asked for in",
        "Not collected: gone: there is no such file",
    )
    assert left(shared, j, tmp_path) == {"out/deep/m": "w\n"}


def test_heartbeats_go_on_while_files_are_collected(shared: Rig, tmp_path: Path) -> None:
    """Without them the tick would take the machine for lost and run the whole task again."""
    j = shared.submit("slow", "mkdir out; i=0; while [ $i -lt 400 ]; do echo $i > out/$i; i=$((i+1)); done; "
                      "head -c 200000000 /dev/zero > out/big", collect=["out"])  # fmt: skip
    seen: set[str] = set()

    def ended() -> bool:
        beat = shared.beat(j)
        if beat is not None:
            seen.add(beat.reason)
        return shared.bucket.end(AttemptId(j, 0, 1)) is not None

    until(ended, 60, "it ends")
    end = shared.end(j)
    assert end.collected["files"] == 401
    assert seen & {"Collecting its files (1 asked for)"}
    assert end.ended_at - end.running_at < 30


def test_cancelled_task_keeps_what_it_saved(shared: Rig, tmp_path: Path) -> None:
    script = 'trap "echo saved > state; exit 0" TERM; echo ready=1 > $STADO_PROGRESS; while :; do sleep 0.05; done'
    j = shared.submit("cancelled", script, collect=["state"])

    def ready() -> bool:
        beat = shared.beat(j)
        return beat is not None and beat.progress == {"ready": 1}

    until(ready, 15, "it is ready")
    cancel.cancel_job(shared.bucket, j)
    end = shared.end(j)
    assert (end.outcome, end.cause) == (Outcome.CANCELLED, Cause.REQUESTED)
    assert left(shared, j, tmp_path) == {"state": "saved\n"}


def test_command_that_never_starts_leaves_nothing_and_says_why_it_failed(shared: Rig) -> None:
    j = shared.submit("nothere", ["/no/such/program"], collect=["out"], task={"restart_policy": "Never"})
    end = shared.end(j)
    assert end.outcome is Outcome.FAILED
    assert "/no/such/program" in end.reason


def test_supervisor_that_dies_after_the_process_is_carried_on_by_the_agent(rig: Rig, tmp_path: Path) -> None:
    """22-h job succeeds, final upload fails, outputs lost: its agent sends the files, and the exit code stays."""
    worker = rig.worker("w1", "--cpus", "4", "--memory", "4GiB")
    script = "head -c 300000000 /dev/zero > big; echo done > small; exit 0"
    j = rig.submit("orphaned", script, collect=["small", "big"])
    a = AttemptId(j, 0, 1)
    supervisor = worker.supervisor(a)
    exited = worker.folder(a).path / "exit.json"
    until(exited.exists, 20, "the process has ended")
    os.kill(supervisor, signal.SIGKILL)
    end = rig.end(j)
    assert (end.outcome, end.exit_code) == (Outcome.COMPLETED, 0)
    assert end.collected["files"] == 2
    assert set(left(rig, j, tmp_path)) == {"small", "big"}
    assert rig.bucket.present(keys.end(AttemptId(j, 0, 2))) == [False]
