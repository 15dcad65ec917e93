"""Jobs that wait for other jobs (`after`): what is read of those, and the release. The rule is in `planning/awaited`.

    release:  look for verdict and tombstone  →  create status/…/released.json (go)  →  each entry: create in
              queued/open, delete in queued/held  →  ring
    give up:  create status/…/released.json (why)  →  as a cancel

A waiter's first entries lie in `queued/held`, where no worker looks. `released.json` decides, once and either way: two
ticks may have read an awaited job before and after it was deleted. From then on every entry of a released job is
written where any worker may claim it, whoever writes it, and the awaited jobs are never asked again. A crash after it
leaves entries behind in `held`, or no verdict, and the next tick goes on from there. No gate asks for the awaited
jobs: an entry in `queued/open` is made only by a release, and what it looked for does not change.
"""

from __future__ import annotations

from stado_like.bucket import doorbell
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.entries import GO, released_at
from stado_like.bucket.outcome import came_to
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Entry, Job, Pointer
from stado_like.job.terms import After, Terms
from stado_like.planning.awaited import Came, Waiter
from stado_like.store.protocol import list_all

Known = dict[JobId, Came]
"""What jobs came to, as far as one tick has asked."""


def look_at(bucket: Bucket, j: JobId, terms: Terms, known: Known) -> Waiter:
    """A waiter as it stands. Raises `StoreUnavailable`, `BadRecord`."""
    decided = bucket.read(Pointer, keys.released(j))
    if decided is not None:
        said = decided.record.what
        return Waiter(j, released=said == GO, never="" if said == GO else said)
    return Waiter(j, awaited(bucket, terms, known))


def awaited(bucket: Bucket, terms: Terms, known: Known) -> tuple[tuple[After, Came], ...]:
    found = []
    for wanted in terms.after:
        other = JobId.parse(wanted.job)
        if other not in known:
            known[other] = came_to(bucket, other)
        found.append((wanted, known[other]))
    return tuple(found)


def release(bucket: Bucket, j: JobId, job: Job, terms: Terms, *, again: bool = False) -> list[str]:
    """Let a waiter go, unless it was given up; returns the entries that workers may claim now. Idempotent. `again`:
    that was decided before. Raises `StoreUnavailable`, `BadRecord`."""
    if any(bucket.present(keys.verdict(j), keys.tombstone(j))):
        return []
    if not again and decide(bucket, j, GO) != GO:
        return []
    if terms.held:
        return []  # a placement starts them
    prefix = keys.entries_of(keys.QUEUED_HELD, j, terms.priority, job.created_ms)
    queued = [moved for row in list_all(bucket.store, prefix) if (moved := move(bucket, row.key)) is not None]
    doorbell.ring_entries(bucket, queued)
    return queued


def decide(bucket: Bucket, j: JobId, what: str) -> str:
    """Whether a waiter goes (`GO`) or why it never can, once and for ever; returns what stands."""
    bucket.ensure(keys.released(j), Pointer(what=what, at=bucket.now()))
    standing = bucket.read(Pointer, keys.released(j))  # guard: one decision on a waiter
    return standing.record.what if standing is not None else what


def move_left(bucket: Bucket, a: AttemptId, key: str) -> bool:
    """Move an entry that was written, or seen, after its job had been released. Whether it was one."""
    if not key.startswith(keys.QUEUED_HELD) or released_at(bucket, a.job) is None:
        return False
    job = bucket.job(a.job)
    if job is None or bucket.terms(job).held:
        return False
    moved = move(bucket, key)
    doorbell.ring_entries(bucket, [moved] if moved else [])
    return moved is not None


def move(bucket: Bucket, held: str) -> str | None:
    """One entry of a released job, from where it was held to where any worker may claim it. None: it was moved."""
    found = bucket.read(Entry, held)
    if found is None:
        return None
    opened = keys.QUEUED_OPEN + held.removeprefix(keys.QUEUED_HELD)
    bucket.ensure(opened, found.record)  # guard: new before old
    bucket.drop(held)
    return opened
