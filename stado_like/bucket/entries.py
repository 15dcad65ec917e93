"""The queue entries of an attempt. All of them follow from the job, the attempt's number, and the end before it.

What any worker may claim lies in `queued/open`; what only a placement may start, in `queued/held`. There too lies the
first attempt of a task whose job waits for other jobs (`after`), until `status/…/released.json` says that they have
come to what was asked. A second attempt needs no such look: there was a first one.

So whoever needs an entry writes the same bytes under the same key, and whoever settles an attempt knows which keys
to delete.
"""

from __future__ import annotations

from dataclasses import replace

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Entry, Job, Pointer
from stado_like.job.terms import Ask, Terms

MOVE_AT_ONCE_MS = 250
GO = "go"
"""What `released.json` says where a job may go; else it says why it never may."""


def open_key(job: Job, terms: Terms, a: AttemptId, *, released: bool = False) -> str:
    """Where the entry of an attempt lies that may start now. `released`: what its job waits for has come."""
    held = terms.held or (_may_wait(terms, a) and not released)
    index = keys.QUEUED_HELD if held else keys.QUEUED_OPEN
    return keys.entry(index, a, terms.priority, job.created_ms, terms.for_rank(a.rank).ask)


def released_at(bucket: Bucket, j: JobId) -> float | None:
    """Since when a job that waits for others (`after`) may go. None: it was not let go."""
    found = bucket.read(Pointer, keys.released(j))
    return found.record.at if found is not None and found.record.what == GO else None


def _may_wait(terms: Terms, a: AttemptId) -> bool:
    """Whether an entry's index depends on what became of other jobs."""
    return bool(terms.after) and a.n == 1 and not terms.held


def record(terms: Terms, a: AttemptId, becomes: str = "") -> Entry:
    mine = terms.for_rank(a.rank)
    ask = mine.ask
    return Entry(
        attempt=str(a),
        cpu_millis=ask.cpu_millis,
        memory_bytes=ask.memory_bytes,
        gpus=ask.gpus,
        exclusive=ask.exclusive,
        pinned_host=ask.pinned_host,
        names=ask.names,
        labels=ask.labels,
        apart=ask.apart,
        needs=ask.needs,
        gpu_kind=ask.gpu_kind,
        ports=ask.ports,
        node_share=ask.node_share,
        time_limit_s=mine.time_limit_s,
        becomes=becomes,
    )


def ask_in(entry: Entry) -> Ask:
    """What an entry asks of a machine, read back."""
    return Ask(
        cpu_millis=entry.cpu_millis,
        memory_bytes=entry.memory_bytes,
        gpus=entry.gpus,
        exclusive=entry.exclusive,
        pinned_host=entry.pinned_host,
        names=entry.names,
        labels=entry.labels,
        apart=entry.apart,
        needs=entry.needs,
        gpu_kind=entry.gpu_kind,
        ports=entry.ports,
        node_share=entry.node_share,
    )


def later_key(terms: Terms, a: AttemptId, due_ms: int) -> str:
    return keys.later(due_ms, a, terms.for_rank(a.rank).ask)


def enqueue(bucket: Bucket, job: Job, terms: Terms, a: AttemptId) -> str:
    """Create the open entry of an attempt; returns its key. Idempotent."""
    released = _may_wait(terms, a) and released_at(bucket, a.job) is not None
    key = open_key(job, terms, a, released=released)
    bucket.ensure(key, record(terms, a))
    return key


def begin(bucket: Bucket, job: Job, terms: Terms, a: AttemptId) -> None:
    """Its entry will be created next, where nothing comes in between: see `Bucket.ahead`."""
    bucket.ahead(open_key(job, terms, a), codec.encode(record(terms, a)))


def enqueue_after(bucket: Bucket, job: Job, terms: Terms, a: AttemptId, before: End) -> str:
    """Create the entry of the attempt that follows `before`: at once, or in `later` until it is due. Idempotent."""
    if before.due_ms <= before.ended_at * 1000 + MOVE_AT_ONCE_MS:
        return enqueue(bucket, job, terms, a)
    key = later_key(terms, a, before.due_ms)
    bucket.ensure(key, record(terms, a, becomes=open_key(job, terms, a)))
    return key


def all_keys(job: Job, terms: Terms, a: AttemptId, before: End | None) -> tuple[str, ...]:
    """Every key under which an entry of this attempt can lie, in the order in which it passes through them; the last
    one is in `later`, where it may lie there. What any worker may claim lies in `held` while its workspace has a quota:
    a tick moves it, both ways."""
    possible = [open_key(job, terms, a)]
    if not terms.held:
        name = possible[0].removeprefix(keys.QUEUED_HELD).removeprefix(keys.QUEUED_OPEN)
        possible = [keys.QUEUED_HELD + name, keys.QUEUED_OPEN + name]
    if before is not None and before.due_ms:
        possible.append(later_key(terms, a, before.due_ms))
    return tuple(possible)


def move_due(bucket: Bucket, later: keys.LaterEntry) -> str | None:
    """A retry has become due: create the entry it becomes, then delete it here. Returns the new key; None when it
    was gone already.

    New before old: a crash in between leaves both, and whoever claims deletes both. Raises `StoreUnavailable`,
    `BadRecord`.
    """
    found = bucket.read(Entry, later.key)
    if found is None:
        return None
    becomes = found.record.becomes
    if keys.parse_entry(becomes).attempt != later.attempt:
        raise BadRecord(f"{later.key} would become {becomes}, which is another attempt", "It is left alone.")
    moved = replace(found.record, becomes="")  # what `enqueue` writes, and what a newer version added to it
    bucket.ensure(becomes, moved)  # guard: new before old
    bucket.drop(later.key)
    return becomes
