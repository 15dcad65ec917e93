"""What a placement decided, carried out: one task given to a worker, an order taken back, room held, a total split, an
entry moved to the index where it belongs.

    place one:  create inbox/<worker>/place.<a>.<k>.json  →  ring  →  its worker claims the attempt, as ever

The entry stays in `queued/held` until it is claimed, so nothing is lost with an order: it decides nothing but where.
The claim decides. One that is not claimed within a minute, because its worker had no room after all or is gone, is
taken back, and the same attempt goes elsewhere; that worker is passed over for ten minutes. So an attempt may lie in
two inboxes at once (two ticks, an order taken back while its worker was sending the claim): both claim, one wins.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from stado_like.bucket import doorbell, entries, gang, holding, lanes, order, ordered_place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_world import Memory
from stado_like.bucket.queue_memory import note_given, note_unsplit
from stado_like.job import keys
from stado_like.job.ids import AttemptId
from stado_like.job.records import Entry
from stado_like.job.split import GroupSplit, Split, undecided
from stado_like.job.states import Cause
from stado_like.job.terms import Terms
from stado_like.planning import lanes as lane_rule
from stado_like.planning.place_actions import (
    Action,
    DecideShape,
    EvictOne,
    KeepRoom,
    MoveEntry,
    PlaceGang,
    PlaceOne,
    PutOff,
    TakeBack,
    TendGang,
)
from stado_like.store.conditional import Won


def carry_out(bucket: Bucket, action: Action, memory: Memory) -> tuple[Counter[str], str]:
    """Counts for the report, and a sentence where something was decided. Raises `StoreUnavailable`, `BadRecord`."""
    match action:
        case MoveEntry():
            moved = move(bucket, action.key, action.to) if action.to else renew(bucket, action.attempt, action.key)
            return Counter({"moved": int(moved)}), ""
        case TakeBack():
            bucket.drop(action.order.key)
            return Counter({"taken_back": 1}), f"{action.order.attempt}: {action.order.worker} did not claim it"
        case DecideShape():
            memory.watching.known.pop(action.shaped[0].job, None)  # it said other numbers
            return _decide_shape(bucket, action)
        case PutOff():
            note_unsplit(memory.places, action.unsplit, bucket.now())
            return Counter(), ""
        case KeepRoom():
            memory.queue.holds, memory.queue.holds_etag = (
                holding.write(bucket, action.before, action.holds, action.nonce),
                "",
            )
            return Counter({"holds": len(action.holds)}), ""
        case EvictOne():
            return _evict(bucket, action)
        case PlaceOne():
            return _place_one(bucket, action, memory.places)
        case PlaceGang():
            memory.queue.rests.wake(action.job)
            placed = gang.place(bucket, action.job, action.generation, action.where, action.devices)
            return Counter({"placed": len(placed.orders)}), f"{action.job}: {placed.why}" if placed.why else ""
        case TendGang():
            return _tend(bucket, action)


def _evict(bucket: Bucket, action: EvictOne) -> tuple[Counter[str], str]:
    """Nobody is stopped for work that needs no room any more: an old listing, or a plan that is seconds old, still has
    its entry. Nor is one told to stop that has ended meanwhile. And the room must be held still when it comes free: the
    write that renews a hold may have failed a moment ago, or another tick holds room for others now."""
    a, head = action.attempt, action.head
    over = (keys.verdict(head.job), keys.tombstone(head.job))
    if any(bucket.present(keys.running(head), keys.end(head), *over)):  # guard: the head still waits
        return Counter(), ""
    if any(bucket.present(keys.end(a))):
        return Counter(), ""
    if not holding.is_held_for(bucket, head.job):  # guard: room is held before a stop
        return Counter(), f"{a} is not stopped for {head.job}: no room is held for it now"
    order.give_stop(bucket, action.worker, a, Cause.PREEMPTED, action.reason)
    return Counter({"evicted": 1}), f"{a} on {action.worker}: {action.reason}"


def _place_one(bucket: Bucket, action: PlaceOne, cursors: dict[str, Any]) -> tuple[Counter[str], str]:
    a = action.attempt
    if any(bucket.present(keys.running(a), keys.end(a), keys.verdict(a.job), keys.tombstone(a.job))):
        return Counter(), ""  # it was not there when we looked, or is not to start any more
    ordered_place.give(bucket, action.worker, a, action.key, devices=action.devices)
    note_given(cursors, a, action.worker, bucket.now())
    return Counter({"placed": 1}), f"{a} to {action.worker}"


def _tend(bucket: Bucket, action: TendGang) -> tuple[Counter[str], str]:
    job = bucket.job(action.job)
    if job is None:
        return Counter(), ""
    done = gang.tend(bucket, action.job, job, bucket.terms(job))
    doorbell.ring_entries(bucket, done.queued)
    counts = {"ordered": done.ordered, "aborted": int(done.aborted), "went": int(done.went), "ended": done.ended}
    return Counter({**counts, "queued": len(done.queued)}), ""


def move(bucket: Bucket, key: str, to: str) -> bool:
    """Move an entry to the index where it belongs: there first, then away here. Whoever claims meanwhile deletes
    both. False: it was gone. Raises `StoreUnavailable`, `BadRecord`."""
    entry = keys.parse_entry(key)
    target = to + key.removeprefix(keys.QUEUED_OPEN if key.startswith(keys.QUEUED_OPEN) else keys.QUEUED_HELD)
    found = bucket.read(Entry, key)
    if found is None:
        return False
    if any(bucket.present(keys.running(entry.attempt))):
        bucket.drop(key)  # spent
        return False
    bucket.ensure(target, found.record)  # guard: new before old
    bucket.drop(key)
    doorbell.ring_entries(bucket, [target])
    return True


def renew(bucket: Bucket, a: AttemptId, key: str) -> bool:
    """An entry from before its job's total was split gives way to the one that follows from the shape."""
    job = bucket.job(a.job)
    terms = bucket.terms(job) if job is not None else None
    if job is None or terms is None or not terms.shaped or key in entries.all_keys(job, terms, a, None):
        return False
    if not any(bucket.present(keys.running(a), keys.end(a))):
        entries.enqueue(bucket, job, terms, a)
    bucket.drop(key)
    return True


def _decide_shape(bucket: Bucket, action: DecideShape) -> tuple[Counter[str], str]:
    """Once, whoever comes first. Its entries follow from it; those that were written before say another ask."""
    first = action.shaped[0]
    j = first.job
    job = bucket.job(j)
    if job is None or any(bucket.present(keys.verdict(j), keys.tombstone(j))):
        return Counter(), ""
    if {one.group for one in action.shaped} != set(undecided(job.document)):
        return Counter(), ""  # not every entry was seen: a record that says less than all could not be added to
    before = bucket.terms(job)
    split = Split(
        nonce=bucket.token(),
        tasks=first.tasks,
        gpus_each=first.gpus_each,
        why=action.why,
        chosen_at=bucket.now(),
        groups=tuple(
            GroupSplit(group=one.group, tasks=one.tasks, gpus_each=one.gpus_each) for one in action.shaped if one.group
        ),
    )
    won = bucket.decide(keys.shape(j), split)
    queued = lay_out(bucket, j, before)
    told = f"{j}: {action.why}" if isinstance(won, Won) else ""
    return Counter({"shaped": int(isinstance(won, Won)), "queued": len(queued)}), told


def lay_out(bucket: Bucket, j: keys.JobId, before: Terms) -> list[str]:
    """The entries of a job's first ranks, now that there are ranks; those from before it are dropped. Idempotent.
    `before`: its terms without a shape, by which a rank may have been another group's."""
    job = bucket.job(j)
    if job is None:
        return []
    terms = bucket.terms(job)
    stale = []
    for a in _first_attempts(j, before):
        old = entries.open_key(job, before, a)
        if a.rank >= terms.units or old != entries.open_key(job, terms, a):
            stale.append(old)
        elif entries.record(before, a) != entries.record(terms, a):
            bucket.drop(old)  # the same key, and another ask: it is written anew below
    queued = []
    for first in _first_attempts(j, terms):
        entry, *begun = lanes.seen(bucket, job, terms, first)
        if any(begun):
            continue
        if not entry or any(key in stale for key in entries.all_keys(job, terms, first, None)):
            queued.append(entries.enqueue(bucket, job, terms, first))  # guard: new before old
    for old in stale:
        bucket.drop(old)
    doorbell.ring_entries(bucket, queued)
    return queued


def _first_attempts(j: keys.JobId, terms: Terms) -> list[AttemptId]:
    return [AttemptId(j, rank, 1) for group in terms.groups for rank in lane_rule.head(terms, group)]
