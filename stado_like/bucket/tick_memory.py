"""What a coordinator keeps between ticks of one process: bodies by key and etag, and where its slow sweeps go on.

A tick that starts without any of it is right; it only asks more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stado_like.bucket import watched
from stado_like.bucket.queue_memory import QueueMemory
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Observed

SETTLED_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Mending:
    """When a job of open/ was last looked after, by `boot_s`; when its ranks were last gone through, and how long until
    they are again."""

    looked_at: float
    ranks_at: float
    ranks_wait_s: float
    had_claims: bool


@dataclass(slots=True)
class Memory:
    """What a coordinator keeps between ticks of one process. All of it may be lost at any time."""

    bodies: dict[str, tuple[str, Any]] = field(default_factory=dict)
    ttls: dict[AttemptId, float] = field(default_factory=dict)
    observed: tuple[str, Observed] = ("", Observed())
    armed_here: dict[str, tuple[tuple[str, float], float]] = field(default_factory=dict)
    settled: dict[JobId, float] = field(default_factory=dict)
    """Jobs of the sweep that need no second look: over, or known from open/."""
    mended: dict[JobId, Mending] = field(default_factory=dict)
    cancels: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When a verdict or stop that could not be settled yet is gone through again, by `boot_s`, and how long that
    waited."""
    gathered: dict[JobId, float] = field(default_factory=dict)
    """What `groups.look_at` remembers."""
    watching: watched.Watching = field(default_factory=watched.Watching)
    cursors: dict[str, Any] | None = None
    """Where the sweeps go on: {"jobs": key, "queued": key, "entries": key, "ranks": {job: rank}}; as stored in
    state/coordinator/sweep.json."""
    queue: QueueMemory = field(default_factory=QueueMemory)
    slow_at: float | None = None
    """When the slow listings (jobs, queued) were last made; `boot_s`."""

    @property
    def places(self) -> dict[str, Any]:
        """The cursors, where none were read yet too."""
        if self.cursors is None:
            self.cursors = {}
        return self.cursors

    def settle(self, j: JobId, since: float) -> None:
        if len(self.settled) >= SETTLED_REMEMBERED:
            self.settled.clear()
        self.settled[j] = since
