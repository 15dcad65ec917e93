"""People at their keyboards: they submit, cancel, stop and delete, try again when the store does not answer, and their
commands may be killed at any operation and typed again."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.bucket import cancel, delete, submit
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, NotFound, StoreError
from stado_like.job.keys import JobId
from stado_like.job.states import TERMINAL_JOB
from stado_like.job.terms import terms_of
from stado_like.reading.view import read_job
from tests.sim.checkers import Judge
from tests.sim.placed_jobs import Cluster, placed
from tests.sim.plan import in_blocks, in_company, some_job
from tests.sim.world import World

Errand = Callable[[Bucket], bool]
"""One command. True: it came to its end, whatever that was. False: type it again."""


@dataclass
class Person:
    """`doing`: the command that is under way, and is typed again after a crash: the same command, the same request
    id."""

    name: str
    world: World
    judge: Judge
    chance: random.Random
    jobs_left: int
    cluster: Cluster
    places: bool = False
    """Whether some of the jobs are such that a tick must decide where they run."""
    crowded: bool = False
    blocks: bool = False
    doing: Errand | None = None
    mine: list[JobId] = field(default_factory=list)
    let_go: set[JobId] = field(default_factory=set)
    requests: int = 0
    submitted: int = 0
    resting: bool = False

    @property
    def is_done(self) -> bool:
        if self.doing is not None:
            return False
        return not self._endless() if self.resting else self.jobs_left == 0

    def live(self, bucket: Bucket) -> None:
        while not self.is_done or not self.resting:
            if self.doing is None:
                self.world.pause(self.chance.uniform(1.0, 40.0) * (0.2 if self.crowded else 1.0))
                if self.resting:
                    endless = self._endless()
                    if not endless:
                        return
                    self.doing = self._cancels(endless[0])
                else:
                    self.doing = self._next()
            if self.doing is None:
                continue
            try:
                if self.doing(bucket):
                    self.doing = None
                    continue
            except StoreError:
                self.world.pause(self.chance.uniform(0.5, 5.0))
                continue
            self.world.pause(self.chance.uniform(0.5, 5.0))

    def _endless(self) -> list[JobId]:
        """Jobs that never end by themselves: services, and those that no machine here can take."""
        found = []
        for j in self.mine:
            if j in self.let_go or j in self.judge.seen.buried:
                continue  # of one that was deleted the terms are those of whoever used its name since
            terms = self.judge.seen.terms[j]
            if terms.service or terms.ask.needs or self.cluster.never_takes(terms):
                found.append(j)
        return found

    def _next(self) -> Errand | None:
        what = self.chance.random()
        if self.jobs_left and (what < 0.6 or not self.mine):
            self.jobs_left -= 1
            self.requests += 1
            request_id = f"{self.name}-{self.requests}"
            # Its own dice: which jobs there are depends on the run, and must not move what else is thrown.
            dice = f"{request_id} {self.chance.random()}"
            company = random.Random(dice)
            known = [str(j) for j in self.judge.seen.jobs]
            document = in_company(some_job(self.chance), company, known)
            if self.places:
                document = placed(document, company, self.cluster, crowded=self.crowded)
            if self.blocks:
                document = in_blocks(document, random.Random(f"blocks {dice}"))
            return self._submits(document, request_id)
        if not self.mine:
            return None
        j = self.chance.choice(self.mine)
        if what < 0.72:
            return self._cancels(j)
        if what < 0.84:
            return self._stops(j)
        return self._deletes(j)

    def _submits(self, document: Mapping[str, Any], request_id: str) -> Errand:
        self.submitted += 1

        def errand(bucket: Bucket) -> bool:
            try:
                done = submit.submit(bucket, document, request_id=request_id)
            except Conflict:
                return True
            if isinstance(done, submit.Submitted):
                self.judge.seen.acknowledge(done.id)
                self.mine.append(done.id)
            return True

        return errand

    def _cancels(self, j: JobId) -> Errand:
        def errand(bucket: Bucket) -> bool:
            try:
                cancel.cancel_job(bucket, j)
            except (Conflict, NotFound):
                self.let_go.add(j)
                return True
            self.let_go.add(j)
            self.judge.seen.cancel_acknowledged(j)
            return True

        return errand

    def _stops(self, j: JobId) -> Errand:
        rank = self.chance.randrange(max(1, terms_of(self.judge.seen.jobs[j].document).tasks))

        def errand(bucket: Bucket) -> bool:
            try:
                cancel.stop_task(bucket, j, rank)
            except (Conflict, NotFound):
                return True
            self.judge.seen.cancel_acknowledged(j, rank)
            return True

        return errand

    def _deletes(self, j: JobId) -> Errand:
        def errand(bucket: Bucket) -> bool:
            try:
                if read_job(bucket, j).state in TERMINAL_JOB:
                    delete.delete_job(bucket, j)
            except (Conflict, NotFound):
                return True
            return True

        return errand
