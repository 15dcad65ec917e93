"""Ringing: one object whose newest events let workers and followers react within a second instead of a sweep.

The bell decides nothing. A ring that is lost costs latency, never a job: whoever was not rung finds out by
sweeping. So ringing never raises, and what the store refuses (some take one write a second per key) is repeated
once and then left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, StoreError
from stado_like.job import codec, keys
from stado_like.job.records import BellEvent
from stado_like.store.protocol import Applied, Unchanged

KEPT = 50
HELD = "held"
TRIES = 4
NAMED_MOST = 20
"""A bell that tells of more entries than this by name would have forgotten everything else."""


def ring(bucket: Bucket, *rings: tuple[str, str], until: float = 0.0) -> tuple[BellEvent, ...]:
    """Add one event per `(kind, what)`. Returns the events, so that the ringer can see later whether they are still
    there."""
    if not rings:
        return ()
    try:
        now = bucket.now()
    except StoreError:
        return ()
    events = tuple(BellEvent(nonce=bucket.token(), kind=kind, what=what, at=now, until=until) for kind, what in rings)
    rings_again(bucket, events)
    return events


def ring_entries(bucket: Bucket, queued: Sequence[str]) -> None:
    """Ring for new queue entries: one each for those that a worker may claim, now or later; those that wait for a
    placement concern no worker, and one ring for all of them wakes whoever places. Many at once are listed."""
    events = [("entry", key) for key in queued if not key.startswith(keys.QUEUED_HELD)]
    if len(events) > NAMED_MOST:
        events = [("queue", str(keys.attempt_of_entry(events[0][1]).job))]
    if len(events) < len(queued):
        events.append((HELD, "queue"))
    ring(bucket, *events)


def rings_again(bucket: Bucket, events: Sequence[BellEvent]) -> bool:
    """Write events onto the bell. False when the store would not have them now."""
    if not events:
        return True
    for attempt in range(TRIES):
        try:
            if _write(bucket, events):
                return True
        except StoreError:
            return False
        if attempt:
            bucket.ambient.sleep(bucket.ambient.uniform(0.0, 0.02 * attempt))
    return False


def _write(bucket: Bucket, events: Sequence[BellEvent]) -> bool:
    found = bucket.store.get(keys.DOORBELL)
    bell = _plain(found.body) if found else {}
    standing = _standing(bell)
    known = {event.get("nonce") for event in standing}
    fresh = [codec.to_plain(event) for event in events if event.nonce not in known]
    if not fresh:
        return True
    body = codec.encode({**bell, "events": [*standing, *fresh][-KEPT:]})
    if found is None:
        return isinstance(bucket.store.create(keys.DOORBELL, body), Applied)
    if bucket.store.can_replace:
        return isinstance(bucket.store.replace(keys.DOORBELL, body, found.etag), Applied)
    return isinstance(bucket.store.put(keys.DOORBELL, body), Applied)


def _plain(body: bytes) -> dict[str, Any]:
    """The bell as it lies there. A ringer only appends: to read fifty events into records and back was half the cost
    of a submit.
    """
    try:
        return codec.decode_plain(body, keys.DOORBELL)
    except BadRecord:
        return {}


def _standing(bell: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = bell.get("events")
    return [event for event in found if isinstance(event, dict)] if isinstance(found, list) else []


def _events(standing: Sequence[dict[str, Any]]) -> tuple[BellEvent, ...]:
    """Those of them that can be read."""
    found: list[BellEvent] = []
    for plain in standing:
        try:
            found.append(codec.from_plain(BellEvent, plain, keys.DOORBELL))
        except BadRecord:
            continue  # the listener sweeps instead
    return tuple(found)


class Listener:
    """Remembers what it has heard. `missed` after a look: events may have scrolled by, so sweep."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._etag = ""
        self._newest = ""
        self.missed = True

    def look(self) -> tuple[BellEvent, ...]:
        """Events since the last look, oldest first. One conditional GET. Raises `StoreUnavailable`."""
        if self._etag:
            answer = self._bucket.store.get_if_changed(keys.DOORBELL, self._etag)
        else:
            answer = self._bucket.store.get(keys.DOORBELL)
        if answer is None or isinstance(answer, Unchanged):
            return ()
        self._etag = answer.etag
        standing = _standing(_plain(answer.body))
        nonces = [str(event.get("nonce")) for event in standing]
        if self._newest in nonces:
            standing = standing[nonces.index(self._newest) + 1 :]  # only what is new becomes records: most is not
        else:
            self.missed = self.missed or bool(self._newest) or len(standing) >= KEPT
        if standing:
            self._newest = nonces[-1]
        fresh = _events(standing)
        self.missed = self.missed or len(fresh) < len(standing)
        return fresh
