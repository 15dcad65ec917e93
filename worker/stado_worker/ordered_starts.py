"""What ticks gave to this worker: attempts that are its own to claim, before what it finds in the queue by itself.

A tick counts with room that the last broadcast told of, which may be gone, or not be seen yet; so an order that does
not fit is tried for some seconds, and then refused, which a tick reads: the attempt goes elsewhere, or its gang does.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from stado_like.bucket import entries, gang, ordered_place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.ordered_place import ToStart
from stado_like.errors import BadRecord
from stado_like.job import keys, reasons
from stado_like.job.keys import Entry
from stado_like.job.records import Entry as EntryRecord
from stado_like.job.terms import Ask
from stado_like.planning import fit
from stado_like.planning.fit import Machine

TRIED_FOR_S = 10.0


@dataclass(frozen=True, slots=True)
class Given:
    """An order that fits now."""

    asked: ToStart
    entry: Entry
    ask: Ask


@dataclass(slots=True)
class _Waiting:
    asked: ToStart
    since_s: float
    ask: Ask | None = None


class OrderedStarts:
    def __init__(self, bucket: Bucket, worker: str, only_job: str, log: Callable[[str], None]) -> None:
        self._bucket = bucket
        self._worker = worker
        self._only_job = only_job
        self._log = log
        self._waiting: dict[str, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def read(self, found: Iterable[keys.Order]) -> None:
        """The orders to start that lie in the inbox now. Raises `StoreUnavailable`."""
        lying: dict[str, _Waiting] = {}
        now_s = self._bucket.ambient.boot_s()
        for parsed in found:
            known = self._waiting.get(parsed.key)
            if known is None:
                asked = ordered_place.to_start(self._bucket, self._worker, parsed)
                known = _Waiting(asked, now_s) if asked is not None else None
            if known is not None:
                lying[parsed.key] = known
        self._waiting = lying

    def take(self, machine: Callable[[], Machine], held: Container[str]) -> Given | None:
        """The next order to claim by; it is not returned again until the inbox was read anew. Raises
        `StoreUnavailable`."""
        now_s = self._bucket.ambient.boot_s()
        for key, waiting in list(self._waiting.items()):
            if str(waiting.asked.attempt) in held:
                del self._waiting[key]
                continue
            ask = waiting.ask = waiting.ask or self._ask_of(waiting.asked)
            if ask is None:
                self._bucket.drop(key)  # claimed, or over: its entry is gone
                del self._waiting[key]
                continue
            here = machine()
            why = self._why_not(waiting.asked, here, ask)
            if not why:
                del self._waiting[key]
                return Given(waiting.asked, keys.parse_entry(waiting.asked.queue_key), fit.settled(here, ask))
            if now_s - waiting.since_s > TRIED_FOR_S:
                self._log(f"{waiting.asked.attempt}: refused: {why}")
                gang.refuse(self._bucket, waiting.asked, self._worker, why)
                del self._waiting[key]
        return None

    def _why_not(self, asked: ToStart, machine: Machine, ask: Ask) -> str:
        if self._only_job and str(asked.attempt.job) != self._only_job:
            return reasons.refuses_work(f"it works for {self._only_job} only")
        return "; ".join(fit.why_not(machine, ask))

    def _ask_of(self, asked: ToStart) -> Ask | None:
        """What the attempt asks for. None: its entry is gone, or cannot be read."""
        try:
            keys.parse_entry(asked.queue_key)
            found = self._bucket.read(EntryRecord, asked.queue_key)
        except BadRecord as bad:
            self._log(bad.message)
            return None
        return entries.ask_in(found.record).among(asked.order.devices) if found is not None else None
