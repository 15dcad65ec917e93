"""A job that ends by stopping the agent that runs it: the agent vanishing is its success, and nothing runs it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.reading.view import read_job
from tests.process.rig import Rig, WorkerProcess, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "4", "--memory", "8GiB")


def ends_its_machine(rig: Rig, *, declared: bool) -> tuple[JobId, Path]:
    """A task that kills its agent and its supervisor, as the end of a machine would, and an agent that comes back."""
    worker = rig.worker("w1", *ROOM)
    log, victims = rig.folder / "effects", rig.folder / "victims"
    wait = f"while [ ! -e {victims} ]; do sleep 0.05; done"
    script = f"echo $STADO_ATTEMPT >> {log}; {wait}; kill -9 $(cat {victims}); sleep 300"
    j = rig.submit("maintenance", script, terminates_agent=declared)
    rig.running(j)
    _vanish(worker, worker.supervisor(keys.AttemptId(j, 0, 1)), victims)
    rig.worker("w1", *ROOM)
    return j, log


def _vanish(worker: WorkerProcess, supervisor: int, victims: Path) -> None:
    whole = victims.with_suffix(".new")
    whole.write_text(f"{worker.pid} {supervisor}")
    whole.rename(victims)
    until(lambda: worker.process.poll() is not None, 10, "the agent is killed by its own task")


def test_agent_that_vanishes_completes_the_job_that_said_so(rig: Rig) -> None:
    """It is recorded Completed rather than requeued onto the next agent generation."""
    j, log = ends_its_machine(rig, declared=True)
    ended = rig.end(j)
    assert (ended.outcome, ended.decision, ended.cause) == (Outcome.COMPLETED, Decision.FINAL, Cause.MACHINE_LOST)
    assert ended.reason == "Completed by ending its worker, as it said it would"
    rig.settled(j)
    assert read_job(rig.bucket, j).tasks[0].state is TaskState.COMPLETED
    assert not rig.bucket.store.list(keys.QUEUED).rows
    assert log.read_text().split() == ["1"]


def test_without_the_declaration_it_is_a_loss_and_runs_again(rig: Rig) -> None:
    """Only declarations count: the command text is never read."""
    j, _ = ends_its_machine(rig, declared=False)
    ended = rig.end(j)
    assert (ended.outcome, ended.decision) == (Outcome.DOWN, Decision.RETRY)
