"""Probes of gangs: one placement, one verdict at the barrier, one decision from all ends."""

from __future__ import annotations

from stado_like.bucket import claim, gang, generations
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Over
from stado_like.bucket.gang_ends import queue_again
from stado_like.job import codec, gang_keys, keys
from stado_like.job.gang_records import Barrier
from stado_like.job.records import Claim
from stado_like.job.states import Cause
from stado_worker.shim.barrier import GangBarrier
from stado_worker.shim.life import Life
from stado_worker.shim.task import Task, read_of
from tests.builders_gangs import (
    end_member,
    make_ready,
    orders,
    place,
    send_ordered,
    start,
    stops,
    submit_gang,
    take_ordered,
    tend,
    terms_of,
)
from tests.builders_jobs import Clock, attempt, make_bucket


def _bucket() -> Bucket:
    return make_bucket(Clock())


def _at_the_barrier(bucket: Bucket) -> tuple[keys.JobId, int]:
    """Both members are claimed, and wait."""
    j = submit_gang(bucket)
    g = place(bucket, j)
    for rank in (0, 1):
        a, _, _ = take_ordered(bucket, f"w{rank}")
        make_ready(bucket, a, g)
    return j, g


def worker_that_was_not_given_a_member_does_not_start_it() -> None:
    bucket = _bucket()
    j = submit_gang(bucket)
    g = place(bucket, j)
    a = attempt(j)
    taken = Claim(nonce="n", attempt=str(a), worker="w9", since=bucket.now(), generation=g)
    assert claim.send(bucket, a, codec.encode(taken), "") is None
    assert isinstance(claim.gate(bucket, a, taken), Over), f"{a} may start on a machine that no placement names"


def claim_that_comes_after_an_abort_does_not_start() -> None:
    bucket = _bucket()
    j = submit_gang(bucket)
    g = place(bucket, j)
    sent = send_ordered(bucket, "w0")
    assert sent is not None
    generations.close(bucket, j, g, "why", by="tick")
    assert isinstance(claim.gate(bucket, sent[0].attempt, sent[1]), Over), "it may start, and none of its gang will"


def member_that_ended_keeps_its_gang_from_starting() -> None:
    """All were ready; one ended, and the verdict was created by one that had looked before."""
    bucket = _bucket()
    j, g = _at_the_barrier(bucket)
    end_member(bucket, attempt(j), Cause.MACHINE_LOST)
    slow = Barrier(nonce="slow", go=True, attempts=(str(attempt(j)), str(attempt(j, 1))))
    assert not generations.decide(bucket, j, g, slow).go, "go, though a member had ended"


def barrier_has_one_verdict() -> None:
    bucket = _bucket()
    j, g = _at_the_barrier(bucket)
    generations.close(bucket, j, g, "why", by="w0")
    generations.decide(bucket, j, g, Barrier(nonce="slow", go=True))
    standing = generations.read_barrier(bucket, j, g)
    assert standing is not None and not standing.go, "the barrier said abort, and then go"


def gang_starts_when_every_member_is_ready() -> None:
    bucket = _bucket()
    j = submit_gang(bucket)
    g = place(bucket, j)
    a, _, _ = take_ordered(bucket, "w0")
    make_ready(bucket, a, g)
    assert gang.try_go(bucket, j, g, "w0") is None, "go though a member is not ready"


def gang_does_not_start_under_a_verdict() -> None:
    """The one that was cancelled has not closed the barrier yet."""
    bucket = _bucket()
    j, g = _at_the_barrier(bucket)
    bucket.store.put(keys.verdict(j), b"{}")
    assert gang.try_go(bucket, j, g, "w0") is None, "go though the job was cancelled"


def second_placement_of_a_generation_changes_nothing() -> None:
    """Two ticks decide at once: the second one has looked before the first one wrote."""
    bucket = _bucket()
    j = submit_gang(bucket)
    terms = terms_of(bucket, j)
    standing = generations.look_at(bucket, j, terms)
    waits = gang.waits(bucket, j, terms)
    assert waits is not None
    members = list(waits.members)
    assert not gang._create(bucket, terms, standing, waits, dict.fromkeys(members, "w1"))
    gang._create(bucket, terms, standing, waits, dict.fromkeys(members, "w2"))
    placement = generations.read_placement(bucket, j, 1)
    assert placement is not None and {one.worker for one in placement.members} == {"w1"}, "two placements of one gang"


def member_that_somebody_holds_is_ended_by_its_holder() -> None:
    bucket = _bucket()
    j, g = _at_the_barrier(bucket)
    generations.close(bucket, j, g, "why", by="w0")
    tend(bucket, j)
    assert bucket.end(attempt(j)) is None, "a member was ended on paper while its holder lives"


def failed_member_stops_the_others() -> None:
    bucket = _bucket()
    j = submit_gang(bucket)
    start(bucket, j)
    end_member(bucket, attempt(j), Cause.FAILURE)
    assert stops(bucket, "w1"), "a member waits for ever for one that has ended"


def nothing_follows_before_all_have_ended() -> None:
    bucket = _bucket()
    j = submit_gang(bucket)
    start(bucket, j)
    end_member(bucket, attempt(j), Cause.FAILURE)
    job = bucket.job(j)
    assert job is not None
    standing = generations.look_at(bucket, j, terms_of(bucket, j))
    assert queue_again(bucket, job, terms_of(bucket, j), standing) == []
    rows = [row.key for row in bucket.store.list(keys.QUEUED).rows]
    assert rows == [], "the next attempt was queued while another member runs"


def order_of_ten_minutes_ago_starts_nothing() -> None:
    bucket = _bucket()
    j = submit_gang(bucket)
    place(bucket, j)
    (asked,) = orders(bucket, "w0")
    clock = bucket.ambient
    assert isinstance(clock, Clock)
    clock.now_s += 600
    bucket.put(asked.key, asked.order)
    assert orders(bucket, "w0") == [], "an order that its sender had given up long ago is obeyed"


def member_starts_on_go_for_itself_only() -> None:
    """The verdict names others: it is of a placement that this member is not in."""
    bucket = _bucket()
    j, g = _at_the_barrier(bucket)
    a = attempt(j)
    claimed, job = bucket.claim(a), bucket.job(j)
    assert claimed is not None and job is not None
    task = Task(
        attempt=str(a),
        store="",
        worker="w0",
        claim=claimed.record,
        job=job,
        placement=generations.read_placement(bucket, j, g),
    )
    life = Life(bucket.ambient, bucket.now(), bucket.ambient.boot_s())
    barrier = GangBarrier(read_of(task), life, bucket, bucket.ambient, lambda: 1)
    barrier.reached()
    bucket.decide(gang_keys.barrier(j, g), Barrier(nonce="n", go=False, reason="why"))
    barrier.step()
    assert barrier.opened is None, "a member started though its gang was told not to"
    assert life.stop is not None, "nobody told it to end"
