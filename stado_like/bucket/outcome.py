"""What became of a job, as others may rely on it: those that wait for it, and its children.

Only what is for ever is told as an end: `final.json`, or a one-task job's final end. The tombstone is looked for after
them: a deletion writes it before it takes anything, so without a tombstone now, a job that is not there never was.
"""

from __future__ import annotations

from stado_like.bucket import load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.finish import task_end
from stado_like.bucket.load import Listed
from stado_like.job import keys, rollup
from stado_like.job.keys import JobId
from stado_like.planning.awaited import Came

GONE = Came(gone=True)


def came_to(bucket: Bucket, j: JobId) -> Came:
    """Raises `StoreUnavailable`, `BadRecord`."""
    job = bucket.job(j)
    if job is None:
        return GONE
    terms = bucket.terms(job)
    came = Came()
    if terms.several:
        final = bucket.final(j)
        if final is not None:
            came = Came(final.state, final.reason)
    else:
        task = load.task_now(bucket, j, 0, Listed())
        if task.is_over and task.last is not None:
            rolled = rollup.over(terms, [task_end(terms, 0, task.last)])
            came = Came(rolled.state, rolled.reason)
    return GONE if any(bucket.present(keys.tombstone(j))) else came


def is_over(bucket: Bucket, j: JobId) -> bool:
    """Whether a job is over for its children: ended, deleted, never there, or judged, for what it still has to end is
    no reason for them to go on. Raises as `came_to` does."""
    if any(bucket.present(keys.verdict(j))):
        return True
    came = came_to(bucket, j)
    return came.gone or came.state is not None
