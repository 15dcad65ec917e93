"""What a coordinator keeps between ticks of one process: bodies by key and etag, and where its slow sweeps go on.

A tick that starts without any of it is right; it only asks more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stado_like.bucket import watched
from stado_like.bucket.known_jobs import KnownJobs
from stado_like.bucket.queue_memory import QueueMemory
from stado_like.bucket.tick_cache import TickCache
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Observed


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
    mended: dict[JobId, Mending] = field(default_factory=dict)
    cancels: dict[str, tuple[float, float]] = field(default_factory=dict)
    """When a verdict or stop that could not be settled yet is gone through again, by `boot_s`, and how long that
    waited."""
    gathered: dict[JobId, float] = field(default_factory=dict)
    """What `groups.look_at` remembers."""
    watching: watched.Watching = field(default_factory=watched.Watching)
    cursors: dict[str, Any] | None = None
    """Where the sweeps go on: {"jobs": key, "entries": key, "notes": number, "long": number, "ranks": {job: rank}};
    as stored in state/coordinator/sweep.json. `long`: for how many more ticks the queue is taken for one that no single
    page holds."""
    queue: QueueMemory = field(default_factory=QueueMemory)
    slow_at: float | None = None
    """When the slow listings (`sweeping`) were last made; `boot_s`."""

    cuts: dict[str, list[str]] = field(default_factory=dict)
    boot_id: str = ""
    """Of the boot by whose clock the times are."""

    @classmethod
    def kept_in(cls, folder: Path | None, boot_id: str) -> Memory:
        """One that another process of this machine may have begun. `folder` None: nothing outlives this one."""
        return cls(queue=QueueMemory(KnownJobs(TickCache(folder))), boot_id=boot_id)

    @property
    def jobs(self) -> KnownJobs:
        return self.queue.jobs

    @property
    def cache(self) -> TickCache:
        """What of it the next process will know too."""
        return self.queue.jobs.cache

    def cuts_of(self, prefix: str) -> list[str]:
        """Where a long listing may be cut (`ranges`). Any text will do."""
        known = self.cuts.get(prefix)
        if known is None:
            kept = self.cache.said(f"cuts/{prefix}")
            fits = isinstance(kept, list) and all(isinstance(one, str) for one in kept)
            known = self.cuts[prefix] = sorted(kept) if fits else []
        return known

    def note_cuts(self, prefix: str, cuts: list[str]) -> None:
        if cuts != self.cuts_of(prefix):
            self.cuts[prefix] = cuts
            self.cache.keep(f"cuts/{prefix}", cuts)

    def last_mending(self, j: JobId) -> Mending | None:
        known = self.mended.get(j)
        if known is None and (kept := self.cache.mended(j, self.boot_id)) is not None:
            known = self.mended[j] = Mending(*kept)
        return known

    def note_mending(self, j: JobId, said: Mending) -> None:
        self.mended[j] = said
        self.cache.keep_mended(j, self.boot_id, (said.looked_at, said.ranks_at, said.ranks_wait_s, said.had_claims))

    @property
    def places(self) -> dict[str, Any]:
        """The cursors, where none were read yet too."""
        if self.cursors is None:
            self.cursors = {}
        return self.cursors
