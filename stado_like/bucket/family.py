"""Parents and children: what is read of a parent, and the end of a child whose parent is over. The rule is in
`planning/family`.

    child's end:  create verdict (Cancelled, `Parent job terminated`)  →  as any cancel

A parent is over for its children as soon as a verdict on it stands: what it still has to end is no reason for them to
go on. A child's claimer asks the same after its claim stands, so one that was queued after that never starts.
"""

from __future__ import annotations

from stado_like.bucket import cancel, finish
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys, reasons
from stado_like.job.keys import JobId
from stado_like.job.states import JobState


def end_child(bucket: Bucket, j: JobId) -> cancel.Cancelled | None:
    """Decide the end of a child and carry out what can be done at once. None: it is gone, or was judged already."""
    job = bucket.job(j)
    if job is None or any(bucket.present(keys.verdict(j), keys.tombstone(j))):
        return None
    terms = bucket.terms(job)
    finish.early_verdict(bucket, j, JobState.CANCELLED, reasons.PARENT_TERMINATED, by="tick")
    return cancel.carry_out(bucket, j, job, terms)
