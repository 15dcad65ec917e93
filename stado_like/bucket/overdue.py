"""Tasks that waited too long to start: who they are, and their end. The rule is in `planning/overdue`.

    end:  create running/<a> (the tick's own claim)  →  gate  →  create end.<n> (Unschedulable)  →  settle: the verdict
          on the job, which stops its other tasks  →  entry, claim deleted

The tick takes the attempt as a worker would, because the claim is what both must win: an attempt that a worker has is
never ended here, and one that ends here was never started. Its claim says why it was made, so a tick that finds one of
a tick that died carries on with it at once. A worker whose gate finds that it came too late ends it in the same way.
"""

from __future__ import annotations

from stado_like.bucket import claim, entries
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Open, Over, Taken, Unsure
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.errors import StoreUnavailable
from stado_like.job import codec, keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End, Job
from stado_like.job.states import Cause
from stado_like.job.terms import Terms
from stado_like.planning import lanes
from stado_like.planning import overdue as rule
from stado_like.planning.overdue import Late
from stado_like.store.protocol import Row, list_all


def late(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> tuple[Late, ...]:
    """The attempts of a job that wait in the queue and are too late. Raises `StoreUnavailable`, `BadRecord`."""
    rows = [
        row
        for index in (keys.QUEUED_HELD, keys.QUEUED_OPEN)
        for row in list_all(bucket.store, keys.entries_of(index, j, terms.priority, job.created_ms))
    ]
    if not rows:
        return ()
    released_at = entries.released_at(bucket, j) if terms.after else None
    found = []
    for row in rows:
        a = keys.parse_entry(row.key).attempt
        since_s = _waits_since_s(bucket, a, row, job, terms, released_at)
        reason = rule.why(terms, since_s, bucket.now())
        if reason:
            found.append(Late(a, row.key, reason))
    return tuple(found)


def _waits_since_s(
    bucket: Bucket, a: AttemptId, row: Row, job: Job, terms: Terms, released_at: float | None
) -> float | None:
    if a.previous is not None:
        before = bucket.end(a.previous)
        if before is not None and not before.due_ms:
            return row.last_modified  # queued when the last member of its gang had ended
        return before.due_ms / 1000 if before is not None else None
    if terms.after:
        at = released_at
        return at if at is None or lanes.is_first(terms, a.rank) else max(at, row.last_modified)
    return job.created_ms / 1000 if lanes.is_first(terms, a.rank) else row.last_modified


def end_late(bucket: Bucket, a: AttemptId, key: str, reason: str, standing: Claim | None = None) -> End | None:
    """End an attempt that nobody holds as Unschedulable. `standing`: the claim of a tick that died over it. None: a
    worker has it, or it was over. Raises `StoreUnavailable`: the claim may stand, and the next tick goes on."""
    taken = standing or Claim(
        nonce=bucket.token(), attempt=str(a), worker="", since=bucket.now(), queue_key=key, overdue=reason
    )
    if standing is None:
        sent = claim.send(bucket, a, codec.encode(taken), key)
        if isinstance(sent, Taken):  # guard: claim before Unschedulable
            return None
        if isinstance(sent, Unsure):
            raise StoreUnavailable(sent.why)
    gate = claim.gate(bucket, a, taken)
    if isinstance(gate, Unsure):
        raise StoreUnavailable(gate.why)
    if isinstance(gate, Over):
        return None
    assert isinstance(gate, Open)
    seen = Seen(claimed_at=taken.since, by="tick")
    ended = end_attempt(bucket, a, gate.terms, Ended(Cause.UNSCHEDULABLE, reason), seen)
    settle(bucket, a, ended.end, job=gate.job, queue_key=key, mending=True)
    return ended.end
