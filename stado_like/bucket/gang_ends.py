"""What follows one end of a gang's member, as far as it can be carried out at once: the rest is stopped for an end that
was not exit 0; after the last one of a generation that starts again, the next attempts are queued.

What nobody holds is not ended here: `gang.tend` does, which ticks call. So a gang of any size costs its supervisors
little, and whoever dies half-way leaves it to a tick.
"""

from __future__ import annotations

from stado_like.bucket import entries, generations, order
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.generations import Standing
from stado_like.job import gang, keys
from stado_like.job.gang import MemberEnd
from stado_like.job.keys import AttemptId
from stado_like.job.records import Budgets, End, Job
from stado_like.job.states import Cause
from stado_like.job.terms import Terms

SMALL_GANG = 64
"""Of a larger one the tick does it all: every end would look at all members."""


def after_end(bucket: Bucket, a: AttemptId, end: End, job: Job, terms: Terms) -> list[str]:
    """Stop the rest, or queue all again. Returns new entries. Idempotent. Raises `StoreUnavailable`, `BadRecord`."""
    follows_another = end.cause in (Cause.GANG, Cause.BARRIER)
    if terms.tasks > SMALL_GANG:
        return []
    standing = generations.look_at(bucket, a.job, terms)
    if standing.doomed and not follows_another:  # guard: a bad end stops the rest
        stop_the_rest(bucket, terms, standing)
    return queue_again(bucket, job, terms, standing)


def stop_the_rest(bucket: Bucket, terms: Terms, standing: Standing) -> int:
    """Order whoever holds a member that has not ended to stop it. Returns how many hold one."""
    cause, reason = why_stopped(terms, standing)
    first = _first_to_end(standing)
    if cause is Cause.GANG and first is not None and first.end.cause is Cause.PREEMPTED:
        cause, reason = Cause.PREEMPTED, first.end.reason  # as a whole: the rest is told so already, or is now
    held = 0
    for a in standing.open.values():
        claim = bucket.claim(a)
        if claim is None or claim.record.overdue:
            continue
        order.give_stop(bucket, claim.record.worker, a, cause, reason)
        held += 1
    return held


def why_stopped(terms: Terms, standing: Standing) -> tuple[Cause, str]:
    """Why a generation's members that have not ended must."""
    first = _first_to_end(standing)
    if standing.barrier is not None and standing.aborted:
        return Cause.BARRIER, standing.barrier.reason
    assert first is not None
    before = standing.placement.budgets if standing.placement is not None else Budgets()
    return Cause.GANG, gang.stop_reason(terms, first, list(standing.ended.values()), before)


def _first_to_end(standing: Standing) -> MemberEnd | None:
    """For which the others are stopped: not one that was stopped for another itself, if that can be."""
    bad = standing.bad
    return next((one for one in bad if one.end.cause not in (Cause.GANG, Cause.BARRIER)), bad[0] if bad else None)


def queue_again(bucket: Bucket, job: Job, terms: Terms, standing: Standing) -> list[str]:
    """The next attempts of a generation that has wholly ended and starts again."""
    if standing.whole is None or not standing.whole.restart:  # guard: the complete set decides
        return []
    following = [one.attempt.next for _, one in sorted(standing.ended.items())]
    there = bucket.present(*(entries.open_key(job, terms, a) for a in following))
    queued = []
    for a in (a for a, is_there in zip(following, there, strict=True) if not is_there):
        if any(bucket.present(keys.running(a), keys.end(a))):
            continue
        before = a.previous
        assert before is not None
        bucket.drop(*entries.all_keys(job, terms, before, None))  # whoever ended it unclaimed may have died over it
        queued.append(entries.enqueue(bucket, job, terms, a))
    return queued
