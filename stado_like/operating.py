"""What an operator does: puts a task back into the queue, closes machines and opens them again, pauses the queue.

Reached as `Client.operate`. All of it is a record that stands: nothing here needs a machine that answers, and waiting
for one that was drained is only looking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stado_like.bucket import doorbell, order, pausing, workers
from stado_like.bucket.order import Requeue, Requeued
from stado_like.errors import NotFound, TimedOut
from stado_like.job.spec.units import duration_text
from stado_like.job.wanted import Pause, Wanted
from stado_like.patience import Note, silent
from stado_like.reading.surroundings import WorkerView

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.handle import Words


@dataclass(frozen=True, slots=True)
class Holds:
    """What a machine still has. `heard`: it obeys what is wanted of it; `count`: tasks, as far as can be told."""

    heard: bool
    count: int
    away: str = ""

    @property
    def has_let_go(self) -> bool:
        return self.heard and not self.count


class Operating:
    def __init__(self, client: Client, who: Callable[[], str]) -> None:
        self._client = client
        self._who = who

    # ---- tasks

    def requeue(self, job: Words, rank: int, reason: str = "") -> Requeued:
        """Raises `NotFound`, and `Conflict` where the task is over or is being stopped."""
        client = self._client
        j = client.resolve(job)
        client.ready_to_write()
        done = order.requeue(client.bucket, j, rank, reason=reason, by=self._who())
        if done.how is Requeue.STOPPING:
            self.ring_again("order", done.worker)
        return done

    # ---- machines

    def cordon(self, worker: str, reason: str = "") -> Wanted:
        return self._set(worker, lambda: workers.cordon(self._client.bucket, worker, reason=reason, by=self._who()))

    def uncordon(self, worker: str) -> Wanted:
        return self._set(worker, lambda: workers.uncordon(self._client.bucket, worker, by=self._who()))

    def drain(self, worker: str, reason: str = "") -> Wanted:
        return self._set(worker, lambda: workers.drain(self._client.bucket, worker, reason=reason, by=self._who()))

    def _set(self, worker: str, change: Callable[[], Wanted]) -> Wanted:
        self._client.ready_to_write()
        made = change()
        self.ring_again("drain", worker)
        return made

    def holds(self, worker: str) -> Holds:
        """Raises `StoreUnavailable`. Of a machine that is away its claims tell, until a tick has judged them."""
        client = self._client
        try:
            view = client.worker(worker)
        except NotFound:
            view = None
        if view is None or view.stale:
            return Holds(True, len(client.held_by(worker)), _away(worker, view))
        if view.capacity.wanted != view.wanted.nonce:
            return Holds(False, len(view.capacity.held))
        return Holds(True, len(view.capacity.held))

    def wait_until_it_let_go(self, worker: str, timeout_s: float | None = None, *, on_note: Note = silent) -> None:
        """Until a drained machine holds nothing. Raises `TimedOut`."""
        patience = self._client.patience(timeout_s, on_note)
        said = ""
        left = Holds(False, 0)
        for _ in patience.rounds():
            left = patience.ask(lambda: self.holds(worker)) or left
            if left.has_let_go:
                return
            if left.away and left.away != said:
                said = left.away
                on_note(said)
        count = f"{left.count} tasks" if left.count != 1 else "1 task"
        still = f"still holds {count}" if left.heard else "has not heard of it"
        raise TimedOut(
            f"{worker} {still} after {timeout_s or 0:g} s",
            "It goes on being drained; see `stado worker show`.",
        )

    # ---- the queue

    def pause(self, reason: str = "") -> tuple[Pause, bool]:
        """The pause that stands, and whether it is this one."""
        self._client.ready_to_write()
        made = pausing.pause(self._client.bucket, reason=reason, by=self._who())
        self.ring_again("pause", "queue")
        return made

    def resume(self) -> bool:
        """False: it was not paused."""
        self._client.ready_to_write()
        stood = pausing.resume(self._client.bucket)
        self.ring_again("pause", "queue")
        return stood

    def ring_again(self, kind: str, what: str) -> None:
        """Where a ring is a plain put, another one may have gone over it: whoever asked for a stop rings twice."""
        if not self._client.store.can_replace:
            self._client.ambient.sleep(1.0)
            doorbell.ring(self._client.bucket, (kind, what))


def _away(worker: str, view: WorkerView | None) -> str:
    if view is None:
        return f"no worker {worker} says that it is there; what it held goes when it comes back, or is reaped by a tick"
    heard = duration_text(round(view.age_s))
    return f"worker {worker} was last heard {heard} ago; what it holds goes when it comes back, or is reaped by a tick"
