"""A service: every task is started again whenever it ends, it is never over, and a cancel ends it."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.states import Cause, JobState, TaskState
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.view import read_job
from tests.builders_jobs import Clock, attempt, beat, claim, end, make_bucket, run, submit

TWO = {"requested_resources": {"node_selection": {"mode": "Any", "count": 2}}}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


def test_service_serves_and_is_started_again_after_exit_0(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, lifetime="Service", template={**TWO, "restart_policy": "Never"})
    for rank in (0, 1):
        claim(bucket, attempt(j, rank))
        beat(bucket, attempt(j, rank))
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.RUNNING, "2 of 2 workers serving")
    assert view.history.changes[-1].reason.endswith("of 2 workers serving")
    assert list_jobs(bucket, Wanted()).rows[0].reason == "2 of 2 workers serving"
    end(bucket, attempt(j, 0))
    clock.now_s += 20
    beat(bucket, attempt(j, 1))
    Tick(bucket).step()
    view = read_job(bucket, j)
    assert [one.state for one in view.tasks] == [TaskState.PENDING, TaskState.RUNNING]
    assert (view.state, view.tasks[0].attempt) == (JobState.RUNNING, 2)


def test_one_task_service_is_never_over_by_itself(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, lifetime="Service")
    for n in (1, 2, 3):
        ended = run(bucket, attempt(j, 0, n))
        assert not ended.is_final and ended.budgets.failures == 0
        clock.now_s += 20
        Tick(bucket).step()
    assert not read_job(bucket, j).is_over


def test_cancel_of_a_service_ends_it_cancelled(bucket: Bucket) -> None:
    j = submit(bucket, lifetime="Service", template=TWO)
    claim(bucket, attempt(j, 0))
    beat(bucket, attempt(j, 0))
    cancel.cancel_job(bucket, j, reason="enough")
    end(bucket, attempt(j, 0), cause=Cause.REQUESTED, reason="enough")
    Tick(bucket).step()
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.CANCELLED, "enough")
    assert {one.state for one in view.tasks} == {TaskState.CANCELLED}
    assert not [row.key for prefix in (keys.OPEN, "queued/", "cancels/") for row in bucket.store.list(prefix).rows]
