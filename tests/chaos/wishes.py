"""What a person wants of machines and of the queue, as faults: a machine is drained or cordoned, the queue is paused,
and all of that is taken back after a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from stado_like.bucket import pausing, workers
from stado_like.bucket.bucket import Bucket
from stado_like.errors import StoreError
from tests.chaos.history import Harm


@dataclass
class Wishes:
    """One person's, past the lossy network. `closed`: the machine that is closed now."""

    bucket: Bucket
    closed: str = ""
    paused: bool = False

    def is_free(self, harm: Harm) -> bool:
        """One machine is closed at a time, and nothing is paused twice."""
        return not self.paused if harm is Harm.QUEUE_PAUSED else not self.closed

    def ask(self, harm: Harm, worker: str) -> Callable[[], bool]:
        """Have it so, as far as the store answers. Returns what takes it back, which says whether it could."""
        if harm is Harm.QUEUE_PAUSED:
            self.paused = True
        else:
            self.closed = worker
        change = workers.drain if harm is Harm.MACHINE_DRAINED else workers.cordon
        with suppress(StoreError):  # perhaps carried out all the same: it is taken back in any case
            if harm is Harm.QUEUE_PAUSED:
                pausing.pause(self.bucket, reason="chaos", by="people")
            else:
                change(self.bucket, worker, reason="chaos", by="people")
        return lambda: self._take_back(harm)

    def _take_back(self, harm: Harm) -> bool:
        try:
            if harm is Harm.QUEUE_PAUSED:
                pausing.resume(self.bucket)
                self.paused = False
            else:
                workers.uncordon(self.bucket, self.closed, by="people")
                self.closed = ""
        except StoreError:
            return False
        return True
