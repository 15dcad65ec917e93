"""Preemption with real processes: one machine, a batch job on its only core, and an urgent one that needs it."""

from __future__ import annotations

import pytest

from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End
from stado_like.job.states import Cause, Decision, Outcome
from stado_like.reading.view import read_job
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "1", "--memory", "4GiB")
TOLD = "echo attempt=$STADO_ATTEMPT cause=$STADO_RESTART_CAUSE reason=$STADO_RESTART_REASON"


def said(rig: Rig) -> str:
    return (rig.folder / "coordinator.err").read_text(errors="replace")


def preempted(rig: Rig, j: JobId) -> End:
    end = rig.end(j, within_s=40)
    assert (end.cause, end.decision) == (Cause.PREEMPTED, Decision.RETRY), said(rig)
    return end


def test_urgent_job_takes_the_core_of_a_batch_job_which_runs_again(rig: Rig) -> None:
    """Rows: endless evict/re-admit loop; two jobs on one accelerator. A victim that ignores SIGTERM keeps its slot
    until its processes are gone, and only then does the preemptor start."""
    pid, gate = rig.folder / "batch.pid", rig.folder / "gate"
    batch = rig.submit(
        "batch",
        f'{TOLD}; trap "" TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; while [ ! -e {gate} ]; do sleep 0.05; done',
        cores=1,
        task={"stop_grace_seconds": 3},
    )
    rig.worker("w1", *ROOM)
    rig.running(batch)
    until(pid.exists, 10, "the batch job wrote its pid")
    with rig.coordinator():
        urgent = rig.submit(
            "urgent",
            f"if kill -0 $(cat {pid}); then echo beside it; else echo alone; fi; touch {rig.folder}/began; "
            f"while [ ! -e {rig.folder}/enough ]; do sleep 0.05; done",
            cores=1,
            priority=100,
        )
        first = preempted(rig, batch)
        assert first.reason == "Preempted by higher-priority work (urgent)"
        assert (first.outcome, first.signal) == (Outcome.CANCELLED, "SIGKILL")
        assert (first.budgets.failures, first.budgets.machine, first.budgets.preemptions) == (0, 0, 1)
        rig.running(urgent)
        until((rig.folder / "began").exists, 10, "the urgent job began")
        waiting = read_job(rig.bucket, batch)
        assert waiting.reason == "Preempted by higher-priority work (urgent); waiting to run again"
        assert "Preempted by urgent; queued again" in [told.change.reason for told in waiting.tasks[0].story]
        assert rig.bucket.claim(AttemptId(batch, 0, 2)) is None
        gate.touch()
        (rig.folder / "enough").touch()
        assert rig.end(urgent).outcome is Outcome.COMPLETED
        n, last = rig.last(batch, within_s=30)
    assert (n, last.outcome) == (2, Outcome.COMPLETED)
    assert last.claimed_at >= rig.end(urgent).ended_at
    assert b"alone" in rig.output(urgent)
    again = b"attempt=2 cause=preempted reason=Preempted by higher-priority work (urgent)"
    assert again in rig.output(batch, n=2)
