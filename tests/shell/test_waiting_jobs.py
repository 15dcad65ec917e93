"""Jobs that wait for others, children that go with their parents, tasks that wait too long, runs that are over with one
group: from the submit to what a reader says."""

from __future__ import annotations

from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.again import stripped
from stado_like.bucket import cancel, claim, delete
from stado_like.bucket.bucket import Bucket
from stado_like.job import codec, keys
from stado_like.job.keys import JobId
from stado_like.job.records import Claim
from stado_like.job.states import Cause, JobState, TaskState
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.view import read_job
from stado_like.store.protocol import list_all
from tests.builders_jobs import Clock, attempt, beat, document, end, make_bucket, run, submit, worker
from tests.builders_jobs import claim as take

TWO = {"requested_resources": {"node_selection": {"mode": "Any", "count": 2}}}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


def waiter(bucket: Bucket, awaited: JobId, state: str = "Completed", **spec: Any) -> JobId:
    return submit(bucket, "next", after=[{"job": str(awaited), "state": state}], **spec)


def queue(bucket: Bucket) -> dict[str, list[int]]:
    """Ranks by index."""
    found: dict[str, list[int]] = {}
    for row in list_all(bucket.store, keys.QUEUED):
        index = row.key.split("/")[1]
        found.setdefault(index, []).append(keys.attempt_of_entry(row.key).rank)
    return found


# ---- after


def test_waiter_is_held_until_the_other_completed_and_says_so(bucket: Bucket) -> None:
    first = submit(bucket, "prep")
    second = waiter(bucket, first)
    Tick(bucket).step()
    assert queue(bucket) == {"open": [0], "held": [0]}
    assert read_job(bucket, second).reason == "Waits for job prep to complete"
    listed = {row.id.name: row.reason for row in list_jobs(bucket, Wanted()).rows}
    assert listed["next"] == "Waits for job prep to complete"
    run(bucket, attempt(first))
    report = Tick(bucket).step()
    assert report.passes["after"]["released"] == 1
    assert queue(bucket) == {"open": [0]}
    run(bucket, attempt(second))
    assert read_job(bucket, second).state is JobState.COMPLETED


def test_without_ticks_it_says_that_one_is_missing(bucket: Bucket) -> None:
    first = submit(bucket, "prep")
    second = waiter(bucket, first)
    run(bucket, attempt(first))
    assert read_job(bucket, second).reason.startswith("no tick on this store since")


@pytest.mark.parametrize(
    ("state", "code", "over"),
    [
        ("Completed", 0, None),
        ("Completed", 1, JobState.CANCELLED),
        ("Failed", 1, None),
        ("Failed", 0, JobState.CANCELLED),
        ("Ended", 0, None),
        ("Ended", 1, None),
    ],
)
def test_what_the_other_came_to_decides(bucket: Bucket, state: str, code: int, over: JobState | None) -> None:
    first = submit(bucket, "prep", template={"restart_policy": "Never"})
    second = waiter(bucket, first, state)
    run(bucket, attempt(first), code)
    Tick(bucket).step()
    view = read_job(bucket, second)
    if over is None:
        assert queue(bucket) == {"open": [0]} and not view.is_over
    else:
        assert (view.state, queue(bucket)) == (over, {})
        assert view.reason.startswith("Waited for job prep to ")


def test_deleted_job_is_waited_for_in_vain(bucket: Bucket) -> None:
    first = submit(bucket, "prep")
    second = waiter(bucket, first)
    run(bucket, attempt(first))
    delete.delete_job(bucket, first)
    Tick(bucket).step()
    view = read_job(bucket, second)
    assert (view.state, view.reason) == (JobState.CANCELLED, "Waited for job prep to complete, and it was deleted")
    Tick(bucket).step()
    assert not list(list_all(bucket.store, keys.OPEN))


def test_once_released_an_array_is_never_held_again(bucket: Bucket, clock: Clock) -> None:
    """Its later ranks and its retries go where workers look, also when the awaited job has been deleted since."""
    first = submit(bucket, "prep")
    second = waiter(bucket, first, array={"size": 4, "max_parallel": 2})
    assert queue(bucket)["held"] == [0, 1]
    run(bucket, attempt(first))
    Tick(bucket).step()
    delete.delete_job(bucket, first)
    run(bucket, attempt(second, 0))
    run(bucket, attempt(second, 1), 1)
    clock.now_s += 20
    Tick(bucket).step()
    assert queue(bucket) == {"open": [1, 2]}
    assert not read_job(bucket, second).is_over


def test_rank_that_a_stop_lets_go_waits_with_the_others(bucket: Bucket) -> None:
    first = submit(bucket, "prep")
    second = waiter(bucket, first, array={"size": 3, "max_parallel": 1})
    cancel.stop_task(bucket, second, 0)
    assert queue(bucket) == {"open": [0], "held": [1]}


def test_two_reasons_to_wait_are_kept_apart(bucket: Bucket) -> None:
    """A gang that waits for another job waits for its placement afterwards."""
    first = submit(bucket, "prep")
    second = waiter(bucket, first, start="Gang", template={"requested_resources": {"machines": 2}})
    run(bucket, attempt(first))
    Tick(bucket).step()
    assert queue(bucket) == {"held": [0, 1]}
    assert any(bucket.present(keys.released(second)))
    assert read_job(bucket, second).reason == "Waiting for workers to start"


# ---- parents


def test_children_and_theirs_end_with_the_parent(bucket: Bucket) -> None:
    parent = submit(bucket, "parent", array={"size": 1})
    child = submit(bucket, "child", metadata={"parent": str(parent)})
    grandchild = submit(bucket, "grandchild", metadata={"parent": str(child)})
    take(bucket, attempt(child))
    beat(bucket, attempt(child))
    Tick(bucket).step()
    assert not any(bucket.present(keys.verdict(child), keys.verdict(grandchild)))
    cancel.cancel_job(bucket, parent)
    Tick(bucket).step()
    running, queued = read_job(bucket, child), read_job(bucket, grandchild)
    assert running.tasks[0].state is TaskState.STOPPING and running.tasks[0].reason == "Parent job terminated"
    assert (queued.state, queued.reason) == (JobState.CANCELLED, "Parent job terminated")


def test_child_that_is_queued_after_its_parent_ended_never_starts(bucket: Bucket) -> None:
    parent = submit(bucket, "parent")
    run(bucket, attempt(parent))
    child = submit(bucket, "child", metadata={"parent": str(parent)})
    a = attempt(child)
    found = Claim(nonce="n", attempt=str(a), worker="w1", since=bucket.now())
    assert claim.send(bucket, a, codec.encode(found), "") is None
    assert claim.gate(bucket, a, found) == claim.Over("Parent job terminated")
    view = read_job(bucket, child)
    assert (view.state, view.reason) == (JobState.CANCELLED, "Parent job terminated")


def test_child_of_a_parent_that_goes_on_is_looked_for_by_children_alone(bucket: Bucket) -> None:
    """A parent that restarts is not over."""
    parent = submit(bucket, "parent")
    child = submit(bucket, "child", metadata={"parent": str(parent)})
    run(bucket, attempt(parent), 1)
    Tick(bucket).step()
    take(bucket, attempt(child))


# ---- too late


def test_task_that_waited_too_long_is_unschedulable_and_so_is_its_job(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, scheduling_timeout_seconds=600, array={"size": 3, "max_parallel": 2})
    take(bucket, attempt(j, 0))
    clock.now_s += 601
    beat(bucket, attempt(j, 0))
    worker(bucket, held=())
    Tick(bucket).step()
    reason = "Waited longer than its scheduling timeout of 10m"
    view = read_job(bucket, j)
    assert [one.state for one in view.tasks[:2]] == [TaskState.STOPPING, TaskState.UNSCHEDULABLE]
    assert view.tasks[1].reason == reason and view.tasks[0].reason == reason
    end(bucket, attempt(j, 0), cause=Cause.REQUESTED)
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.UNSCHEDULABLE, reason)
    assert [one.state.value for one in view.tasks] == ["Cancelled", "Unschedulable", "Cancelled"]


def test_one_task_is_unschedulable_by_its_last_end(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, deadline="2099-01-31T12:00:00Z", scheduling_timeout_seconds=60)
    clock.now_s += 61
    Tick(bucket).step()
    view = read_job(bucket, j)
    assert (view.state, view.tasks[0].state) == (JobState.UNSCHEDULABLE, TaskState.UNSCHEDULABLE)
    assert [one.state for one in view.tasks[0].history.changes] == ["Pending", "Unschedulable"]
    assert queue(bucket) == {}
    Tick(bucket).step()
    assert not list(list_all(bucket.store, keys.OPEN)) and not list(list_all(bucket.store, keys.RUNNING))


def test_each_restart_waits_anew_and_what_runs_is_left_alone(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, scheduling_timeout_seconds=600)
    take(bucket, attempt(j))
    clock.now_s += 700
    beat(bucket, attempt(j))
    Tick(bucket).step()
    assert read_job(bucket, j).state is JobState.RUNNING
    end(bucket, attempt(j), 1)
    clock.now_s += 300
    Tick(bucket).step()
    assert not read_job(bucket, j).is_over
    clock.now_s += 400
    Tick(bucket).step()
    assert read_job(bucket, j).state is JobState.UNSCHEDULABLE


def test_time_that_a_job_waits_for_another_does_not_count(bucket: Bucket, clock: Clock) -> None:
    first = submit(bucket, "prep")
    second = waiter(bucket, first, scheduling_timeout_seconds=600)
    clock.now_s += 5000
    Tick(bucket).step()
    run(bucket, attempt(first))
    Tick(bucket).step()
    clock.now_s += 500
    Tick(bucket).step()
    assert queue(bucket) == {"open": [0]}
    clock.now_s += 200
    Tick(bucket).step()
    assert read_job(bucket, second).state is JobState.UNSCHEDULABLE


def test_worker_that_comes_too_late_ends_it_the_same_way(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket, scheduling_timeout_seconds=60)
    clock.now_s += 61
    a = attempt(j)
    found = Claim(nonce="n", attempt=str(a), worker="w1", since=bucket.now())
    assert claim.send(bucket, a, codec.encode(found), "") is None
    assert isinstance(claim.gate(bucket, a, found), claim.Over)
    assert read_job(bucket, j).state is JobState.UNSCHEDULABLE


# ---- complete_with


def finishing(bucket: Bucket) -> JobId:
    """Ranks 0 and 1 serve, rank 2 works."""
    groups = [
        {"name": "serve", "task_template": {"command": "x", "restart_policy": "Never", **TWO}},
        {"name": "work", "task_template": {"command": "x"}},
    ]
    j = submit(bucket, "run", task_groups=groups, complete_with="work")
    for rank in range(3):
        take(bucket, attempt(j, rank))
        beat(bucket, attempt(j, rank))
    return j


def test_run_is_over_with_its_group_and_the_others_are_stopped(bucket: Bucket) -> None:
    j = finishing(bucket)
    end(bucket, attempt(j, 0))
    assert not any(bucket.present(keys.verdict(j)))
    end(bucket, attempt(j, 2))
    view = read_job(bucket, j)
    assert view.tasks[1].state is TaskState.STOPPING and view.tasks[1].reason == "Run completed"
    end(bucket, attempt(j, 1), cause=Cause.REQUESTED, reason="Run completed")
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.COMPLETED, "Worker group work completed")
    assert [one.state.value for one in view.tasks] == ["Completed", "Cancelled", "Completed"]


def test_run_that_lost_a_serving_worker_cannot_finish(bucket: Bucket) -> None:
    j = finishing(bucket)
    end(bucket, attempt(j, 1), 1)
    view = read_job(bucket, j)
    assert view.tasks[0].reason == "Run failed"
    for rank in (0, 2):
        end(bucket, attempt(j, rank), cause=Cause.REQUESTED)
    view = read_job(bucket, j)
    assert view.state is JobState.FAILED
    assert view.reason == (
        "Worker run-serve-1 failed on w1: Exited with code 1; worker group work cannot finish without it"
    )


# ---- once more


def test_rerun_is_nobodys_child_and_waits_for_nothing() -> None:
    made = document(
        "next",
        metadata={"parent": "default.parent.1"},
        after=[{"job": "default.prep.1", "state": "Completed"}],
        deadline="2099-01-31T12:00:00Z",
        resident=True,
        terminates_agent=True,
        scheduling_timeout_seconds=60,
    )
    again = stripped(made)
    assert "parent" not in again["metadata"]
    assert {"after", "deadline"}.isdisjoint(again["spec"])
    kept = ("resident", "terminates_agent", "scheduling_timeout_seconds")
    assert [again["spec"][name] for name in kept] == [True, True, 60]
