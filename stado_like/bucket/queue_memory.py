"""What a process that makes boards remembers between them: jobs and entries never change, so each is read once.

All of it may be lost at any time. What it forgets costs requests; only `given` costs more (a worker that refused an
attempt is asked again), so a tick keeps that beside its cursors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stado_like.bucket.known_jobs import KnownJobs
from stado_like.bucket.resting import Resting
from stado_like.job.held_room import Holds
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.placing import Unsplit
from stado_like.store.protocol import Row

PASSED_OVER_S = 600.0
UNSPLIT_S = 60.0


@dataclass(slots=True)
class QueueMemory:
    jobs: KnownJobs = field(default_factory=KnownJobs)
    entries: dict[str, tuple[Ask, int | None]] = field(default_factory=dict)
    """By key: what an open entry asks for, and its time limit."""
    began: dict[AttemptId, float] = field(default_factory=dict)
    """When an attempt whose minimum runtime counts began to run."""
    preempted: dict[tuple[JobId, int], int] = field(default_factory=dict)
    """How often a gang whose preemptions are bounded had been preempted when its generation was placed."""
    holds_etag: str = ""
    holds: Holds | None = None
    """The record of the holds as it was last read; None: it never was."""
    accounted: set[tuple[str, float]] = field(default_factory=set)
    """Attempts, and when they were given to a worker, of which it is known what became of the order."""
    tended: dict[JobId, float] = field(default_factory=dict)
    """When a gang was last looked after, by `boot_s`."""
    rests: Resting = field(init=False)
    seen: list[AttemptId] = field(default_factory=list)
    """Whose entries this tick has listed."""
    inbox: list[Row] | None = None
    """The orders that this tick has listed; None: not yet."""

    def __post_init__(self) -> None:
        self.rests = Resting(self.jobs.cache)

    def forget_listings(self) -> None:
        self.seen, self.inbox = [], None

    def forget_others(self, entries: Iterable[str], attempts: Iterable[AttemptId]) -> None:
        """Entries that are not listed, and attempts that are not claimed, need no place here."""
        kept, running = set(entries), set(attempts)
        self.entries = {key: value for key, value in self.entries.items() if key in kept}
        self.began = {a: at for a, at in self.began.items() if a in running}


Given = dict[str, dict[str, float]]
"""By attempt: the workers that a tick gave it to, and when. One that did not claim it is passed over for a while."""


def given_of(cursors: dict[str, Any] | None, now: float) -> Given:
    """The part of a tick's cursors that says so, without what is too old to count."""
    kept: Given = {}
    standing = (cursors or {}).get("given")
    for attempt, workers in standing.items() if isinstance(standing, dict) else ():
        if isinstance(workers, dict):
            young = {w: at for w, at in workers.items() if isinstance(at, int | float) and now - at < PASSED_OVER_S}
            if young:
                kept[attempt] = young
    if cursors is not None:
        if kept:
            cursors["given"] = kept
        else:
            cursors.pop("given", None)
    return kept


def note_given(cursors: dict[str, Any], a: AttemptId, worker: str, now: float) -> None:
    cursors.setdefault("given", {}).setdefault(str(a), {})[worker] = now


def unsplit_of(cursors: dict[str, Any] | None, now: float) -> dict[tuple[str, str], str]:
    """By job and group: why its total could not be split less than a minute ago. What is older leaves the cursors."""
    standing = (cursors or {}).get("unsplit")
    kept = [
        row
        for row in (standing if isinstance(standing, list) else ())
        if isinstance(row, list) and len(row) == 4 and isinstance(row[3], int | float) and now - row[3] < UNSPLIT_S
    ]
    if cursors is not None and kept:
        cursors["unsplit"] = kept
    elif cursors is not None:
        cursors.pop("unsplit", None)
    return {(str(job), str(group)): str(why) for job, group, why, _ in kept}


def note_unsplit(cursors: dict[str, Any], one: Unsplit, now: float) -> None:
    cursors.setdefault("unsplit", []).append([str(one.job), one.group, one.why, now])
