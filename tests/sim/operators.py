"""A person who looks after machines: puts tasks back, cordons, drains and opens machines, pauses the queue. When all
comes to rest they open and resume everything again."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from stado_like.bucket import order, pausing, workers
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, NotFound, StoreError
from stado_like.job import keys
from tests.sim.checkers import Judge
from tests.sim.people import Errand
from tests.sim.world import World


@dataclass
class Operator:
    """`doing`: the command that is under way, and is typed again after a crash."""

    name: str
    world: World
    judge: Judge
    chance: random.Random
    machines: tuple[str, ...]
    doing: Errand | None = None
    resting: bool = False
    to_open: list[str] = field(default_factory=list)
    paused: bool = False
    left: bool = False
    submitted: int = 0

    @property
    def is_done(self) -> bool:
        return self.left or (self.doing is None and not self.to_open and not self._is_paused())

    def _is_paused(self) -> bool:
        """By us; or by a request of ours that came late, which whoever opens everything again finds."""
        return self.paused or (self.resting and self.judge.seen.holds(keys.PAUSE))

    def live(self, bucket: Bucket) -> None:
        while not self.resting or not self.is_done:
            if self.doing is None:
                self.world.pause(self.chance.uniform(5.0, 40.0))
                self.doing = self._tidies() if self.resting else self._next()
            if self.doing is None:
                continue
            try:
                if self.doing(bucket):
                    self.doing = None
                    continue
            except StoreError:
                self.world.pause(self.chance.uniform(0.5, 5.0))  # and typed again
        self.left = True

    def _tidies(self) -> Errand | None:
        if self.to_open:
            return self._opens(self.to_open[0])
        return self._resumes() if self._is_paused() else None

    def _next(self) -> Errand:
        what = self.chance.random()
        closed = self.to_open or self.paused
        if closed and what < 0.5:
            tidies = self._tidies()
            assert tidies is not None
            return tidies
        if what < 0.75:
            return self._requeues()
        if what < 0.93:
            return self._closes(self.chance.choice(self.machines), drain=self.chance.random() < 0.7)
        return self._pauses()

    def _requeues(self) -> Errand:
        open_jobs = sorted(self.judge.seen.acknowledged - set(self.judge.seen.buried))
        if not open_jobs:
            return lambda bucket: True
        j = self.chance.choice(open_jobs)
        rank = self.chance.randrange(self.judge.seen.terms[j].tasks)

        def errand(bucket: Bucket) -> bool:
            try:
                order.requeue(bucket, j, rank, by=self.name)
            except (Conflict, NotFound):
                return True
            return True

        return errand

    def _closes(self, machine: str, *, drain: bool) -> Errand:
        if machine not in self.to_open:
            self.to_open.append(machine)
        change = workers.drain if drain else workers.cordon
        return self._edits(lambda bucket: change(bucket, machine, by=self.name))

    def _opens(self, machine: str) -> Errand:
        def errand(bucket: Bucket) -> bool:
            workers.uncordon(bucket, machine, by=self.name)
            if machine in self.to_open:
                self.to_open.remove(machine)
            return True

        return self._edits(errand)

    def _edits(self, errand: Callable[[Bucket], object]) -> Errand:
        def again(bucket: Bucket) -> bool:
            errand(bucket)
            return True

        return again

    def _pauses(self) -> Errand:
        self.paused = True

        def errand(bucket: Bucket) -> bool:
            pausing.pause(bucket, by=self.name)
            return True

        return errand

    def _resumes(self) -> Errand:
        def errand(bucket: Bucket) -> bool:
            pausing.resume(bucket)
            self.paused = False
            return True

        return errand
