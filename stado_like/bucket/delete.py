"""Delete a terminal job, so that nothing of it can come back.

    create open/<j>  →  create deleted/<j>  →  delete jobs/…  →  index entries  →  data  →  status  →  delete open/<j>

The tombstone comes before anything is taken away: from then on every gate treats what is left as an orphan, and a
name used again gets the next incarnation. `open/<j>` frames the work, so that a crash at any point is finished by
the next tick; it goes last.
"""

from __future__ import annotations

from stado_like.bucket import entries, finish, load
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, NotFound
from stado_like.job import keys, rollup
from stado_like.job.keys import JobId
from stado_like.job.records import Job, Pointer, Tombstone
from stado_like.job.terms import Terms
from stado_like.store.protocol import list_all

DELETION = "deletion"
"""What the index of a deletion under way says."""


def delete_job(bucket: Bucket, j: JobId, *, by: str = "") -> None:
    """Raises `NotFound`, `Conflict` unless the job is terminal, `StoreUnavailable` (repeat it, or let the tick
    finish)."""
    job = bucket.job(j)
    if job is None:
        raise NotFound(f"there is no job {j}", "`stado job list --all` shows every job.")
    terms = bucket.terms(job)
    state = terminal_state(bucket, j, terms)
    if state is None:
        raise Conflict(
            f"the job {j} has not ended", f"Cancel it first: `stado job cancel {j.name}`.", code="JOB_ACTIVE"
        )
    # A put: an index left from the job's own life, or by a submit that was refused, is one that a tick drops.
    bucket.put(keys.open_index(j), Pointer(what=DELETION, at=bucket.now()))
    stone = Tombstone(
        nonce=bucket.token(), request_id=job.request_id, by=by, at=bucket.now(), state=state, created_ms=job.created_ms
    )
    bucket.ensure(keys.tombstone(j), stone)  # guard: delete order
    # Again: a tick may have been about to drop the index that stood before.
    bucket.ensure(keys.open_index(j), Pointer(what=DELETION, at=bucket.now()))
    finish_deletion(bucket, j, job)


def terminal_state(bucket: Bucket, j: JobId, terms: Terms) -> str | None:
    """The state of a job that is over for readers, or None."""
    if terms.several:
        final = bucket.final(j)
        return final.state.value if final is not None else None
    task = load.task_now(bucket, j, 0, load.list_status(bucket, j))
    if not task.is_over or task.last is None:
        return None
    return rollup.over(terms, [finish.task_end(terms, 0, task.last)]).state.value


def finish_deletion(bucket: Bucket, j: JobId, job: Job | None) -> None:
    """Everything after the tombstone. Idempotent; the tick calls it for a deletion that was cut short."""
    listed = load.listed_of(j, list_all(bucket.store, keys.status_of(j)))
    bucket.drop(keys.job(j))
    if job is not None:
        bucket.drop(*sorted(_entry_keys(j, job, bucket.terms(job), listed)))
    bucket.drop(keys.cancel_index(j), *(keys.cancel_index(j, rank) for rank in listed.stops))
    bucket.drop(*(row.key for row in list_all(bucket.store, keys.running_of(j))))
    for prefix in keys.data_of(j):
        bucket.drop(*(row.key for row in list_all(bucket.store, prefix)))
    bucket.drop(*(row.key for row in list_all(bucket.store, keys.status_of(j))))
    bucket.forget(j)
    bucket.drop(keys.open_index(j))  # guard: delete order


def _entry_keys(j: JobId, job: Job, terms: Terms, listed: load.Listed) -> set[str]:
    """Open entries that may still lie around: of the newest attempts. Any other that a late request brings back is
    an orphan, and its claimer drops it."""
    return {
        key
        for rank, ends in listed.ends.items()
        for key in entries.all_keys(job, terms, keys.AttemptId(j, rank, max(ends)), None)
    }
