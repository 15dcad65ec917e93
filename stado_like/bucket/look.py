"""Looking at one claim: its heartbeat, where that is late its newest checkpoint, and at the last moment all of it
again.

The three signals are judged in `planning/liveness`; here they are read, each with the store's time of its own answer.
What cannot be read raises, and is never taken for silence.
"""

from __future__ import annotations

from collections.abc import Callable

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity, Heartbeat
from stado_like.job.spec.limits import DEFAULT_HEARTBEAT_TTL_S
from stado_like.planning import liveness
from stado_like.planning.world import Beat, Blob, Broadcast, Held, Look
from stado_like.store.protocol import Stat


def look_at(
    bucket: Bucket, held: Held, ttl_of_attempt: Callable[[AttemptId], float], *, ended: Stat | None = None
) -> Look:
    """Read the signals of one claim: its heartbeat, and where that is late its newest checkpoint. Raises `StoreError`.

    `ended`: the answer to the question for its end record, asked before.
    """
    read_at = bucket.ambient.boot_s()
    if ended is not None:
        return Look(held, ended_at=ended.last_modified, read_at=read_at)
    beat = _beat(bucket, held.attempt)
    known = beat.record if beat is not None else None
    ttl_s = float(known.ttl_s) if known is not None and known.ttl_s > 0 else ttl_of_attempt(held.attempt)
    look = Look(held, ttl_s=ttl_s, beat=beat, read_at=read_at)
    if not liveness.is_heartbeat_late(look):
        return look
    return Look(held, ttl_s=ttl_s, beat=beat, blob=_newest_blob(bucket, held.attempt), read_at=read_at)


def look_again(bucket: Bucket, held: Held) -> Look | None:
    """A fresh look at a claim, all of it from the store: for whoever is about to decide its death. None: the claim is
    gone, or another's.

    Raises `StoreError`, `BadRecord`.
    """
    found = bucket.claim(held.attempt)
    if found is None or found.record.nonce != held.claim.nonce:
        return None
    # Etag and time stay those of the listing, which the arming knows: point reads spell them in another way on some
    # stores.
    again = Held(held.attempt, found.record, held.etag, held.last_modified, found.now)
    said = bucket.read(Capacity, keys.capacity(held.claim.worker))
    if said is not None:
        word = Broadcast(held.claim.worker, said.record, said.last_modified, said.now)
        if liveness.is_vouched(again, {held.claim.worker: word}):
            return Look(again, vouched=True, read_at=bucket.ambient.boot_s())
    ended = bucket.store.head(keys.end(held.attempt))
    return look_at(bucket, again, lambda a: ttl_of(bucket, a), ended=ended)


def ttl_of(bucket: Bucket, a: AttemptId) -> float:
    """The lease that an attempt's specification asks for; the default where the job is gone, for then there is nothing
    to protect."""
    job = bucket.job(a.job)
    if job is None:
        return float(DEFAULT_HEARTBEAT_TTL_S)
    try:
        return float(bucket.terms(job).for_rank(a.rank).ttl_s)
    except (KeyError, TypeError, AttributeError) as wrong:
        raise BadRecord(f"{keys.job(a.job)} is no specification: {wrong!r}", "`stado storage cat` shows it.") from None


def _beat(bucket: Bucket, a: AttemptId) -> Beat | None:
    found = bucket.store.get(keys.heartbeat(a))
    if found is None:
        return None
    try:
        record = codec.decode(Heartbeat, found.body, keys.heartbeat(a))
    except BadRecord:
        record = None  # it was written all the same, and its time is the proof
    return Beat(found.etag, found.last_modified, found.now, record)


def _newest_blob(bucket: Bucket, a: AttemptId) -> Blob | None:
    newest: Blob | None = None
    start_after = ""
    while True:
        page = bucket.store.list(keys.checkpoints_of(a), start_after=start_after)
        for row in page.rows:
            if newest is None or row.last_modified > newest.last_modified:
                newest = Blob(row.last_modified, page.now)
        if not page.more or not page.rows:
            return newest
        start_after = page.rows[-1].key
