"""May this work of a workspace start now, by what the workspace may hold at once?

What counts is what holds room, also while it stops, and what the same plan has placed before. Two things are not
obvious. Work that waits on its quota is passed over as if it were not there: it is no head and keeps no room, for no
machine is what it lacks. And what the head of the queue asks is set aside in its workspace's quota: otherwise smaller
work of its own workspace would pass it, use the quota up, and the head could not start in the room that was held for
it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stado_like.job import reasons_placement as says
from stado_like.job.ids import JobId
from stado_like.job.spec.units import size_words
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Quota
from stado_like.planning.fit import cores


@dataclass(slots=True)
class Use:
    """What a workspace holds, or some work asks."""

    gpus: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0
    jobs: set[JobId] = field(default_factory=set)

    def add(self, job: JobId, asks: Iterable[Ask]) -> None:
        self.jobs.add(job)
        for ask in asks:
            self.gpus += ask.gpus
            self.cpu_millis += ask.cpu_millis
            self.memory_bytes += ask.memory_bytes


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why work waits on its quota. `numbers`: the part with the numbers, for the history. `reserved`: only what is set
    aside for a head is in the way."""

    reason: str
    numbers: str
    reserved: bool = False


class Ledger:
    """What each workspace with a quota holds, while a plan is made."""

    def __init__(self, board: Board) -> None:
        self._quotas = {name: quota for name, quota in board.quotas.items() if quota != Quota()}
        self._used = {name: Use() for name in self._quotas}
        self._aside = {name: Use() for name in self._quotas}
        if not self._quotas:
            return
        for spot in board.spots:
            for one in spot.running:
                self.charge(one.job, (one.ask,))

    def limits(self, job: JobId) -> bool:
        return job.workspace in self._quotas

    def charge(self, job: JobId, asks: Iterable[Ask]) -> None:
        """Work of the job holds room from now on."""
        used = self._used.get(job.workspace)
        if used is not None:
            used.add(job, asks)

    def set_aside(self, job: JobId, asks: Iterable[Ask]) -> None:
        """The job is the head."""
        aside = self._aside.get(job.workspace)
        if aside is not None:
            aside.add(job, asks)

    def refuses(self, job: JobId, asks: Iterable[Ask], *, gang: bool) -> Refusal | None:
        """None: the workspace's quota lets the work start now."""
        quota = self._quotas.get(job.workspace)
        if quota is None:
            return None
        asked = Use()
        asked.add(job, asks)
        used, aside = self._used[job.workspace], self._aside[job.workspace]
        rows = _rows(quota, used, asked, new_job=job not in used.jobs)
        for row in rows:
            if row.asked > row.limit:
                numbers = f"{row.what} {row.shown(row.asked)} asked > {row.shown(row.limit)}"
                return Refusal(says.beyond_quota(numbers), numbers)
        for row in rows:
            if row.asked and row.used + row.asked > row.limit:
                shown = (row.what, row.shown(row.used), row.shown(row.asked), row.shown(row.limit))
                numbers = "{} {} in use + {} asked > {}".format(*shown)
                return Refusal(says.waits_for_quota(*shown, gang=gang), numbers)
        both = Use(
            used.gpus + aside.gpus,
            used.cpu_millis + aside.cpu_millis,
            used.memory_bytes + aside.memory_bytes,
            used.jobs | aside.jobs,
        )
        for row in _rows(quota, both, asked, new_job=job not in both.jobs):
            if row.asked and row.used + row.asked > row.limit:
                return Refusal("", "", reserved=True)
        return None


@dataclass(frozen=True, slots=True)
class _Row:
    what: str
    used: int
    asked: int
    limit: int

    def shown(self, number: int) -> str:
        if self.what == "cores":
            return cores(number)
        return size_words(number) if self.what == "memory" else str(number)


def _rows(quota: Quota, used: Use, asked: Use, *, new_job: bool) -> list[_Row]:
    all_rows = (
        ("gpus", used.gpus, asked.gpus, quota.gpus),
        ("cores", used.cpu_millis, asked.cpu_millis, quota.cpu_millis),
        ("memory", used.memory_bytes, asked.memory_bytes, quota.memory_bytes),
        ("running jobs", len(used.jobs), int(new_job), quota.running_jobs),
    )
    return [_Row(what, have, want, limit) for what, have, want, limit in all_rows if limit is not None]
