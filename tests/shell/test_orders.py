"""Orders in a worker's inbox, and what a person's requeue does of a task wherever it stands."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, delete, entries, holding, order, place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import send
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.load_world import Memory
from stado_like.bucket.order import GRAVEST_FIRST, Requeue, give_stop, requeue, stops_for
from stado_like.errors import Conflict, NotFound
from stado_like.job import codec, keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId
from stado_like.job.records import Claim, Order
from stado_like.job.states import Cause, Decision
from stado_like.planning.board import Hold
from stado_like.planning.place_actions import EvictOne
from stado_like.store.protocol import list_all
from stado_worker.shim.life import RANK_OF_STOP
from tests.builders_jobs import Clock, attempt, beat, claim, end, make_bucket, run, submit


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


@pytest.fixture
def held(bucket: Bucket) -> AttemptId:
    a = attempt(submit(bucket))
    claim(bucket, a)
    beat(bucket, a)
    return a


def inbox(bucket: Bucket, worker: str = "w1") -> list[str]:
    return [row.key for row in list_all(bucket.store, keys.inbox(worker))]


def late(bucket: Bucket, clock: Clock, a: AttemptId, k: int = 1, cause: Cause = Cause.MOVED) -> str:
    """An order that the network delivered three minutes after it was decided."""
    key = keys.order("w1", "stop", a, k)
    made = Order(nonce=f"late-{k}", attempt=str(a), kind="stop", cause=cause, reason="?", decided_at=bucket.now() - 180)
    bucket.put(key, made)
    return key


# ---- orders


def test_orders_rank_causes_as_the_supervisor_does() -> None:
    assert list(GRAVEST_FIRST) == sorted(GRAVEST_FIRST, key=lambda cause: RANK_OF_STOP[cause])


def test_order_given_is_found_by_its_worker_and_by_no_other(bucket: Bucket, held: AttemptId) -> None:
    key = give_stop(bucket, "w1", held, Cause.MOVED, "Moved off machine w1: it is being drained")
    (found,) = stops_for(bucket, "w1", {})
    assert (found.key, found.attempt, found.cause) == (key, held, Cause.MOVED)
    assert found.reason == "Moved off machine w1: it is being drained"
    assert stops_for(bucket, "w2", {}) == []
    assert stops_for(bucket, "w1", {key: found}) == [found]


def test_order_of_the_same_or_a_lesser_cause_is_given_once(bucket: Bucket, held: AttemptId) -> None:
    first = give_stop(bucket, "w1", held, Cause.REQUEUED, "x")
    assert give_stop(bucket, "w1", held, Cause.REQUEUED, "y") == first
    assert give_stop(bucket, "w1", held, Cause.PREEMPTED, "z") == first
    assert inbox(bucket) == [first]


def test_graver_order_lies_beside_the_lesser_one(bucket: Bucket, held: AttemptId) -> None:
    first = give_stop(bucket, "w1", held, Cause.PREEMPTED, "x")
    second = give_stop(bucket, "w1", held, Cause.REQUEUED, "y")
    assert inbox(bucket) == [first, second] and first != second


def test_order_that_came_too_late_stops_nothing_and_goes(bucket: Bucket, clock: Clock, held: AttemptId) -> None:
    late(bucket, clock, held)
    assert stops_for(bucket, "w1", {}) == []
    assert inbox(bucket) == []


def test_order_that_came_in_time_holds_however_long_it_lies(bucket: Bucket, clock: Clock, held: AttemptId) -> None:
    """Its worker was away for an hour."""
    give_stop(bucket, "w1", held, Cause.REQUEUED, "x")
    clock.now_s += 3600
    assert [one.cause for one in stops_for(bucket, "w1", {})] == [Cause.REQUEUED]


def test_order_that_came_too_late_protects_nobody(bucket: Bucket, clock: Clock, held: AttemptId) -> None:
    burnt = late(bucket, clock, held)
    key = give_stop(bucket, "w1", held, Cause.MOVED, "x")
    assert key != burnt
    assert [one.key for one in stops_for(bucket, "w1", {})] == [key]
    assert inbox(bucket) == [key]


def test_orders_that_cannot_be_read_are_passed_over(bucket: Bucket, held: AttemptId) -> None:
    bucket.store.put(keys.order("w1", "stop", held, 1), b"{")
    bucket.store.put("inbox/w1/what", b"{}")
    bucket.store.put(keys.order("w1", "place", held, 1), b"{}")
    assert stops_for(bucket, "w1", {}) == []
    assert give_stop(bucket, "w1", held, Cause.MOVED, "x").endswith(".2.json")
    assert len(stops_for(bucket, "w1", {})) == 1


def test_tick_drops_orders_for_what_nobody_holds(bucket: Bucket, held: AttemptId) -> None:
    """Its worker died with the task and never comes back."""
    other = attempt(submit(bucket, "other"))
    claim(bucket, other)
    beat(bucket, other)
    kept = give_stop(bucket, "w1", held, Cause.MOVED, "x")
    give_stop(bucket, "w1", other, Cause.MOVED, "x")
    end(bucket, other)
    Tick(bucket).step()
    assert inbox(bucket) == [kept]
    end(bucket, held)
    Tick(bucket).step()
    assert inbox(bucket) == []


# ---- requeue


def test_requeue_of_a_running_task_orders_its_worker(bucket: Bucket, held: AttemptId) -> None:
    done = requeue(bucket, held.job, 0, by="ada")
    assert (done.attempt, done.how, done.worker) == (held, Requeue.STOPPING, "w1")
    (found,) = stops_for(bucket, "w1", {})
    assert (found.attempt, found.cause, found.reason) == (held, Cause.REQUEUED, "Requeued by ada")
    ended = end(bucket, held, 143, cause=Cause.REQUEUED, reason=found.reason)
    assert (ended.decision, ended.due_ms) == (Decision.RETRY, int(ended.ended_at * 1000))
    assert (ended.budgets.failures, ended.budgets.machine, ended.budgets.preemptions) == (0, 0, 0)
    claim(bucket, held.next)


def test_requeue_with_a_reason_says_it(bucket: Bucket, held: AttemptId) -> None:
    requeue(bucket, held.job, 0, reason="wrong data set", by="ada")
    assert [one.reason for one in stops_for(bucket, "w1", {})] == ["wrong data set"]


def test_requeue_of_a_retry_that_waits_queues_it_now(bucket: Bucket) -> None:
    j = submit(bucket)
    run(bucket, attempt(j), 1)
    assert [row.key for row in list_all(bucket.store, keys.QUEUED_LATER)]
    done = requeue(bucket, j, 0, by="ada")
    assert (done.how, done.attempt) == (Requeue.QUEUED, attempt(j, 0, 2))
    assert not list(list_all(bucket.store, keys.QUEUED_LATER))
    (row,) = list_all(bucket.store, keys.QUEUED_OPEN)
    assert keys.parse_entry(row.key).attempt == attempt(j, 0, 2)
    assert requeue(bucket, j, 0).how is Requeue.WAITS
    claim(bucket, attempt(j, 0, 2))


def test_requeue_of_a_queued_task_does_nothing(bucket: Bucket) -> None:
    j = submit(bucket)
    before = [row.key for row in list_all(bucket.store, "")]
    assert requeue(bucket, j, 0).how is Requeue.WAITS
    assert [row.key for row in list_all(bucket.store, "")] == before


def test_requeue_of_what_is_over_or_stopped_is_refused(bucket: Bucket, held: AttemptId) -> None:
    cancel.cancel_job(bucket, held.job)
    with pytest.raises(Conflict, match="is being stopped for good"):
        requeue(bucket, held.job, 0)
    end(bucket, held, cause=Cause.REQUESTED)
    with pytest.raises(Conflict, match="has ended already"):
        requeue(bucket, held.job, 0)
    with pytest.raises(NotFound, match="has 1 tasks, 0 to 0; there is no 1"):
        requeue(bucket, held.job, 1)
    assert inbox(bucket) == []


def test_requeue_of_what_a_tick_is_ending_is_refused(bucket: Bucket) -> None:
    """It waited too long: the tick took it, and died or sleeps before it wrote the end. No worker could be told."""
    a = attempt(submit(bucket))
    taken = Claim(nonce="n", attempt=str(a), worker="", since=bucket.now(), overdue="Waited for 60 s")
    assert send(bucket, a, codec.encode(taken), "") is None
    with pytest.raises(Conflict, match="is being ended: Waited for 60 s") as refused:
        requeue(bucket, a.job, 0)
    assert refused.value.code == "TASK_STOPPED"
    assert inbox(bucket) == []


def test_requeue_under_a_claim_whose_end_stands_is_about_the_next_attempt(bucket: Bucket, held: AttemptId) -> None:
    """Its supervisor wrote the end and nothing else yet: the attempt that follows waits for nothing."""
    job = bucket.job(held.job)
    assert job is not None

    end_attempt(bucket, held, bucket.terms(job), Ended(Cause.FAILURE, "x"), Seen(by="w1"))
    done = order.requeue(bucket, held.job, 0)
    assert (done.attempt, done.how) == (held.next, Requeue.WAITS)
    assert inbox(bucket) == []
    last = bucket.end(held)
    assert last is not None
    entries.enqueue_after(bucket, job, bucket.terms(job), held.next, last)
    assert order.requeue(bucket, held.job, 0).how is Requeue.QUEUED


def _evict(bucket: Bucket, held: AttemptId, head: AttemptId) -> tuple[int, str]:
    asked = EvictOne(held, "w1", head, "Preempted by higher-priority work (urgent)")
    counts, said = place.carry_out(bucket, asked, Memory())
    return counts["evicted"], said


def _hold(bucket: Bucket, head: AttemptId) -> None:
    holding.write(bucket, (), (Hold(head.job, "w1", 1000, 1, 0, 10, created_ms=1),))


def test_nobody_is_stopped_for_a_job_that_was_cancelled_or_deleted_meanwhile(bucket: Bucket, held: AttemptId) -> None:
    """A plan is seconds old, a listing may be: the urgent job's entry was in it, and it wants no room any more."""
    head = AttemptId(submit(bucket, "urgent"), 0, 1)
    _hold(bucket, head)
    cancel.cancel_job(bucket, head.job)
    assert _evict(bucket, held, head) == (0, "")
    delete.delete_job(bucket, head.job)
    assert _evict(bucket, held, head) == (0, "")
    assert inbox(bucket) == []


def test_nobody_is_stopped_for_a_head_that_somebody_holds_by_now(bucket: Bucket, held: AttemptId) -> None:
    """Room came free elsewhere between the plan and the stop, and the head was claimed there."""
    head = AttemptId(submit(bucket, "urgent"), 0, 1)
    _hold(bucket, head)
    claim(bucket, head, "w2")
    assert _evict(bucket, held, head) == (0, "")
    end(bucket, head)
    assert _evict(bucket, held, head) == (0, ""), "nor for one that ended"
    assert inbox(bucket) == []


def test_nobody_is_stopped_for_room_that_is_not_held_or_not_for_long(
    bucket: Bucket, clock: Clock, held: AttemptId
) -> None:
    """The hold was not written, it is another's by now, or nobody renewed it: a third would take the room."""
    head, other = (AttemptId(submit(bucket, name), 0, 1) for name in ("urgent", "other"))
    said = f"{held} is not stopped for {head.job}: no room is held for it now"
    assert _evict(bucket, held, head) == (0, said)
    _hold(bucket, other)
    assert _evict(bucket, held, head) == (0, said)
    _hold(bucket, head)
    clock.now_s += holding.STANDS_S - holding.LEFT_WITHIN_S
    assert _evict(bucket, held, head) == (0, said)
    assert inbox(bucket) == []
    _hold(bucket, head)
    assert _evict(bucket, held, head)[0] == 1
    assert len(inbox(bucket)) == 1
