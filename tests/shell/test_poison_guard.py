"""A task that takes down what runs it: which deaths a tick counts against it, and which are the machine's own."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import End
from stado_like.job.states import Cause, Decision, TaskState
from tests.builders_tick import TTL_S, Stage

STALE_S = TTL_S + 16.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


def lose(
    stage: Stage, a: AttemptId, *, claimed_in: str, speaks_in: str = "", state: TaskState = TaskState.RUNNING
) -> End:
    """An attempt of w1 falls silent, and a tick reaps it. `speaks_in`: the boot that w1 broadcasts then, if it does."""
    stage.claim(a, boot_id=claimed_in)
    stage.beat(a, running_at=stage.bucket.now(), state=state, stop_cause=Cause.MOVED.value)
    tick = Tick(stage.bucket)
    for wait_s in (STALE_S, TTL_S + 1):
        stage.clock.pass_s(wait_s)
        if speaks_in:
            stage.broadcast("w1", boot_id=speaks_in)
        tick.step()
    end = stage.bucket.end(a)
    assert end is not None, "the tick reaps it"
    return end


def test_task_that_kills_three_supervisors_fails(stage: Stage) -> None:
    """Job loops for ever: the task takes its supervisors down, on machines that live on."""
    a = AttemptId(stage.submit(), 0, 1)
    for n in (1, 2):
        end = lose(stage, a, claimed_in="boot-1", speaks_in="boot-1")
        assert (end.decision, end.cause, end.budgets.machine) == (Decision.RETRY, Cause.MACHINE_LOST, n)
        a = a.next
    end = lose(stage, a, claimed_in="boot-1", speaks_in="boot-1")
    assert (end.decision, end.state) == (Decision.FINAL, TaskState.FAILED)
    assert end.reason.startswith("Failed: three supervisors died while running it, on w1, whose machines lived on")


@pytest.mark.parametrize(
    ("claimed_in", "speaks_in"),
    [("boot-1", ""), ("boot-1", "boot-2"), ("", "boot-1")],
    ids=["the machine is silent", "it was restarted", "the claim does not say its boot"],
)
def test_machine_that_was_lost_or_restarted_is_not_the_tasks_doing(
    stage: Stage, claimed_in: str, speaks_in: str
) -> None:
    """Reclaims, drains and reboots never count."""
    end = lose(stage, AttemptId(stage.submit(), 0, 1), claimed_in=claimed_in, speaks_in=speaks_in)
    assert (end.cause, end.budgets.machine, end.budgets.supervisor_deaths) == (Cause.MACHINE_LOST, 1, ())


def test_loss_under_a_stop_ends_as_the_stop_and_does_not_count(stage: Stage) -> None:
    a = AttemptId(stage.submit(), 0, 1)
    end = lose(stage, a, claimed_in="boot-1", speaks_in="boot-1", state=TaskState.STOPPING)
    assert (end.cause, end.budgets.preemptions, end.budgets.supervisor_deaths) == (Cause.MOVED, 1, ())


def test_broadcast_that_cannot_be_read_is_no_evidence(stage: Stage) -> None:
    a = AttemptId(stage.submit(), 0, 1)
    stage.store.put(keys.capacity("w1"), b"{")
    assert lose(stage, a, claimed_in="boot-1").budgets.supervisor_deaths == ()
