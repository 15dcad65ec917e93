"""Submit: how a job comes to be.

    watched jobs: create open/<j>  →  create jobs/…<k>, HEAD deleted/<j>  →  create the first entries  →  open/<j>
    again  →  ring

(Watched: several tasks, `after`, a parent, a limit on how long it may wait.)

`jobs/…` decides: whoever creates it owns the name. Crash before it: nothing happened (an `open/` without a job is
dropped after a day). Crash after it: the submitter's retry carries the same request id and goes on, or the tick
finds the job, from `open/` or by its sweep of `jobs/`, and creates what is missing.

Which incarnation? The tombstone of a name's first incarnation is kept as long as any later one, so a fresh name
costs one create and one HEAD: created and no tombstone means that it never lived. Otherwise two listings find the
newest incarnation, and the create decides as always.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stado_like.bucket import doorbell, entries
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, Conflict
from stado_like.job import codec, keys
from stado_like.job.keys import JobId
from stado_like.job.records import Job, Pointer
from stado_like.job.terms import Terms, terms_of
from stado_like.planning import lanes
from stado_like.store.conditional import Won
from stado_like.store.protocol import list_all

CREATED_AGAIN_AFTER_S = 5.0
BEGUN_AHEAD = 8


@dataclass(frozen=True, slots=True)
class Submitted:
    """`fresh` is False when this request had been carried out before."""

    id: JobId
    job: Job
    fresh: bool


@dataclass(frozen=True, slots=True)
class DoneAndDeleted:
    """This very request was carried out, ran, and was deleted since."""

    id: JobId


def submit(
    bucket: Bucket,
    document: Mapping[str, Any],
    *,
    request_id: str = "",
    by: str = "",
    origin: str = "",
) -> Submitted | DoneAndDeleted:
    """Submit a document in stored form. Raises `Conflict` when the name is taken, `StoreUnavailable`.

    With a `request_id` of one's own, submitting again after a lost answer gives the same job.
    """
    terms = terms_of(document)
    nonce = bucket.token()
    job = Job(
        nonce=nonce,
        request_id=request_id or nonce,
        workspace=terms.workspace,
        name=terms.name,
        incarnation=1,
        created_ms=int(bucket.now() * 1000),
        document=document,
        submitted_by=by,
        submitted_from=origin,
    )
    k = 1
    while True:
        j = JobId(terms.workspace, terms.name, k)
        with bucket.synced_together():  # a disk makes all of it durable at once, before anybody is told
            taken = _take(bucket, j, replace(job, incarnation=k), terms)
        if taken is not None:
            return taken
        following = _next_incarnation(bucket, j, request_id, after=k)
        if isinstance(following, DoneAndDeleted):
            return following
        k = following


def _take(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> Submitted | DoneAndDeleted | None:
    """Create this incarnation. None: it is over for ever, look further."""
    if terms.watched:
        bucket.ensure(keys.open_index(j), Pointer(what="submitted", at=job.created_ms / 1000))
    for rank in lanes.first_ranks(terms)[:BEGUN_AHEAD]:
        entries.begin(bucket, job, terms, keys.AttemptId(j, rank, 1))
    won = bucket.decide(keys.job(j), job)
    if not isinstance(won, Won):
        standing = codec.decode(Job, won.found.body, keys.job(j))
        if bucket.tombstone(j) is not None:
            return None
        if standing.request_id != job.request_id:
            raise _taken(terms, j)
        release_first(bucket, j, standing, bucket.terms(standing))
        return Submitted(j, standing, fresh=False)
    buried = bucket.tombstone(j)
    if buried is not None:  # guard: tombstone after create
        # Its index stays: it may frame a deletion that is under way or was cut short, and the tick drops it after that.
        bucket.drop(keys.job(j))
        return DoneAndDeleted(j) if buried.request_id == job.request_id else None
    release_first(bucket, j, job, terms)
    return Submitted(j, job, fresh=True)


def _taken(terms: Terms, j: JobId) -> Conflict:
    return Conflict(
        f"a job named {terms.name} exists already in workspace {terms.workspace} ({j})",
        f"Choose another name (`--name {terms.name}-2`), run the same again (`stado job rerun {terms.name}`), "
        f"or delete it (`stado job delete {terms.name}`) once it has ended.",
        code="JOB_EXISTS",
    )


def release_first(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> None:
    """The first entries, the index, the bell. Idempotent: the tick calls it for a submit that was cut short."""
    queued = [entries.enqueue(bucket, job, terms, keys.AttemptId(j, rank, 1)) for rank in lanes.first_ranks(terms)]
    if terms.watched and bucket.now() - job.created_ms / 1000 > CREATED_AGAIN_AFTER_S:
        # A tick may have dropped the index as an orphan if this submit slept for a day before it created the job.
        bucket.ensure(keys.open_index(j), Pointer(what="submitted", at=job.created_ms / 1000))
    if not terms.several:
        doorbell.ring_entries(bucket, queued)
    else:
        waits_for_a_tick = bool(terms.held or terms.after)
        doorbell.ring(bucket, (doorbell.HELD if waits_for_a_tick else "queue", str(j)))


def _next_incarnation(bucket: Bucket, j: JobId, request_id: str, *, after: int) -> int | DoneAndDeleted:
    """The incarnation to try after `after` was found to be over: one above the newest that is known.

    A request id of the caller's own is looked for in the tombstones first: its job may have been a later incarnation,
    run and deleted before this repetition of the request came.
    """
    newest = after
    for row in list_all(bucket.store, keys.jobs_of_name(j.workspace, j.name)):
        newest = max(newest, _k_of(keys.parse_job, row.key, j))
    buried = 0
    for row in list_all(bucket.store, f"{keys.DELETED}{j.workspace}.{j.name}."):
        k = _k_of(keys.parse_tombstone, row.key, j)
        buried = max(buried, k)
        if request_id and k:
            stone = bucket.tombstone(JobId(j.workspace, j.name, k))
            if stone is not None and stone.request_id == request_id:
                return DoneAndDeleted(JobId(j.workspace, j.name, k))
    if newest > max(after, buried):
        return newest
    return max(newest, buried) + 1


def _k_of(parse: Any, key: str, j: JobId) -> int:
    try:
        found: JobId = parse(key)
    except BadRecord:
        return 0
    return found.k if (found.workspace, found.name) == (j.workspace, j.name) else 0
