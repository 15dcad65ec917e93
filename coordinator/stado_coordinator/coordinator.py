"""The resident form: ticks one after another, and in between an ear on the doorbell.

Between ticks it costs one conditional GET a second. It ticks again at its interval, when a retry becomes due, or when
somebody rang for something that a tick does; while nothing is claimed, waiting or under way, nothing becomes due by
itself, and it lists only every half minute unless the bell rings.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stado_coordinator.report import Report
from stado_coordinator.tick import Log, Tick
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.doorbell import HELD, Listener
from stado_like.errors import StoreError, TickHeld

INTERVAL_S = 5.0
IDLE_INTERVAL_S = 30.0
POLL_S = 1.0
WAKING = frozenset({"cancel", "stop", HELD})


class Coordinator:
    """Resident ticks over one store. `step()` is one tick; `run()` only repeats it and waits."""

    def __init__(
        self,
        bucket: Bucket,
        *,
        interval_s: float = INTERVAL_S,
        poll_s: float = POLL_S,
        log: Log | None = None,
        cache: Path | None = None,
    ) -> None:
        self._bucket = bucket
        self._interval_s = interval_s
        self._poll_s = poll_s
        self._log: Log = log or (lambda line: None)
        self._said = ""
        self._bell = Listener(bucket)
        self.tick = Tick(bucket, resident=True, log=self._log, cache=cache)
        self.last: Report | None = None

    def step(self) -> Report | None:
        """One tick. None: it was skipped, because another tick holds the store or the store does not answer; both are
        said once."""
        try:
            report = self.tick.step()
        except TickHeld as held:
            self._say(f"tick skipped: {held.message}")
            self.last = None
            return None
        except StoreError as failed:
            self._say(f"tick skipped: {failed.message}")
            self.last = None
            return None
        for what, why in report.deferred:
            self._log(f"[tick] deferred: {what}: {why}")
        for one in report.set_aside:
            self._log(f"[tick] set aside: {one.what}: {one.why}")
        self._said = ""
        self.last = report
        return report

    def _say(self, line: str) -> None:
        if line != self._said:
            self._log(line)
        self._said = line

    def next_in_s(self) -> float:
        """How long until the next tick is due if nobody rings, seconds."""
        if self.last is None:
            return self._interval_s
        wait_s = max(self._interval_s, IDLE_INTERVAL_S) if self.last.is_idle else self._interval_s
        if self.last.next_due_at is not None:
            wait_s = min(wait_s, max(0.0, self.last.next_due_at - self._bucket.now()))
        return max(wait_s, 0.1)

    def is_rung(self) -> bool:
        """Whether somebody rang for something that a tick does. One conditional GET; a bell that cannot be read is
        quiet."""
        try:
            events = self._bell.look()
        except StoreError:
            return False
        self._bell.missed = False
        idle = self.last is not None and self.last.is_idle
        return any(idle or event.kind in WAKING for event in events)

    def wait(self, stop: Callable[[], bool]) -> None:
        """Until the next tick is due, the bell rings, or `stop()`."""
        ambient = self._bucket.ambient
        until = ambient.boot_s() + self.next_in_s()
        while not stop():
            left_s = until - ambient.boot_s()
            if left_s <= 0:
                return
            ambient.sleep(min(left_s, self._poll_s))
            if self.is_rung():
                return

    def run(self, stop: Callable[[], bool]) -> None:
        """Tick until `stop()` says so."""
        while not stop():
            self.step()
            self.wait(stop)
