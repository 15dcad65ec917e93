"""Reading a job: terminal first, never back, at few requests; and the JSON that programs rely on."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from stado_like.bucket import cancel
from stado_like.bucket.bucket import Bucket
from stado_like.errors import NotFound
from stado_like.job import keys, reasons
from stado_like.job.records import Room, TickLock
from stado_like.job.states import TABLE, Cause, JobState, TaskState
from stado_like.reading.view import job_json, read_job, read_task
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, beat, claim, end, run, submit


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return build.make_bucket(clock)


def test_reading_writes_nothing(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, array={"size": 3})
    claim(bucket, attempt(j))
    before = [(row.key, row.etag) for row in bucket.store.list("").rows]
    read_job(bucket, j)
    assert [(row.key, row.etag) for row in bucket.store.list("").rows] == before


def test_states_follow_the_records_one_by_one(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    a = attempt(j)
    assert read_job(bucket, j).tasks[0].state is TaskState.PENDING
    claim(bucket, a)
    clock.now_s += 5
    view = read_job(bucket, j)
    assert (view.tasks[0].state, view.tasks[0].worker, view.state) == (TaskState.PREPARING, "w1", JobState.PENDING)
    beat(bucket, a, TaskState.STARTING, reason=reasons.STARTED)
    assert read_job(bucket, j).tasks[0].state is TaskState.STARTING
    beat(bucket, a)
    view = read_job(bucket, j)
    assert (view.tasks[0].state, view.state, view.reason) == (
        TaskState.RUNNING,
        JobState.RUNNING,
        "1 of 1 workers running",
    )
    clock.now_s += 74
    assert read_job(bucket, j).tasks[0].state is TaskState.RUNNING
    clock.now_s += 2
    view = read_job(bucket, j)
    assert (view.tasks[0].state, view.tasks[0].reason) == (TaskState.STALE, reasons.LEASE_EXPIRED)
    assert view.state is JobState.RUNNING
    end(bucket, a)
    view = read_job(bucket, j)
    assert (view.tasks[0].state, view.state, view.reason) == (
        TaskState.COMPLETED,
        JobState.COMPLETED,
        "All workers completed",
    )


def test_claim_without_heartbeat_is_preparing_until_stale(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    claim(bucket, attempt(j))
    clock.now_s += 74
    assert read_job(bucket, j).tasks[0].state is TaskState.PREPARING
    clock.now_s += 2
    assert read_job(bucket, j).tasks[0].state is TaskState.STALE


def test_both_records_of_an_end_exist_reader_says_over(bucket: Bucket, clock: Clock) -> None:
    """New before old: claim, heartbeat and entry may still lie there when the end stands."""
    j = submit(bucket)
    a = attempt(j)
    lying = {row.key: row for row in bucket.store.list("queued/").rows}
    bodies = {key: bucket.store.get(key).body for key in lying}  # type: ignore[union-attr]
    claim(bucket, a)
    claimed = bucket.store.get(keys.running(a))
    assert claimed is not None
    beat(bucket, a)
    end(bucket, a)
    bucket.store.put(keys.running(a), claimed.body)
    for key, body in bodies.items():
        bucket.store.put(key, body)
    assert read_job(bucket, j).state is JobState.COMPLETED


def test_retry_waits_and_says_until_when(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    run(bucket, attempt(j), 3, last_lines="boom")
    view = read_job(bucket, j)
    task = view.tasks[0]
    assert (task.state, task.attempt, task.restarts.failures) == (TaskState.PENDING, 2, 1)
    assert task.restart_at == pytest.approx(clock.now_s + 10, abs=0.01)
    assert task.reason == "Restarted by policy (restart 1/10)"
    assert task.previous is not None and (task.previous.cause, task.previous.reason) == (
        "failure",
        "Exited with code 3",
    )
    assert task.last_failure is not None and task.last_failure.log == "boom"
    assert view.state is JobState.PENDING and view.reason == task.reason
    again = [one for one in task.history.changes if one.details]
    assert [one.state for one in again] == ["Pending"]
    assert again[-1].details["restart"] == {
        "cause": "failure",
        "budget": "failures",
        "count": 1,
        "limit": 10,
        "attempt": 2,
    }


def test_overdue_retry_without_a_tick_names_the_tick(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    run(bucket, attempt(j), 3)
    clock.now_s += 200
    assert read_job(bucket, j).reason.startswith("no tick on this store since")
    lock = TickLock(nonce="n", pid=1, host="h", boot_id="b", started_at=0, since=clock.now_s)
    bucket.put(keys.TICK_LOCK, lock)
    assert not read_job(bucket, j).reason.startswith("no tick")


def test_waiting_without_workers_says_so(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    assert read_job(bucket, j).reason == "No machine fits: no machines are registered"
    build.worker(bucket)
    assert read_job(bucket, j).reason == reasons.WAITING_TO_START
    build.worker(bucket, "w2", free=Room(cpu_millis=500, memory_bytes=8 << 30))
    nodes = {one.name: one.reasons for one in read_job(bucket, j).nodes}
    assert nodes == {"w1": (), "w2": ("insufficient cpu: need 1 cores, 0.5 free",)}
    build.worker(bucket, "w1", accepting=False, why_not="disk")
    assert read_job(bucket, j).reason == "No machine fits: 1 of 2 machines ready"


def test_stale_capacity_counts_for_nothing_and_shows_its_age(bucket: Bucket, clock: Clock) -> None:
    """Stale free count shown as live limit: a capacity record 91 min old is ignored; the reason prints its age."""
    j = submit(bucket)
    build.worker(bucket)
    clock.now_s += 91 * 60
    view = read_job(bucket, j)
    assert view.reason == "No machine fits: 0 of 1 machines ready"
    assert view.nodes[0].reasons == ("machine is not ready (last heard 1h31m ago)",)


def test_lanes_wait_for_their_turn(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, array={"size": 5, "max_parallel": 2})
    view = read_job(bucket, j)
    assert [one.released for one in view.tasks] == [True, True, False, False, False]
    assert view.tasks[3].reason == "Array runs at most 2 workers at once"
    assert read_task(bucket, j, 3).reason == "Array runs at most 2 workers at once"


def test_cancel_under_way_is_not_over(bucket: Bucket, clock: Clock) -> None:
    """Only `final` is terminal; a verdict that stands while a task still ends is not."""
    j = submit(bucket, array={"size": 2})
    a = attempt(j)
    claim(bucket, a)
    beat(bucket, a)
    cancel.cancel_job(bucket, j, reason="wrong data")
    view = read_job(bucket, j)
    assert view.state is JobState.RUNNING and not view.is_over
    assert view.reason == "wrong data; its workers are being stopped"
    assert [one.state for one in view.tasks] == [TaskState.STOPPING, TaskState.CANCELLED]
    end(bucket, a, 143, cause=Cause.REQUESTED, reason="wrong data")
    view = read_job(bucket, j)
    assert (view.state, view.reason, view.is_over) == (JobState.CANCELLED, "wrong data", True)


def test_cancelled_array_tells_of_ranks_that_never_ran(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, array={"size": 4, "max_parallel": 1})
    cancel.cancel_job(bucket, j, reason="enough")
    view = read_job(bucket, j)
    assert view.is_over and view.counts == {TaskState.CANCELLED: 4}
    assert [one.attempt for one in view.tasks] == [1, 0, 0, 0]


def test_person_stops_one_task_the_others_go_on(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, array={"size": 2})
    for rank in (0, 1):
        claim(bucket, attempt(j, rank))
        beat(bucket, attempt(j, rank))
    cancel.stop_task(bucket, j, 1, reason="not this one")
    view = read_job(bucket, j)
    assert [one.state for one in view.tasks] == [TaskState.RUNNING, TaskState.STOPPING]
    assert view.tasks[1].reason == "not this one"
    assert view.state is JobState.RUNNING


def test_failed_for_good_says_who_where_why(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, template={"restart_policy": "Never"})
    run(bucket, attempt(j), 137)
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.FAILED, "Worker train-0 failed on w1: Exited with code 137")
    assert (view.tasks[0].exit_code, view.tasks[0].signal) == (137, None)


def test_job_history_is_told_from_its_tasks(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    clock.now_s += 10
    run(bucket, attempt(j), 1, ran_s=2)
    clock.now_s += 60
    run(bucket, attempt(j, 0, 2), 0, ran_s=3)
    view = read_job(bucket, j)
    assert [(one.state, one.reason) for one in view.history.changes] == [
        ("Pending", "Run created"),
        ("Pending", "Waiting for workers to start"),
        ("Running", "1 of 1 workers running"),
        ("Pending", "Restarted by policy (restart 1/10)"),
        ("Pending", "Waiting for workers to start"),
        ("Running", "1 of 1 workers running"),
        ("Completed", "All workers completed"),
    ]
    times = [one.at for one in view.history.changes]
    assert times == sorted(times)


def test_every_state_in_a_task_history_follows_the_table(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    for n, (code, cause) in enumerate(((3, None), (0, Cause.MACHINE_LOST), (0, Cause.UNDELIVERED), (0, None)), 1):
        run(bucket, attempt(j, 0, n), code, cause=cause)
        clock.now_s += 400
    told = [TaskState(one.state) for one in read_job(bucket, j).tasks[0].history.changes]
    arrows = {(before, arrow.to) for (before, _), arrow in TABLE.items()}
    assert set(pairwise(told)) <= arrows
    assert told[-1] is TaskState.COMPLETED


def test_no_such_job_and_no_such_task(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    with pytest.raises(NotFound, match="no incarnation 2"):
        read_job(bucket, keys.JobId("default", "train", 2))
    with pytest.raises(NotFound, match="no task 7"):
        read_task(bucket, j, 7)


def shape(value: Any) -> Any:
    """Names and types, without the values."""
    if isinstance(value, dict):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


CHANGE_SHAPE = {"state": "str", "reason": "str", "at": "str", "cause": "NoneType", "details": {}}
TASK_SHAPE = {
    "name": "str",
    "rank": "int",
    "state": "str",
    "reason": "str",
    "worker": "str",
    "attempt": "int",
    "restarts": {"failures": "int", "machine": "int", "preemptions": "int"},
    "previous": {"cause": "str", "reason": "str", "machine": "str", "ended_at": "str"},
    "restart_at": "NoneType",
    "exit_code": "NoneType",
    "signal": "NoneType",
    "last_failure": {"exit_code": "int", "reason": "str", "log": "str"},
    "labels": {"astraeus.io/created-by": "str", "job.astraeus.io/name": "str", "job.astraeus.io/replica-index": "str"},
    "stall": "NoneType",
    "progress": "NoneType",
    "progress_at": "NoneType",
    "outputs": "NoneType",
    "answer": "NoneType",
    "collected": "NoneType",
    "heartbeat_age_s": "float",
    "history": [CHANGE_SHAPE],
    "history_dropped": "int",
    "attempts": [
        {
            "attempt": "int",
            "state": "str",
            "reason": "str",
            "cause": "str",
            "decision": "str",
            "worker": "str",
            "exit_code": "int",
            "signal": "NoneType",
            "claimed_at": "str",
            "started_at": "str",
            "running_at": "str",
            "ended_at": "str",
            "restart_at": "str",
            "restart": {"cause": "str", "budget": "str", "count": "int", "limit": "int", "attempt": "int"},
            "notes": [],
        }
    ],
    "iris": {"state": "str", "number": "int", "shown": "str", "colour": "str"},
}


def test_json_of_a_job_keeps_its_shape(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    run(bucket, attempt(j), 3, last_lines="boom")
    clock.now_s += 60
    claim(bucket, attempt(j, 0, 2))
    beat(bucket, attempt(j, 0, 2))
    shown = job_json(read_job(bucket, j))
    assert json.loads(json.dumps(shown)) == shown
    assert list(shown) == [
        "metadata",
        "spec",
        "incarnation",
        "id",
        "status",
        "history",
        "history_dropped",
        "task_names",
        "task_counts",
        "labels",
        "leader_task",
        "expected_task_count",
        "shape",
        "placement",
        "cost",
        "requests",
        "submitted_by",
        "submitted_from",
        "request_id",
        "straggler",
        "tasks",
        "iris",
    ]
    assert shape(shown["status"]) == {
        "state": "str",
        "reason": "str",
        "created_at": "str",
        "started_at": "str",
        "finished_at": "NoneType",
        "updated_at": "str",
    }
    assert shown["status"]["created_at"] == "2027-01-15T08:00:00.000Z"
    assert shown["leader_task"] == "train-0" and shown["task_names"] == ["train-0"]
    assert shown["task_counts"] == {"Running": 1}
    assert shown["iris"] == {"state": "JOB_STATE_RUNNING", "task_state_counts": {"running": 1}}
    (task,) = shown["tasks"]
    assert shape(task) == TASK_SHAPE
