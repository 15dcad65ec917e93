"""People at their keyboards: they submit, cancel, stop, put back, delete and use a name again, and type a command again
when the store does not answer. What they asked for and what was acknowledged goes into the history."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stado_like.bucket import cancel, delete, order, submit
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, NotFound, StoreError
from stado_like.job.states import TERMINAL_JOB
from stado_like.reading.view import read_job
from tests.chaos.history import History, Sent
from tests.chaos.kinds import Kinds

OPEN_MOST = 40
PATIENCE_S = 90.0

Errand = Callable[[], None]


class People(threading.Thread):
    """One thread that does errands until `leave()`. `jobs_most`: no more are submitted than that."""

    def __init__(self, bucket: Bucket, history: History, log: Path, chance: random.Random, jobs_most: int) -> None:
        super().__init__(name="people", daemon=True)
        self._bucket = bucket
        self._history = history
        self._kinds = Kinds(history, log, chance)
        self._chance = chance
        self._jobs_most = jobs_most
        self._leaving = threading.Event()
        self.broke: list[str] = []

    def leave(self) -> None:
        """Nothing new is begun; what is under way is brought to its end."""
        self._leaving.set()
        self.join(PATIENCE_S)

    def run(self) -> None:
        while not self._leaving.wait(self._chance.uniform(0.2, 0.9)):
            errand = self._next()
            if errand is not None:
                self._do(errand)

    def _do(self, errand: Errand) -> None:
        """Again and again while the store does not answer, with the same request."""
        begun_s = time.monotonic()
        while time.monotonic() - begun_s < PATIENCE_S:
            try:
                errand()
                return
            except StoreError:
                time.sleep(self._chance.uniform(0.3, 1.5))
            except (Conflict, NotFound):
                return  # over already, or somebody was quicker: nothing was acknowledged
            except Exception as raised:  # a command that ends with a traceback is a finding of its own
                self.broke.append(f"a person's command ended with {type(raised).__name__}: {raised}")
                return

    def _next(self) -> Errand | None:
        drawn = self._chance.random()
        unfinished = [one for one in self._history.acknowledged if one.state is None and not one.deleted_at]
        if drawn < 0.68:
            enough = len(unfinished) >= OPEN_MOST or len(self._history.sent) >= self._jobs_most
            return None if enough else self._submits(self._kinds.make())
        if not self._history.acknowledged:
            return None
        recent = self._history.acknowledged[-25:]
        one = self._chance.choice(recent)
        if drawn < 0.74:
            return self._cancels(one)
        if drawn < 0.80:
            one = self._chance.choice(unfinished or recent)
            return self._requeues(one, self._chance.randrange(one.tasks))
        if drawn < 0.87:
            return self._stops(one, self._chance.randrange(one.tasks))
        return self._deletes(self._chance.choice(self._history.acknowledged))

    # ---- submitting

    def _submits(self, made: tuple[Sent, dict[str, Any]]) -> Errand:
        sent, asked = made

        def errand() -> None:
            done = submit.submit(self._bucket, asked, request_id=sent.request_id)
            sent.id = done.id
            sent.acknowledged_at = time.time()

        return errand

    # ---- ending

    def _cancels(self, one: Sent) -> Errand | None:
        if one.deleted_at or one.id is None:
            return None
        j = one.id

        def errand() -> None:
            one.asked_at = one.asked_at or time.time()
            cancel.cancel_job(self._bucket, j)
            one.cancelled_at = time.time()

        return errand

    def _stops(self, one: Sent, rank: int) -> Errand | None:
        if one.deleted_at or one.id is None:
            return None
        j = one.id

        def errand() -> None:
            one.asked_at = one.asked_at or time.time()
            cancel.stop_task(self._bucket, j, rank)
            one.stopped_at[rank] = time.time()

        return errand

    def _requeues(self, one: Sent, rank: int) -> Errand | None:
        if one.deleted_at or one.id is None:
            return None
        j = one.id

        def errand() -> None:
            one.requeued.add(rank)
            order.requeue(self._bucket, j, rank, by="people")

        return errand

    def _deletes(self, one: Sent) -> Errand | None:
        if one.deleted_at or one.id is None:
            return None
        j = one.id

        def errand() -> None:
            if not one.delete_asked_at:
                state = read_job(self._bucket, j).state
                if state not in TERMINAL_JOB:
                    return
                one.state, one.delete_asked_at = state, time.time()
            delete.delete_job(self._bucket, j)
            one.deleted_at = time.time()
            self._kinds.free_names.append(one.name)

        return errand
