"""What reaches this worker besides work: what a person wants of the machine, whether the queue is paused, and orders
for what it holds.

All three lie in the store and stand until somebody changes them, so the bell is only a hint: they are read again at
every sweep. Before the first answer nothing is claimed: a machine that was cordoned while its worker was away must not
take a task at its start only because it has not looked yet. Later a failed read changes nothing.

An order goes into the folder of its attempt, where the supervisor finds it whatever becomes of this process. A drain
needs no orders: as long as the record stands, whatever is held is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from stado_like.bucket import order, pausing, workers
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.order import Given
from stado_like.errors import BadRecord
from stado_like.job import keys, reasons
from stado_like.job.keys import AttemptId
from stado_like.job.records import BellEvent
from stado_like.job.states import Cause
from stado_like.job.wanted import Pause
from stado_worker.holdings import Holding, Phase
from stado_worker.launcher import Launcher
from stado_worker.offer import Offer
from stado_worker.ordered_starts import OrderedStarts
from stado_worker.shim.ordered import Ordered, write_order


class Inbox:
    def __init__(
        self,
        bucket: Bucket,
        worker: str,
        launcher: Launcher,
        offer: Offer,
        log: Callable[[str], None],
        only_job: str = "",
    ) -> None:
        self._bucket = bucket
        self._worker = worker
        self._launcher = launcher
        self._offer = offer
        self._log = log
        self._known: dict[str, Given] = {}
        self.starts = OrderedStarts(bucket, worker, only_job, log)
        self._wishes_due = self._orders_due = True
        self._read_once = False
        self._pause: Pause | None = None
        self._said = ""

    def lets_claim(self) -> bool:
        """Whether the queue goes on, as far as is known. What is wanted of the machine is in what it offers."""
        return self._read_once and self._pause is None  # guard: wishes before claims

    # ---- what is due

    def heard(self, event: BellEvent) -> None:
        if event.kind == "pause" or (event.kind == "drain" and event.what == self._worker):
            self._wishes_due = True
        elif event.kind == "order" and event.what == self._worker:
            self._orders_due = True

    def sweep(self) -> None:
        self._wishes_due = self._orders_due = True

    def obey(self, holdings: Mapping[str, Holding], unread: Container[AttemptId]) -> None:
        """Read what is due, and have it done. Raises `StoreUnavailable`: it stays due."""
        if self._wishes_due:
            self._read_wishes()
            self._wishes_due = False
        if self._orders_due:
            self._read_orders(holdings, unread)
            self._orders_due = False
        if self._offer.wanted.drain:
            reason = reasons.moved_off(self._worker, reasons.BEING_DRAINED)
            for holding in holdings.values():
                self._tell(holding, Ordered(Cause.MOVED, reason))

    def forget(self, a: AttemptId) -> None:
        """It is settled: its orders go. Raises `StoreUnavailable`; what is left goes at the next sweep."""
        for key in [key for key, given in self._known.items() if given.attempt == a]:
            self._bucket.drop(key)
            self._known.pop(key, None)

    # ---- wishes

    def _read_wishes(self) -> None:
        try:
            wanted = workers.read(self._bucket, self._worker)
            pause = pausing.read(self._bucket)
        except BadRecord as bad:
            if self._said != bad.message:
                self._log(bad.message)
                self._said = bad.message
            return  # claims nothing before it was understood once; what was wanted before is wanted still
        if wanted.nonce != self._offer.wanted.nonce:
            state = "is drained" if wanted.drain else "takes nothing new" if wanted.cordoned else "takes work"
            self._log(f"this worker {state}" + (f": {wanted.why}" if wanted.why else ""))
            self._offer.wants(wanted)
        if (pause is None) != (self._pause is None):
            self._log(reasons.queue_paused(pause.why) if pause is not None else "the queue goes on")
        self._pause = pause
        self._read_once = True

    # ---- orders

    def _read_orders(self, holdings: Mapping[str, Holding], unread: Container[AttemptId]) -> None:
        others: list[keys.Order] = []
        found = order.stops_for(self._bucket, self._worker, self._known, others)
        self.starts.read(others)
        self._known = {given.key: given for given in found}
        for given in found:
            holding = holdings.get(str(given.attempt))
            if holding is not None:
                self._tell(holding, Ordered(given.cause, given.reason))
            elif given.attempt not in unread:
                self._bucket.drop(given.key)  # it is not held here, or not any more
                del self._known[given.key]

    def _tell(self, holding: Holding, ordered: Ordered) -> None:
        if holding.phase is Phase.ENDING:
            return
        try:
            fresh = write_order(holding.folder, ordered)
        except OSError as error:
            self._log(f"{holding.a}: an order could not be passed on: {error}")
            return
        if fresh:
            self._log(f"{holding.a}: {ordered.reason}")
            self._launcher.nudge(holding.folder)
