"""What a transition leaves when it is cut short, found and finished: from `open/` for watched jobs and deletions, from
a sweep of `jobs/` for the rest.

    submit cut short       →  the first entries, the index
    a rank never released  →  its entry, if its lane lets it go
    an attempt nowhere     →  its entry: open, and neither entry, claim nor end is there, asked in this order
    all tasks over         →  verdict, final, indexes
    a verdict or stop without its index, a deletion without its end  →  these

Never all ranks of a large array at once: a page of ranks a time, from where the last one stopped; each lane's frontier
is on the way, because the first rank of a lane without any trace is one of the ranks gone through. Running here beside
the submitter, the supervisors or another tick is harmless: all of them write the same keys.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.bucket import delete, doorbell, entries, finish, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load import Listed
from stado_like.job import blocks, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Job, Pointer
from stado_like.job.terms import Terms
from stado_like.planning import lanes
from stado_like.store.protocol import list_all

RANKS_A_TIME = 256
WORTH_A_LISTING = 8
"""Ranks: to look for one of them costs three requests and more."""
ORPHAN_S = 24 * 3600.0


@dataclass(slots=True)
class Mended:
    """What was done. `cursor`: the rank to go on with; 0 when the last page of ranks was looked through."""

    queued: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    over: bool = False
    cursor: int = 0
    landed: AttemptId | None = None
    """Of a one-task job that goes on: the open attempt, which is on the queue or further."""


def mend_job(
    bucket: Bucket,
    j: JobId,
    *,
    since: float,
    claimed: Mapping[int, int],
    waiting: Mapping[int, int],
    cursor: int = 0,
    ranks: bool = True,
    known: Job | None = None,
) -> Mended:
    """Finish what is unfinished about a job of open/. Raises `StoreUnavailable`, `BadRecord`.

    `since`: when its index was written. `claimed`, `waiting`: ranks whose attempt was seen in running/ or queued/ a
    moment ago. `ranks` False: only look whether it is over. `known`: its record, as it was read once; whether there is
    a tombstone is asked in any case.
    """
    done = Mended(cursor=cursor)
    job = known or bucket.job(j)
    if bucket.tombstone(j) is not None:
        delete.finish_deletion(bucket, j, job)
        done.notes.append("finished its deletion")
        done.over = True
        return done
    if job is None:
        if bucket.now() - since > ORPHAN_S:
            bucket.drop(keys.open_index(j))
            done.notes.append("dropped its index: no such job for a day")
            done.over = True
        return done
    terms = bucket.terms(job)
    if not terms.several:
        if terms.watched:
            _mend_one(bucket, j, job, terms, since, done)
        else:
            done.over = _deletion_never_begun(bucket, j, since, done)
        return done
    listed = load.list_status(bucket, j)
    if "final" in listed.own:
        done.over = _drop_indexes(bucket, j, listed, since, done)
        return done
    if "verdict" in listed.own and _index_verdict(bucket, j):
        done.notes.append("wrote the index of its verdict")
    if _stops_without_index(bucket, j, listed):
        done.notes.append("wrote the index of stops")
    if ranks and "verdict" not in listed.own and _too_many_failed(bucket, j, terms, listed):
        done.notes.append("wrote the verdict that its failed tasks had made due")
        listed.own.add("verdict")
    if ranks and "verdict" not in listed.own:
        _go_through(bucket, j, job, terms, listed, claimed, waiting, done)
    going_on = done.queued or claimed or ("verdict" not in listed.own and _waits(listed, waiting))
    if not going_on:
        done.over = finish.finish_if_over(bucket, j, job, terms, listed)
    doorbell.ring_entries(bucket, done.queued)
    return done


def _waits(listed: Listed, waiting: Mapping[int, int]) -> bool:
    """Whether an attempt is on the queue that has not ended: an entry may be left over."""
    return any(
        n > max(listed.ends.get(rank, ()), default=0) and not listed.units.get(rank, False)
        for rank, n in waiting.items()
    )


def _deletion_never_begun(bucket: Bucket, j: JobId, since: float, done: Mended) -> bool:
    """The index of a one-task job, and no tombstone: nothing was taken away. A deletion that wrote it may still be on
    its way, for a day; the submit of a several-task job that found the name taken left it for nothing."""
    if bucket.now() - since <= ORPHAN_S:
        found = bucket.read(Pointer, keys.open_index(j))
        if found is None or found.record.what == delete.DELETION:
            return False
    bucket.drop(keys.open_index(j))
    done.notes.append("dropped the index of a deletion that never began")
    return True


def _drop_indexes(bucket: Bucket, j: JobId, listed: Listed, since: float, done: Mended) -> bool:
    """The job is final and settled but for its indexes. One that a deletion wrote a moment ago is left to it."""
    found = bucket.read(Pointer, keys.open_index(j))
    if found is not None and found.record.what == delete.DELETION and bucket.now() - since <= ORPHAN_S:
        return False
    bucket.drop(
        keys.cancel_index(j), *(keys.cancel_index(j, rank) for rank in sorted(listed.stops)), keys.open_index(j)
    )
    done.notes.append("dropped the indexes of a job that is over")
    return True


def _mend_one(bucket: Bucket, j: JobId, job: Job, terms: Terms, since: float, done: Mended) -> None:
    """A one-task job that ticks watch: looked after, and out of the index once it is over."""
    _look_at_one(bucket, j, job, terms, done)
    if done.over:
        done.over = _drop_indexes(bucket, j, Listed(), since, done)


def _index_verdict(bucket: Bucket, j: JobId) -> bool:
    """The index of an early verdict, where whoever decided it died before writing it."""
    verdict = bucket.verdict(j)
    if verdict is None or not verdict.early:
        return False
    if any(bucket.present(keys.cancel_index(j))):
        return False
    bucket.ensure(keys.cancel_index(j), Pointer(what=verdict.reason, at=verdict.at))
    doorbell.ring(bucket, ("cancel", str(j)))
    return True


def _too_many_failed(bucket: Bucket, j: JobId, terms: Terms, listed: Listed) -> bool:
    """Whoever ended the task that was one too many counted by a listing, which may have been old."""
    if len(listed.ends) <= terms.max_task_failures:
        return False
    return finish.verdict_by_count(bucket, j, terms, listed) is not None


def _stops_without_index(bucket: Bucket, j: JobId, listed: Listed) -> bool:
    """Stops of ranks that go on, not yet in the index. (A rank's end settles its stop: its index is gone for good.)"""
    wrote = False
    for rank in sorted(listed.stops):
        if load.task_now(bucket, j, rank, listed).is_over or any(bucket.present(keys.cancel_index(j, rank))):
            continue
        stop = bucket.stop(j, rank)
        if stop is not None:
            bucket.ensure(keys.cancel_index(j, rank), Pointer(what=stop.reason, at=stop.at))
            wrote = True
    return wrote


def _go_through(
    bucket: Bucket,
    j: JobId,
    job: Job,
    terms: Terms,
    listed: Listed,
    claimed: Mapping[int, int],
    waiting: Mapping[int, int],
    done: Mended,
) -> None:
    """A page of ranks: queue again what is nowhere, release what its lane lets go. Those seen elsewhere a moment ago
    need no look."""
    if terms.block:
        _go_through_blocks(bucket, j, job, terms, listed, claimed, waiting, done)
        return
    first = done.cursor if done.cursor < terms.tasks else 0
    last = min(first + RANKS_A_TIME, terms.tasks)
    done.cursor = last if last < terms.tasks else 0
    if _unseen(terms, listed, claimed, waiting, range(first, last)) >= WORTH_A_LISTING:
        waiting = {**waiting, **_on_queue(bucket, j, job, terms)}
    for rank in range(first, last):
        newest = max(listed.ends.get(rank, ()), default=0)
        if max(claimed.get(rank, 0), waiting.get(rank, 0)) > newest:
            continue
        traced = rank in listed.ends or rank in listed.beats
        if traced or lanes.is_first(terms, rank):
            task = load.task_now(bucket, j, rank, listed)
            if task.open is not None:
                _queue_if_nowhere(bucket, job, terms, task.open, task.last, done)
        elif _may_go(bucket, j, terms, rank, listed, claimed):
            _queue_if_nowhere(bucket, job, terms, keys.AttemptId(j, rank, 1), None, done)


def _unseen(
    terms: Terms, listed: Listed, claimed: Mapping[int, int], waiting: Mapping[int, int], ranks: range
) -> int:
    """How many of these ranks are to be looked for one by one."""
    there = (rank for rank in ranks if rank in listed.ends or rank in listed.beats or lanes.is_first(terms, rank))
    return sum(1 for rank in there if rank not in claimed and rank not in waiting)


def _on_queue(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> dict[int, int]:
    """The ranks whose entries a listing of this job's shows."""
    index = keys.QUEUED_HELD if terms.held else keys.QUEUED_OPEN
    found: dict[int, int] = {}
    for row in list_all(bucket.store, keys.entries_of(index, j, terms.priority, job.created_ms)):
        a = keys.parse_entry(row.key).attempt
        found[a.rank] = max(a.n, found.get(a.rank, 0))
    return found


def _go_through_blocks(
    bucket: Bucket,
    j: JobId,
    job: Job,
    terms: Terms,
    listed: Listed,
    claimed: Mapping[int, int],
    waiting: Mapping[int, int],
    done: Mended,
) -> None:
    """The same for a job in blocks: a page of blocks, and the ranks of those that have ended. `cursor` is a unit."""
    first = done.cursor if blocks.is_unit(terms, done.cursor) else terms.tasks
    last = min(first + max(1, RANKS_A_TIME // terms.block), terms.units)
    done.cursor = last if last < terms.units else 0
    for unit in range(first, last):
        if unit in claimed:
            continue
        a = keys.AttemptId(j, unit, 1)
        if bucket.end(a) is None:
            above = blocks.parent(terms, unit)
            let_go = above is None or above in listed.units or above in claimed
            if let_go or load.was_released(bucket, j, job, terms, unit, listed):
                _queue_if_nowhere(bucket, job, terms, a, None, done)
            continue
        for rank in blocks.ranks_of(terms, unit):
            newest = max(listed.ends.get(rank, ()), default=0)
            if max(claimed.get(rank, 0), waiting.get(rank, 0)) > newest:
                continue
            task = load.task_now(bucket, j, rank, listed)
            if task.open is not None:
                _queue_if_nowhere(bucket, job, terms, task.open, task.last, done)


def _may_go(bucket: Bucket, j: JobId, terms: Terms, rank: int, listed: Listed, claimed: Mapping[int, int]) -> bool:
    """Whether its lane has released a rank. (The first ones of a group that depends on others are released by a pass
    of their own.)"""
    before = lanes.predecessor(terms, rank)
    if before is None:
        return False
    if not terms.release_by_end:
        return before in listed.ends or before in claimed or before in listed.beats
    return before in listed.ends and load.task_now(bucket, j, before, listed).is_over  # guard: lane rule


def _queue_if_nowhere(bucket: Bucket, job: Job, terms: Terms, a: AttemptId, before: End | None, done: Mended) -> None:
    """Queue an attempt that nobody can find. It passes from its entry to its claim to its end, and is looked for in
    this order; a verdict that came meanwhile forbids it."""
    if any(bucket.present(*entries.all_keys(job, terms, a, before))):
        return
    if any(bucket.present(keys.running(a))) or any(bucket.present(keys.end(a))):
        return
    judged, buried, there = bucket.present(keys.verdict(a.job), keys.tombstone(a.job), keys.job(a.job))
    if judged or buried or not there:  # guard: a kept job still stands
        return
    if before is None:
        done.queued.append(entries.enqueue(bucket, job, terms, a))
    else:
        done.queued.append(entries.enqueue_after(bucket, job, terms, a, before))


def sweep_job(bucket: Bucket, j: JobId, ended: int = 0) -> Mended:
    """One row of jobs/: what no index shows. `over`: it needs no other look. `ended`: an end of its first task that is
    listed. Raises `StoreUnavailable`, `BadRecord`."""
    done = Mended()
    job = bucket.job(j)
    if job is None:
        return done
    if bucket.tombstone(j) is not None:
        if bucket.ensure(keys.open_index(j), Pointer(what=delete.DELETION, at=bucket.now())):
            done.notes.append("a deletion without its index: it is finished from there")
        return done
    terms = bucket.terms(job)
    if terms.several:
        return _sweep_several(bucket, j, job, done)
    _look_at_one(bucket, j, job, terms, done, ended)
    if terms.watched and not done.over:
        _put_back(bucket, j, job, done)
    return done


def _look_at_one(bucket: Bucket, j: JobId, job: Job, terms: Terms, done: Mended, ended: int = 0) -> None:
    """The one task of a job: over, under a decision whose index is there, or to be found by whoever looks for it."""
    task = load.task_now(bucket, j, 0, Listed(ends=defaultdict(set, {0: {ended}} if ended else {})))
    if task.open is None:
        # Its last end says it all; what a canceller left in the index goes by the index.
        done.over = True
        return
    if any(bucket.present(keys.verdict(j))):
        if _index_verdict(bucket, j):
            done.notes.append("wrote the index of its verdict")
        return
    stop = bucket.stop(j, 0)
    if stop is not None:
        if bucket.ensure(keys.cancel_index(j, 0), Pointer(what=stop.reason, at=stop.at)):
            done.notes.append("wrote the index of its stop")
        return
    _queue_if_nowhere(bucket, job, terms, task.open, task.last, done)
    done.landed = task.open
    doorbell.ring_entries(bucket, done.queued)


def _sweep_several(bucket: Bucket, j: JobId, job: Job, done: Mended) -> Mended:
    if any(bucket.present(keys.final(j))):
        done.over = True
    else:
        _put_back(bucket, j, job, done)
    return done


def _put_back(bucket: Bucket, j: JobId, job: Job, done: Mended) -> None:
    if bucket.ensure(keys.open_index(j), Pointer(what="submitted", at=job.created_ms / 1000)):
        done.notes.append("put back into the index of open jobs")
