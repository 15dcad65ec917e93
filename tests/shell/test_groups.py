"""Jobs of several worker groups: ranks and names across groups, and groups that wait for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.records import Room
from stado_like.job.states import Cause, JobState, TaskState
from stado_like.reading.view import read_job, read_task
from tests.builders_jobs import Clock, attempt, beat, claim, end, make_bucket, run, submit, worker
from tests.shell.test_tick_mend import Killed

RUNS = {"command": "true", "heartbeat_ttl_seconds": 10}


def two_of(name: str, **more: Any) -> dict[str, Any]:
    template = {**RUNS, "requested_resources": {"node_selection": {"mode": "Any", "count": 2}}, **more.pop("task", {})}
    return {"name": name, "task_template": template, **more}


ENGINE = two_of("engine")
CLIENT = two_of("client", depends_on=[{"group_name": "engine"}])


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


@pytest.fixture
def j(bucket: Bucket) -> JobId:
    return submit(bucket, "run", task_groups=[ENGINE, CLIENT])


def queued(bucket: Bucket) -> list[int]:
    return [keys.parse_entry(row.key).attempt.rank for row in bucket.store.list(keys.QUEUED_OPEN).rows]


def tick(bucket: Bucket) -> None:
    Tick(bucket).step()


def up(bucket: Bucket, j: JobId, *ranks: int) -> None:
    for rank in ranks:
        claim(bucket, attempt(j, rank))
        beat(bucket, attempt(j, rank))


def reason(bucket: Bucket, j: JobId, rank: int) -> str:
    return read_task(bucket, j, rank).reason


def test_group_is_released_when_every_rank_of_the_other_runs(bucket: Bucket, j: JobId) -> None:
    assert queued(bucket) == [0, 1]
    tick(bucket)
    up(bucket, j, 0)
    tick(bucket)
    assert queued(bucket) == [1] and reason(bucket, j, 2) == "Waits for worker group engine to be running"
    up(bucket, j, 1)
    assert reason(bucket, j, 3) == "Waiting for workers to be created"
    tick(bucket)
    assert queued(bucket) == [2, 3]
    view = read_job(bucket, j)
    assert [one.name for one in view.tasks] == ["run-engine-0", "run-engine-1", "run-client-0", "run-client-1"]
    assert (view.state, view.reason) == (JobState.RUNNING, "2 of 4 workers running")


def test_completed_counts_as_up_and_stale_or_stopping_does_not(bucket: Bucket, clock: Clock, j: JobId) -> None:
    run(bucket, attempt(j, 0))
    claim(bucket, attempt(j, 1))
    for state in (TaskState.PREPARING, TaskState.STOPPING):
        beat(bucket, attempt(j, 1), state)
        tick(bucket)
        assert queued(bucket) == []
    beat(bucket, attempt(j, 1))
    clock.now_s += 80
    tick(bucket)
    assert queued(bucket) == []
    beat(bucket, attempt(j, 1))
    tick(bucket)
    assert queued(bucket) == [2, 3]


def test_group_once_released_stays_so_whatever_the_other_does(bucket: Bucket, j: JobId) -> None:
    up(bucket, j, 0, 1)
    tick(bucket)
    end(bucket, attempt(j, 0), 1)
    bucket.drop(*(row.key for row in bucket.store.list(keys.QUEUED_OPEN).rows if ".00003." in row.key))
    tick(bucket)
    assert queued(bucket) == [2, 3]


def test_release_cut_after_any_write_is_finished_by_the_next_tick(bucket: Bucket, j: JobId) -> None:
    up(bucket, j, 0, 1)
    real: Callable[..., Any] = bucket.store.create
    made: list[str] = []

    def dies(key: str, body: bytes) -> Any:
        if key.startswith(keys.QUEUED_OPEN) and made:
            raise Killed
        made.append(key) if key.startswith(keys.QUEUED_OPEN) else None
        return real(key, body)

    bucket.store.create = dies  # type: ignore[method-assign]
    with pytest.raises(Killed):
        tick(bucket)
    bucket.store.create = real  # type: ignore[method-assign]
    assert queued(bucket) == [2]
    bucket.drop(keys.TICK_LOCK)
    beat(bucket, attempt(j, 0), TaskState.STOPPING)
    tick(bucket)
    assert queued(bucket) == [2, 3]


def test_group_whose_other_failed_for_good_never_starts_and_the_job_is_over(bucket: Bucket) -> None:
    j = submit(bucket, "run", task_groups=[two_of("engine", task={"restart_policy": "Never"}), CLIENT])
    run(bucket, attempt(j, 0))
    claim(bucket, attempt(j, 1))
    end(bucket, attempt(j, 1), cause=Cause.MACHINE_LOST, reason="gone")
    tick(bucket)
    tick(bucket)
    view = read_job(bucket, j)
    assert view.state is JobState.FAILED
    assert view.reason == "Worker run-engine-1 was lost on w1: gone; worker group client cannot start without it"
    assert [one.state for one in view.tasks[2:]] == [TaskState.CANCELLED] * 2


def test_group_whose_other_was_stopped_never_starts_and_the_job_is_cancelled(bucket: Bucket, j: JobId) -> None:
    cancel.stop_task(bucket, j, 0, reason="enough")
    up(bucket, j, 1)
    tick(bucket)
    assert reason(bucket, j, 2) == (
        "Worker run-engine-0 was stopped: enough; worker group client cannot start without it"
    )
    end(bucket, attempt(j, 1), cause=Cause.REQUESTED)
    tick(bucket)
    assert read_job(bucket, j).state is JobState.CANCELLED


def test_healthy_without_a_health_check_is_running_and_with_one_waits(bucket: Bucket) -> None:
    probe = {"type": "TCP", "port": 80}
    wants = [{"group_name": "engine", "condition": "Healthy"}]
    plain = submit(bucket, "plain", task_groups=[ENGINE, two_of("client", depends_on=wants)])
    probed = submit(
        bucket, "probed", task_groups=[two_of("engine", task={"health_check": probe}), two_of("c", depends_on=wants)]
    )
    up(bucket, plain, 0, 1)
    up(bucket, probed, 0, 1)
    tick(bucket)
    assert reason(bucket, probed, 2) == "Waits for worker group engine to be healthy"
    assert read_task(bucket, plain, 2).released and not read_task(bucket, probed, 2).released


def test_group_that_waits_is_cancelled_and_stopped_like_a_lane_that_waits(bucket: Bucket, j: JobId) -> None:
    cancel.stop_task(bucket, j, 3)
    assert bucket.present(keys.end(attempt(j, 3))) == [False]
    cancel.cancel_job(bucket, j)
    tick(bucket)
    view = read_job(bucket, j)
    assert view.state is JobState.CANCELLED and {one.state for one in view.tasks} == {TaskState.CANCELLED}
    assert [row.key for prefix in ("queued/", "open/", "cancels/") for row in bucket.store.list(prefix).rows] == []


def test_each_rank_waits_for_room_by_its_own_groups_ask(bucket: Bucket) -> None:
    wide = two_of("wide", task={"requested_resources": {"cpu_cores": 64, "memory_bytes": 1 << 30}})
    small = two_of("small", task={"requested_resources": {"cpu_cores": 1, "memory_bytes": 1 << 30}})
    worker(bucket, free=Room(cpu_millis=4000, memory_bytes=8 << 30))
    j = submit(bucket, "run", task_groups=[small, wide])
    assert read_task(bucket, j, 1).reason == "No machine fits: 1 of 1 machines ready"
    run(bucket, attempt(j, 0))
    (node,) = read_job(bucket, j).nodes
    assert node.reasons == ("insufficient cpu: need 64 cores, 4 free",)


def test_failures_name_the_worker_by_its_group(bucket: Bucket) -> None:
    j = submit(bucket, "run", task_groups=[ENGINE, two_of("other", task={"restart_policy": "Never"})])
    run(bucket, attempt(j, 3), 7)
    tick(bucket)
    assert read_job(bucket, j).reason.startswith("Worker run-other-1 failed on w1: Exited with code 7")
