"""Claim: how exactly one worker gets an attempt, and how it finds out that it may start it.

    create running/<a>  →  gate  →  release the lane's next rank  →  delete the entry  →  launch

The create has one winner, but a winner is not yet allowed to start: its entry may have been old. So after the
create, and only then, it looks for whatever would forbid it. What the looks find cannot appear for this attempt
without the claim being seen, because whoever ends a queued attempt looks for the claim first.

A gate whose answers did not come is *unknown*: the claim is kept, the gate asked again, nothing is launched.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.bucket import blocks, entries, generations, lanes, outcome
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, cancelled, end_attempt, give_back
from stado_like.bucket.generations import Placed
from stado_like.bucket.settle import drop_orphan, settle, verdict_reason
from stado_like.errors import StoreUnavailable
from stado_like.job import blocks as block_of
from stado_like.job import codec, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, Claim, End, Job
from stado_like.job.states import Cause
from stado_like.job.terms import Terms
from stado_like.planning import lanes as lane_rule
from stado_like.planning import overdue
from stado_like.store.conditional import Won


@dataclass(frozen=True, slots=True)
class Open:
    """The gate is passed: this worker may start the attempt."""

    job: Job
    terms: Terms
    previous: End | None
    placed: Placed | None = None
    """Of a gang's member: by which placement."""

    @property
    def budgets(self) -> Budgets:
        return self.previous.budgets if self.previous is not None else Budgets()


@dataclass(frozen=True, slots=True)
class Taken:
    """Another worker holds it; its entry was spent and is deleted."""

    by: str


@dataclass(frozen=True, slots=True)
class Over:
    """The attempt has ended, was stopped, or its job is gone: settled, and the claim let go. `why` is for the log."""

    why: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """The store did not answer: keep the claim, ask again, never launch."""

    why: str


def send(bucket: Bucket, a: AttemptId, body: bytes, queue_key: str) -> Taken | Unsure | None:
    """Send a claim (its bytes are on the worker's disk by now). None: it stands, and is ours."""
    try:
        won = bucket.decide_bytes(keys.running(a), body)
        if isinstance(won, Won):
            return None
        if queue_key:
            bucket.drop(queue_key)
    except StoreUnavailable as unavailable:
        return Unsure(unavailable.message)
    return Taken(codec.decode(Claim, won.found.body, keys.running(a)).worker)


def gate(bucket: Bucket, a: AttemptId, claim: Claim) -> Open | Over | Unsure:
    """What a claimer must see before it starts. Three HEADs side by side, then the tombstone,
    then the job itself (it is needed anyway)."""
    try:
        return _gate(bucket, a, claim)
    except StoreUnavailable as unavailable:
        return Unsure(unavailable.message)


def _gate(bucket: Bucket, a: AttemptId, claim: Claim) -> Open | Over:
    ended, judged, stopped = bucket.present(keys.end(a), keys.verdict(a.job), keys.stop(a.job, a.rank))
    # After the end, never beside it: a deletion writes its tombstone before it takes anything, so without a tombstone
    # now, what was absent a moment ago had not been taken away.
    (buried,) = bucket.present(keys.tombstone(a.job))  # guard: tombstone looked for last
    job = None if buried else bucket.job(a.job)
    if job is None:  # guard: gate looks for the job
        drop_orphan(bucket, a, claim.queue_key)
        return Over("there is no such job any more")
    terms = bucket.terms(job)
    if a.rank >= terms.units:
        drop_orphan(bucket, a, claim.queue_key)
        return Over(f"the job has {terms.tasks} tasks: a stray entry")
    if not ended and not blocks.is_open(bucket, a, terms):  # guard: carried or open
        drop_orphan(bucket, a, claim.queue_key)
        return Over("its block has not given it back: a stray entry")
    if ended:  # guard: gate looks for the end
        return _settle_ended(bucket, a, job, claim)
    if judged:  # guard: gate looks for the verdict
        verdict = bucket.verdict(a.job)
        reason = verdict_reason(verdict) if verdict else reasons.RUN_CANCELLED
        return _end_unstarted(bucket, a, job, terms, claim, cancelled(reason))
    if stopped and block_of.is_unit(terms, a.rank):  # guard: gate looks for the mark
        return _give_back(bucket, a, job, terms, claim)
    if stopped:  # guard: gate looks for the stop
        stop = bucket.stop(a.job, a.rank)
        reason = stop.reason if stop else reasons.STOPPED_ON_REQUEST
        return _end_unstarted(bucket, a, job, terms, claim, cancelled(reason))
    previous = bucket.end(a.previous) if a.previous is not None else None
    if a.previous is not None and (previous is None or previous.is_final):
        drop_orphan(bucket, a, claim.queue_key)
        return Over("the attempt before it did not ask for another one: a stray entry")
    placed = generations.seat_of(bucket, a, claim.worker, claim.generation) if _needs_seat(terms, claim) else None
    if isinstance(placed, str):  # guard: gate reads the placement
        bucket.drop(keys.running(a))  # its entry stays: a tick places it
        return Over(placed)
    if placed is not None and placed.barrier is not None and not placed.barrier.go:  # guard: gate obeys an abort
        return _end_unstarted(bucket, a, job, terms, claim, Ended(Cause.BARRIER, placed.barrier.reason))
    late = _too_late(bucket, a, job, terms, previous)
    if late:
        return _end_unstarted(bucket, a, job, terms, claim, Ended(Cause.UNSCHEDULABLE, late))
    if terms.parent and outcome.is_over(bucket, JobId.parse(terms.parent)):  # guard: gate looks for the parent
        return _end_unstarted(bucket, a, job, terms, claim, cancelled(reasons.PARENT_TERMINATED))
    return Open(bucket.as_split(job), terms, previous, placed)


def _needs_seat(terms: Terms, claim: Claim) -> bool:
    """A tick that takes an attempt to end it needs none."""
    return terms.gang and not claim.overdue


def _too_late(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, previous: End | None) -> str:
    """Why an attempt may not start any more, as far as its claimer can tell; empty: it may."""
    if previous is not None:
        return overdue.why(terms, previous.due_ms / 1000 or None, bucket.now())
    begun = lane_rule.is_first(terms, a.rank) and not terms.after
    return overdue.why(terms, job.created_ms / 1000 if begun else None, bucket.now())


def _settle_ended(bucket: Bucket, a: AttemptId, job: Job, claim: Claim) -> Over:
    """A claimer that finds the attempt ended carries out what its end decided; dropping the claim alone would lose
    the task."""
    end = bucket.end(a)
    if end is None:
        drop_orphan(bucket, a, claim.queue_key)  # deleted with its job since the gate saw it
        return Over("its job was deleted just now")
    settle(bucket, a, end, job=job, queue_key=claim.queue_key, mending=True)  # guard: failed gate settles
    return Over("the attempt had ended")


def _end_unstarted(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, claim: Claim, ended: Ended) -> Over:
    seen = Seen(worker=claim.worker, claimed_at=claim.since, by="claimer", generation=claim.generation)
    end = end_attempt(bucket, a, terms, ended, seen).end
    settle(bucket, a, end, job=job, queue_key=claim.queue_key, mending=True)
    return Over(ended.reason)


def _give_back(bucket: Bucket, unit: AttemptId, job: Job, terms: Terms, claim: Claim) -> Over:
    """Some tasks of this block were stopped by a person: each of them has to meet its own gate."""
    seen = Seen(worker=claim.worker, claimed_at=claim.since, by="claimer")
    end = give_back(bucket, unit, terms, seen)
    settle(bucket, unit, end, job=job, queue_key=claim.queue_key, mending=True)
    return Over(reasons.BLOCK_GIVEN_BACK)


def confirm(bucket: Bucket, a: AttemptId, opened: Open, claim: Claim) -> list[str]:
    """After the gate, before the launch: the lane's next rank, or the units that this one releases; then the entry
    goes. Returns the new entries.

    Raises `StoreUnavailable`: the claim stands, call again.
    """
    released = lanes.release_by_claim(bucket, a, opened.job, opened.terms)
    unwanted = {key for key in (claim.queue_key, claim.order) if key}
    unwanted.update(entries.all_keys(opened.job, opened.terms, a, opened.previous))
    bucket.drop(*sorted(unwanted))
    return released


def undo(bucket: Bucket, a: AttemptId, claim: Claim) -> End | None:
    """The claim stands and its process was never started, nor will it be: end it *undelivered*, which spends nothing.

    None: the job is gone, or a block carries the attempt. Raises `StoreUnavailable`.
    """
    job = bucket.job(a.job)
    is_open = blocks.is_open(bucket, a, bucket.terms(job)) if job is not None else False
    if is_open is None:
        return None  # its block goes on: whoever ends that decides, and the claim is reaped after it
    if job is None or not is_open:
        drop_orphan(bucket, a, claim.queue_key)
        return None
    seen = Seen(worker=claim.worker, claimed_at=claim.since, by=claim.worker, generation=claim.generation)
    ended = end_attempt(bucket, a, bucket.terms(job), Ended(Cause.UNDELIVERED, reasons.UNDELIVERED), seen)
    settle(bucket, a, ended.end, job=job, queue_key=claim.queue_key, mending=True)
    return ended.end
