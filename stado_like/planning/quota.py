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
    """Why work waits on its quota. `reserved`: only what is set aside for a head is in the way."""

    what: str
    used: int
    asked: int
    limit: int
    gang: bool = False
    reserved: bool = False

    @property
    def reason(self) -> str:
        if self.asked > self.limit:
            return says.beyond_quota(self.numbers)
        used, asked, limit = self._shown()
        return says.waits_for_quota(self.what, used, asked, limit, gang=self.gang)

    @property
    def numbers(self) -> str:
        """`gpus 6 in use + 4 asked > 8`, as the history has it."""
        used, asked, limit = self._shown()
        in_use = "" if self.asked > self.limit else f" {used} in use +"
        return f"{self.what}{in_use} {asked} asked > {limit}"

    def _shown(self) -> tuple[str, str, str]:
        show = {"cores": cores, "memory": size_words}.get(self.what, str)
        return show(self.used), show(self.asked), show(self.limit)


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
        asked, used, aside = Use(), self._used[job.workspace], self._aside[job.workspace]
        asked.add(job, asks)
        rows = (
            ("gpus", used.gpus, aside.gpus, asked.gpus, quota.gpus),
            ("cores", used.cpu_millis, aside.cpu_millis, asked.cpu_millis, quota.cpu_millis),
            ("memory", used.memory_bytes, aside.memory_bytes, asked.memory_bytes, quota.memory_bytes),
            ("running jobs", len(used.jobs), len(aside.jobs), int(job not in used.jobs), quota.running_jobs),
        )
        found: Refusal | None = None
        for what, have, kept, want, limit in rows:
            if limit is None or not want or have + kept + want <= limit:
                continue
            refusal = Refusal(what, have, want, limit, gang, reserved=have + want <= limit)
            if want > limit:
                return refusal
            if found is None or (found.reserved and not refusal.reserved):
                found = refusal
        return found
