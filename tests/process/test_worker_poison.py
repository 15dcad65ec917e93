"""A real supervisor that dies three times under one task."""

from __future__ import annotations

import os
import signal

import pytest

from stado_like.job.keys import AttemptId
from stado_like.job.states import Cause, TaskState
from tests.process.rig import Rig

pytestmark = pytest.mark.serial


def test_third_supervisor_that_dies_under_a_task_fails_it(rig: Rig) -> None:
    """Also one that died together with its agent: the next agent of the same boot finds it, and counts it."""
    worker = rig.worker("w1", "--cpus", "2", "--memory", "2GiB")
    j = rig.submit("poison", "sleep 300", resilience={"max_machine_restarts": 10})
    for n in (1, 2):
        pid = worker.supervisor(AttemptId(j, 0, n))
        if n == 2:
            worker.kill()
        os.kill(pid, signal.SIGKILL)
        if n == 2:
            worker = rig.worker("w1", "--cpus", "2", "--memory", "2GiB")
        end = rig.end(j, n=n)
        assert (end.cause, end.is_final, end.budgets.supervisor_deaths) == (Cause.MACHINE_LOST, False, ("w1",) * n)
    os.kill(worker.supervisor(AttemptId(j, 0, 3)), signal.SIGKILL)
    end = rig.end(j, n=3)
    assert (end.is_final, end.state, end.budgets.machine) == (True, TaskState.FAILED, 2)
    assert end.reason == (
        "Failed: three supervisors died while running it, on w1, whose machines lived on; "
        "the last: Machine lost: the task's supervisor died"
    )
