"""Releasing the next rank of an array's lane, obeying the verdict. The rule, and why it is enough, is in
`planning/lanes`."""

from __future__ import annotations

from stado_like.bucket import entries
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Job
from stado_like.job.terms import Terms
from stado_like.planning import lanes


def release_by_claim(bucket: Bucket, a: AttemptId, job: Job, terms: Terms) -> list[str]:
    """A claim that passed its gate releases the next rank, where no cap on parallel ranks says to wait for the end.

    The gate has just seen that no verdict stands. Returns the entries' keys.
    """
    if terms.release_by_end:  # guard: lane rule
        return []
    if a.n > 1:
        return []  # the first attempt's claim did it, or whoever ended it for a claimer that died
    return _release(bucket, a, job, terms)


def release_by_end(
    bucket: Bucket, a: AttemptId, job: Job, terms: Terms, *, final: bool, mending: bool = False
) -> list[str]:
    """An end releases the next rank: a final one where the lane is capped, any first one where it is not (its claim
    did, unless the claimer died in between, so only a mender does it here).

    The caller has looked for a verdict after the end stood, and found none. `mending`: the release may have
    happened long ago, so look before writing an entry that would only be claimed in vain.
    """
    if terms.release_by_end:
        if not final:  # guard: lane rule
            return []
    elif not mending:
        return []
    return _release(bucket, a, job, terms, mending=mending)


def _release(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, *, mending: bool = False) -> list[str]:
    following = [keys.AttemptId(a.job, rank, 1) for rank in lanes.successors(terms, a.rank)]
    return [
        entries.enqueue(bucket, job, terms, first)
        for first in following
        if not (mending and any(seen(bucket, job, terms, first)))
    ]


def seen(bucket: Bucket, job: Job, terms: Terms, first: AttemptId) -> tuple[bool, bool, bool]:
    """Whether the first attempt of a rank has an entry, a claim, an end: asked in the order in which it passes
    through them, so that one which moves on while we look is met further on. All three absent: the rank was never
    released."""
    entry = any(any(bucket.present(key)) for key in entries.all_keys(job, terms, first, None))
    (claim,) = bucket.present(keys.running(first))
    (end,) = bucket.present(keys.end(first))
    return entry, claim, end
