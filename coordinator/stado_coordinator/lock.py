"""One tick at a time runs over a store: `state/coordinator/tick-lock.json` names its process while it runs.

The lock saves work; it is not what makes a tick safe, for every decision is one create. So it is simple: created,
refreshed and released by nonce. A holder on this host that is gone is taken over at once, one elsewhere cannot be
observed and is refused, any that was not refreshed for ten minutes is taken over. A tick that finds another nonce was
superseded and stops.

A takeover is `replace` with the etag that was judged, so of two ticks that see one dead lock exactly one gets it;
deleting and creating could remove the fresh lock of a third. (Where a store has no `replace` that is what remains.)
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime

from stado_coordinator.process_identity import Holder, holder_of, pid_namespace, started_at
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, StoreError, StoreUnavailable, TickHeld
from stado_like.job import codec, keys
from stado_like.job.records import TickLock
from stado_like.store.conditional import Won
from stado_like.store.protocol import Applied, Object, Rejected

ABANDONED_S = 10 * 60.0
REFRESH_S = 60.0
TAKEOVERS = 8
LEFT_REMEMBERED = 256


class Lock:
    """The tick lock of one store, for one `Tick` object: acquired and released once per tick."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._mine: TickLock | None = None
        self._left: deque[str] = deque(maxlen=LEFT_REMEMBERED)
        """Nonces of our own that may stand without us: not released, or sent to a store that answers hours later."""
        self._refreshed_s = 0.0

    @property
    def is_held(self) -> bool:
        return self._mine is not None

    def acquire(self) -> TickLock:
        """Take the lock. Raises `TickHeld` with a sentence that names the holder, `StoreUnavailable`."""
        bucket = self._bucket
        mine = TickLock(
            nonce=bucket.token(),
            pid=bucket.ambient.pid,
            host=bucket.ambient.host,
            boot_id=bucket.ambient.boot_id,
            started_at=started_at(bucket.ambient.pid) or 0.0,
            since=bucket.now(),
            extra={"pid_namespace": pid_namespace()},
        )
        body = codec.encode(mine)
        for _ in range(TAKEOVERS):
            try:
                won = bucket.decide_bytes(keys.TICK_LOCK, body)
            except StoreUnavailable:
                self._left.append(mine.nonce)
                raise
            if isinstance(won, Won) or self._take_over(won.found, body):
                self._mine = mine
                self._refreshed_s = bucket.ambient.boot_s()
                return mine
        raise TickHeld(
            f"refused: ticks take this store from each other ({keys.TICK_LOCK} changed {TAKEOVERS} times)",
            "Run it again in a minute.",
        )

    def _take_over(self, found: Object, body: bytes) -> bool:
        """True: the dead lock is ours now. False: it changed meanwhile, look again. Raises `TickHeld`."""
        bucket = self._bucket
        self._judge(found)
        if not bucket.store.can_replace:
            standing = bucket.store.get(keys.TICK_LOCK)
            if standing is not None and standing.etag == found.etag:
                bucket.drop(keys.TICK_LOCK)
            return False
        answer = bucket.store.replace(keys.TICK_LOCK, body, found.etag)  # guard: lock takeover by etag
        if isinstance(answer, Applied):
            return True
        if isinstance(answer, Rejected):
            return False
        standing = bucket.store.get(keys.TICK_LOCK)
        return standing is not None and standing.body == body

    def _judge(self, found: Object) -> None:
        """Raises `TickHeld` unless the holder of this lock is gone, or has not refreshed it for ten minutes."""
        if found.now - found.last_modified > ABANDONED_S:
            return
        try:
            held = codec.decode(TickLock, found.body, keys.TICK_LOCK)
        except BadRecord as bad:
            raise TickHeld(
                f"refused: the lock of this store cannot be read: {bad.message}",
                f"Remove it with `stado storage rm {keys.TICK_LOCK}` once no tick runs; it expires in 10 minutes.",
            ) from None
        if held.nonce in self._left:
            return  # our own, of a tick that could not reach the store
        holder = holder_of(held, self._bucket.ambient)
        if holder is Holder.GONE:
            return
        since = datetime.fromtimestamp(int(held.since), tz=UTC)
        raise TickHeld(
            f"refused: another tick holds this store: pid {held.pid} on {held.host} since {since:%Y-%m-%dT%H:%M:%SZ} "
            f"({keys.TICK_LOCK}); it ends when that tick does",
            "It can be seen from here: wait for it, or stop that process."
            if holder is Holder.ALIVE
            else f"It cannot be seen from here: remove it on {held.host}, or with `stado storage rm {keys.TICK_LOCK}` "
            "once that tick no longer runs. Unless it is refreshed it is taken over after 10 minutes.",
        )

    def still_ours(self) -> bool:
        """Refresh the lock if it is due. False: another tick has taken it, this one stops. A store that does not answer
        changes nothing."""
        if self._mine is None:
            return False
        now_s = self._bucket.ambient.boot_s()
        if now_s - self._refreshed_s < REFRESH_S:
            return True
        try:
            found = self._standing()
            if found is None:
                return False
            body = codec.encode(self._mine)
            if self._bucket.store.can_replace:
                answer = self._bucket.store.replace(keys.TICK_LOCK, body, found.etag)
                if isinstance(answer, Rejected) and self._standing() is None:
                    return False
            else:
                answer = self._bucket.store.put(keys.TICK_LOCK, body)
        except StoreUnavailable:
            return True  # could not tell
        if isinstance(answer, Applied):
            self._refreshed_s = now_s
        return True

    def release(self) -> str:
        """Delete the lock if it is still ours. Returns why that could not be done, or nothing: the next tick of this
        object takes it over."""
        mine, self._mine = self._mine, None
        if mine is None:
            return ""
        try:
            found = self._bucket.store.get(keys.TICK_LOCK)
            if found is not None and _nonce(found) == mine.nonce:
                self._bucket.drop(keys.TICK_LOCK)
        except StoreError as failed:
            self._left.append(mine.nonce)
            return failed.message
        return ""

    def _standing(self) -> Object | None:
        """Our lock as it stands; None when it is another's, or gone."""
        found = self._bucket.store.get(keys.TICK_LOCK)
        mine = self._mine
        return found if found is not None and mine is not None and _nonce(found) == mine.nonce else None


def _nonce(found: Object) -> str:
    try:
        return codec.decode(TickLock, found.body, keys.TICK_LOCK).nonce
    except BadRecord:
        return ""
