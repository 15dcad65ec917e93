"""Gangs: placed whole, started together, ended and started again by all of their ends."""

from __future__ import annotations

import pytest

from stado_like.bucket import cancel, claim, delete, gang, generations, mend, order
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Over
from stado_like.job import codec, gang_keys, keys, reasons
from stado_like.job.keys import JobId
from stado_like.job.records import Claim
from stado_like.job.states import Cause, Decision, JobState, TaskState
from stado_like.reading.view import read_job
from tests.builders_gangs import (
    end_member,
    make_ready,
    orders,
    place,
    send_ordered,
    start,
    stop_all,
    stops,
    submit_gang,
    take_ordered,
    tend,
    terms_of,
)
from tests.builders_jobs import Clock, attempt, make_bucket


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


def states(bucket: Bucket, j: JobId) -> list[TaskState]:
    return [one.state for one in read_job(bucket, j).tasks]


def test_gang_waits_in_held_and_nothing_of_it_is_claimed_without_an_order(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    assert all(row.key.startswith(keys.QUEUED_HELD) for row in bucket.store.list("queued/").rows)
    a = attempt(j)
    taken = Claim(nonce="n", attempt=str(a), worker="w9", since=bucket.now())
    assert claim.send(bucket, a, codec.encode(taken), "") is None
    assert isinstance(claim.gate(bucket, a, taken), Over)
    assert bucket.claim(a) is None
    assert gang.waits(bucket, j, terms_of(bucket, j)) is not None


def test_gang_of_a_hundred_lies_in_the_queue_whole(bucket: Bucket) -> None:
    j = submit_gang(bucket, 100)
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and len(waits.members) == 100 == waits.least
    assert len(bucket.store.list(keys.QUEUED_HELD).rows) == 100


def test_gang_starts_together_and_completes(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.RUNNING, "2 of 2 workers running")
    for rank in (0, 1):
        assert end_member(bucket, attempt(j, rank)).decision is Decision.GANG
    view = read_job(bucket, j)
    assert (view.state, [one.state for one in view.tasks]) == (JobState.COMPLETED, [TaskState.COMPLETED] * 2)
    assert bucket.store.list("running/").rows == bucket.store.list("queued/").rows == ()
    assert bucket.store.list(keys.OPEN).rows == ()


def test_gang_starting_says_how_many_are_ready(bucket: Bucket) -> None:
    j = submit_gang(bucket, 3)
    g = place(bucket, j)
    for rank in range(3):
        take_ordered(bucket, f"w{rank}")
    make_ready(bucket, attempt(j, 1), g)
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.STARTING, "Starting together: 1 of 3 ready")
    assert (view.tasks[1].state, view.tasks[1].reason) == (TaskState.READY_TO_START, "Waiting at the gang barrier")
    assert gang.try_go(bucket, j, g, "w1") is None


def test_placement_with_too_few_machines_places_none(bucket: Bucket) -> None:
    j = submit_gang(bucket, 3)
    placed = gang.place(bucket, j, 1, {attempt(j, 0): "w0", attempt(j, 1): "w1"})
    assert placed.generation == 0 and "3 must start together" in placed.why
    assert bucket.store.list(gang_keys.of_job(j)).rows == bucket.store.list(keys.INBOX).rows == ()


def test_two_ticks_place_one_gang_and_one_has_its_way(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    ranks = [attempt(j, 0), attempt(j, 1)]
    first = gang.place(bucket, j, 1, dict.fromkeys(ranks, "x"))
    second = gang.place(bucket, j, 1, dict.fromkeys(ranks, "y"))
    assert (first.generation, second.generation) == (1, 0)
    assert orders(bucket, "y") == []


def test_orders_that_a_dead_tick_did_not_write_are_written_by_the_next(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    place(bucket, j)
    for row in bucket.store.list(keys.INBOX).rows:
        bucket.drop(row.key)
    assert tend(bucket, j).ordered == 2
    take_ordered(bucket, "w0")
    take_ordered(bucket, "w1")


def test_member_not_claimed_in_a_minute_aborts_all_and_other_machines_come_first(bucket: Bucket, clock: Clock) -> None:
    j = submit_gang(bucket)
    g = place(bucket, j)
    a, _, _ = take_ordered(bucket, "w0")
    clock.now_s += 61
    done = tend(bucket, j)
    assert done.aborted and done.ended == 1 and done.waits is None
    verdict = generations.read_barrier(bucket, j, g)
    assert verdict is not None and verdict.reason == "Gang cannot be placed whole: 1 of 2 machines ready"
    assert stops(bucket, "w0") == [(a, Cause.BARRIER, verdict.reason)]
    end_member(bucket, a, Cause.BARRIER, verdict.reason)
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.generation == 2 and waits.avoid == {"w1"}
    assert waits.members == (attempt(j, 0, 2), attempt(j, 1, 2))
    assert waits.not_before == pytest.approx(bucket.now() + 10)


def test_each_abort_doubles_the_wait(bucket: Bucket, clock: Clock) -> None:
    j = submit_gang(bucket)
    waited = []
    for _ in range(7):
        place(bucket, j)
        clock.now_s += 61
        tend(bucket, j)
        waits = gang.waits(bucket, j, terms_of(bucket, j))
        assert waits is not None
        waited.append(waits.not_before - bucket.now())
    assert waited == pytest.approx([10, 20, 40, 80, 160, 300, 300])
    assert read_job(bucket, j).state is JobState.PENDING


def test_order_refused_by_a_worker_aborts_the_placement_that_it_belongs_to(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    place(bucket, j)
    (asked,) = orders(bucket, "w1")
    gang.refuse(bucket, asked, "w1", "cpu 500m free < 1000m")
    done = tend(bucket, j)
    assert done.ended == 2 and done.waits is not None
    assert done.waits.avoid == {"w1"} and "w1 did not take a gang member: cpu 500m free" in done.waits.reason


def test_member_ended_at_the_barrier_closes_it_first_and_nobody_starts(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    g = place(bucket, j)
    a, _, _ = take_ordered(bucket, "w0")
    b, _, _ = take_ordered(bucket, "w1")
    make_ready(bucket, a, g)
    make_ready(bucket, b, g)
    end_member(bucket, a, Cause.MACHINE_LOST, "Machine lost")
    verdict = gang.try_go(bucket, j, g, "w1")
    assert verdict is not None and not verdict.go
    assert verdict.reason == "A gang member ended before the gang started: train-0: Machine lost"


def test_claim_after_an_abort_is_ended_by_its_claimer(bucket: Bucket, clock: Clock) -> None:
    j = submit_gang(bucket)
    g = place(bucket, j)
    sent = send_ordered(bucket, "w0")
    assert sent is not None
    asked, taken = sent
    generations.close(bucket, j, g, "why", by="tick")
    assert isinstance(claim.gate(bucket, asked.attempt, taken), Over)
    end = bucket.end(asked.attempt)
    assert end is not None and (end.cause, end.decision) == (Cause.BARRIER, Decision.GANG)
    assert end.budgets == type(end.budgets)()


def test_failed_member_restarts_all_charged_once(bucket: Bucket) -> None:
    """Gang split over two fabrics hangs: one member is never retried alone."""
    j = submit_gang(bucket, 3)
    start(bucket, j)
    failed = attempt(j, 1)
    end_member(bucket, failed, Cause.FAILURE)
    assert gang.waits(bucket, j, terms_of(bucket, j)) is None
    assert [stops(bucket, f"w{rank}") for rank in (0, 2)] == [
        [(attempt(j, rank), Cause.GANG, "Gang restart: train-1 failed")] for rank in (0, 2)
    ]
    assert bucket.store.list("queued/").rows == ()
    stop_all(bucket, j, failed)
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.members == tuple(attempt(j, rank, 2) for rank in range(3))
    assert waits.not_before == pytest.approx(bucket.now() + 10)
    assert start(bucket, j) == 2
    placement = generations.read_placement(bucket, j, 2)
    assert placement is not None and (placement.budgets.failures, placement.budgets.machine) == (1, 0)


def test_machine_lost_makes_the_others_crash_and_only_the_machine_is_charged(bucket: Bucket, clock: Clock) -> None:
    j = submit_gang(bucket, 3)
    start(bucket, j)
    end_member(bucket, attempt(j, 0), Cause.FAILURE, "Exited with code 1: a peer is gone")
    end_member(bucket, attempt(j, 2), Cause.FAILURE)
    clock.now_s += 100
    end_member(bucket, attempt(j, 1), Cause.MACHINE_LOST, "Machine lost")
    place(bucket, j)
    placement = generations.read_placement(bucket, j, 2)
    assert placement is not None and (placement.budgets.failures, placement.budgets.machine) == (0, 1)


def test_member_that_had_exited_0_restarts_with_its_gang(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    end_member(bucket, attempt(j, 0))
    assert stops(bucket, "w1") == []
    end_member(bucket, attempt(j, 1), Cause.FAILURE)
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.members == (attempt(j, 0, 2), attempt(j, 1, 2))


def test_budget_spent_fails_the_job_and_the_healthy_are_coscheduled_failures(bucket: Bucket) -> None:
    j = submit_gang(bucket, template={"resilience": {"max_restarts": 0}})
    start(bucket, j)
    end_member(bucket, attempt(j, 1), Cause.FAILURE)
    assert stops(bucket, "w0") == [(attempt(j, 0), Cause.GANG, reasons.GANG_BUDGET_SPENT)]
    stop_all(bucket, j, attempt(j, 1))
    view = read_job(bucket, j)
    assert (view.state, [one.state for one in view.tasks]) == (
        JobState.FAILED,
        [TaskState.COSCHED_FAILED, TaskState.FAILED],
    )
    assert view.reason.endswith("; the gang does not run without it") and "train-1" in view.reason
    assert gang.waits(bucket, j, terms_of(bucket, j)) is None


def test_time_limit_of_a_member_ends_the_gang(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    end_member(bucket, attempt(j, 0), Cause.TIME_LIMIT, reasons.time_limit(60))
    assert stops(bucket, "w1") == [(attempt(j, 1), Cause.GANG, "A gang member exceeded its time limit")]
    stop_all(bucket, j, attempt(j, 0))
    view = read_job(bucket, j)
    assert (view.state, view.tasks[1].state) == (JobState.FAILED, TaskState.COSCHED_FAILED)


def test_gang_preempted_whole_spends_one_preemption_and_waits_for_nobody(bucket: Bucket) -> None:
    """Gangs immune to preemption: the whole gang stops, and goes on whole."""
    j = submit_gang(bucket)
    start(bucket, j)
    for rank in (0, 1):
        end_member(bucket, attempt(j, rank), Cause.PREEMPTED, "Preempted by higher-priority work (urgent)")
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.not_before <= bucket.now()
    place(bucket, j)
    placement = generations.read_placement(bucket, j, 2)
    assert placement is not None and placement.budgets.preemptions == 1 and placement.budgets.failures == 0


def test_cancel_at_the_barrier_lets_nobody_start(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    g = place(bucket, j)
    a, _, _ = take_ordered(bucket, "w0")
    cancel.cancel_job(bucket, j)
    end_member(bucket, a, Cause.REQUESTED, "Run cancelled")
    verdict = generations.read_barrier(bucket, j, g)
    assert verdict is not None and not verdict.go
    view = read_job(bucket, j)
    assert (view.state, states(bucket, j)) == (JobState.CANCELLED, [TaskState.CANCELLED] * 2)


def test_cancel_after_a_member_failed_cancels(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    end_member(bucket, attempt(j, 0), Cause.FAILURE)
    cancel.cancel_job(bucket, j)
    end_member(bucket, attempt(j, 1), Cause.REQUESTED, "Run cancelled")
    view = read_job(bucket, j)
    assert (view.state, view.tasks[1].state) == (JobState.CANCELLED, TaskState.CANCELLED)
    assert bucket.store.list("queued/").rows == ()


def test_person_stops_one_member_and_the_gang_is_over(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    cancel.stop_task(bucket, j, 0)
    end_member(bucket, attempt(j, 0), Cause.REQUESTED, "Stopped on request")
    stop_all(bucket, j, attempt(j, 0))
    view = read_job(bucket, j)
    assert view.state is JobState.CANCELLED
    assert [one.state for one in view.tasks] == [TaskState.CANCELLED, TaskState.COSCHED_FAILED]


def test_person_stops_one_member_that_waits_and_the_gang_is_over(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    cancel.stop_task(bucket, j, 0)
    tend(bucket, j)
    job = bucket.job(j)
    assert job is not None
    mend.mend_job(bucket, j, since=bucket.now(), claimed={}, waiting={})
    view = read_job(bucket, j)
    assert view.state is JobState.CANCELLED, view
    assert bucket.store.list("queued/").rows == ()


def test_person_stops_a_member_between_two_generations_and_the_gang_is_over(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    end_member(bucket, attempt(j, 1), Cause.FAILURE)
    cancel.stop_task(bucket, j, 1)
    assert order.requeue(bucket, j, 1).how is order.Requeue.WAITS
    stop_all(bucket, j, attempt(j, 1))
    job = bucket.job(j)
    assert job is not None
    assert cancel.carry_out_stop(bucket, j, 1, job, bucket.terms(job))
    tend(bucket, j)
    mend.mend_job(bucket, j, since=bucket.now(), claimed={}, waiting={})
    view = read_job(bucket, j)
    assert view.state is JobState.CANCELLED, view
    assert [one.state for one in view.tasks] == [TaskState.COSCHED_FAILED, TaskState.CANCELLED]
    assert bucket.store.list("queued/").rows == bucket.store.list(keys.OPEN).rows == ()


def test_members_that_wait_for_a_restart_say_for_whom_and_until_when(bucket: Bucket) -> None:
    j = submit_gang(bucket, 3)
    start(bucket, j)
    end_member(bucket, attempt(j, 0))
    end_member(bucket, attempt(j, 1), Cause.FAILURE)
    half = read_job(bucket, j)
    assert (half.tasks[0].state, half.tasks[0].reason) == (TaskState.COMPLETED, "Exited with code 0")
    assert half.tasks[1].reason == "Gang restart after train-1: Exited with code 1" and half.tasks[1].restart_at == 0.0
    stop_all(bucket, j, attempt(j, 1))
    view = read_job(bucket, j)
    assert (view.state, view.reason) == (JobState.PENDING, "Gang restart after train-1: Exited with code 1")
    assert {one.state for one in view.tasks} == {TaskState.PENDING}
    assert [one.restart_at for one in view.tasks] == pytest.approx([bucket.now() + 10] * 3)
    assert view.tasks[0].restarts.failures == 1


def test_deleted_gang_leaves_nothing(bucket: Bucket) -> None:
    j = submit_gang(bucket)
    start(bucket, j)
    for rank in (0, 1):
        end_member(bucket, attempt(j, rank))
    delete.delete_job(bucket, j)
    assert [row.key for row in bucket.store.list("").rows if not row.key.startswith(("deleted/", "state/"))] == []
