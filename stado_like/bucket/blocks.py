"""Ends of blocks: what one record says of many first attempts, and how it is carried out.

    the holder of a unit     →  ends carried for the ranks it ran, the others given back, one perhaps goes on
    whoever ends it for the
    holder                   →  every rank of it ends the same way: lost, cancelled, undelivered

Order at the end of a block: (the claim of the rank that goes on) → create the unit's end → settle: the verdict that it
makes due; the next attempts, the ranks given back, the units it releases; its entries; its claim last. A crash before
the create leaves a claim that is reaped like any other, and perhaps a claim of a rank that is not open, which means
nothing and is dropped by whoever reaps it. A crash after it leaves the unit's claim: settled by the next tick.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stado_like.bucket import entries, finish, lanes
from stado_like.bucket.bucket import Bucket
from stado_like.job import blocks, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import End, Job, Stop, Verdict
from stado_like.job.states import Decision
from stado_like.job.terms import Terms


def verdict_due(bucket: Bucket, unit: AttemptId, end: End, terms: Terms) -> Verdict | None:
    """The verdict that these ends make due together. As `finish.verdict_by_end` for one; what ended well makes none
    due, for a job that is over with one group has no blocks."""
    own = [finish.task_end(terms, rank, one) for rank, one in _eventful(unit, end, terms).items() if one.is_final]
    return finish.verdict_by_ends(bucket, unit.job, own, terms, by=end.worker) if own else None


def release(bucket: Bucket, unit: AttemptId, end: End, job: Job, terms: Terms, *, mending: bool) -> list[str]:
    """Queue what this end lets go: next attempts, ranks given back, units where their release may be missing. The
    caller has found no verdict after the end stood."""
    made = []
    for a, before in open_now(unit, end, terms):
        if before is None and a.rank == end.goes_on:
            continue  # it is held already
        if mending and went_on(bucket, a, job, terms, before):
            continue
        if before is not None:
            made.append(entries.enqueue_after(bucket, job, terms, a, before))
        else:
            made.append(entries.enqueue(bucket, job, terms, a))
    return made + lanes.release_by_end(bucket, unit, job, terms, final=True, mending=mending)


def open_now(unit: AttemptId, end: End, terms: Terms) -> Iterable[tuple[AttemptId, End | None]]:
    """The attempts that are open by themselves because of this end, each with the end before it."""
    for rank, one in _eventful(unit, end, terms).items():
        if one.decision is Decision.RETRY:
            yield AttemptId(unit.job, rank, 2), one
    for rank in end.given_back:
        yield AttemptId(unit.job, rank, 1), None


def went_on(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, before: End | None) -> bool:
    """Whether an attempt is on its way already, asked in the order in which it passes: entry, claim, end."""
    if any(bucket.present(*entries.all_keys(job, terms, a, before))):
        return True
    if any(bucket.present(keys.running(a))):
        return True
    return any(bucket.present(keys.end(a)))


def is_open(bucket: Bucket, a: AttemptId, terms: Terms) -> bool | None:
    """Whether an attempt may be held by itself: always, but for a rank's first one that its block ended. None: its
    block goes on, and may yet give it back. Raises `StoreUnavailable`."""
    unit = blocks.unit_of(terms, a.rank) if a.n == 1 else None
    if unit is None:
        return True
    end = bucket.end(AttemptId(a.job, unit, 1))
    return None if end is None else a.rank in end.given_back


def mark(bucket: Bucket, a: AttemptId, terms: Terms, stop: Stop) -> None:
    """A person's stop of a rank whose block has not ended: whoever holds the block, or will, looks at each of its
    ranks. The rank's own stop stands already."""
    unit = blocks.unit_of(terms, a.rank)
    if unit is None or bucket.end(AttemptId(a.job, unit, 1)) is not None:
        return
    if not any(bucket.present(keys.stop(a.job, unit))):
        bucket.decide(keys.stop(a.job, unit), replace(stop, nonce=bucket.token()))  # guard: stop reaches the block


def _eventful(unit: AttemptId, end: End, terms: Terms) -> dict[int, End]:
    """The ends of those that did not simply complete: the others have no consequence."""
    found = {}
    for rank in blocks.ranks_of(terms, unit.rank):
        one = blocks.unpacked(AttemptId(unit.job, rank, 1), end) if blocks.is_eventful(end, rank) else None
        if one is not None:
            found[rank] = one
    return found
