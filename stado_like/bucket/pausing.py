"""Pausing the whole queue: one key that exists or does not. While it stands no worker claims; what runs goes on.

Workers read it when the bell says so and at every sweep, so a pause holds everywhere a minute later at most, and the
next claim after a resume is as late. It decides nothing about any job: submits, cancels, retries and ends go on.
"""

from __future__ import annotations

from stado_like.bucket import doorbell
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.order import HOLDS_S
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.wanted import Pause
from stado_like.store.conditional import Won


def read(bucket: Bucket) -> Pause | None:
    """None: it is not paused. A record that cannot be read is a pause all the same: the key is what decides. One that
    landed long after it was decided is none: the network kept the request while somebody resumed, and nobody knows of
    it. Raises `StoreUnavailable`."""
    try:
        found = bucket.read(Pause, keys.PAUSE)
    except BadRecord:
        return Pause(nonce="", reason="its record cannot be read; `stado queue resume` removes it")
    if found is None or (found.record.at and found.last_modified - found.record.at > HOLDS_S):
        return None
    return found.record


def pause(bucket: Bucket, *, reason: str = "", by: str = "") -> tuple[Pause, bool]:
    """The pause that stands, and whether it is ours: one that stood before keeps its reason. Raises
    `StoreUnavailable`."""
    if any(bucket.present(keys.PAUSE)) and read(bucket) is None:
        bucket.drop(keys.PAUSE)  # one that came too late must not stand in the way
    made = Pause(nonce=bucket.token(), reason=reason, by=by, at=bucket.now())
    won = bucket.decide(keys.PAUSE, made)
    doorbell.ring(bucket, ("pause", "queue"))
    return (made, True) if isinstance(won, Won) else (read(bucket) or made, False)


def resume(bucket: Bucket) -> bool:
    """False: it was not paused. Raises `StoreUnavailable`."""
    (stood,) = bucket.present(keys.PAUSE)
    bucket.drop(keys.PAUSE)
    doorbell.ring(bucket, ("pause", "queue"))
    return stood
