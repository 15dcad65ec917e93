"""What surrounds the jobs: the workers that say they are there and what people want of them, whether the queue is
paused, and the last sign of a tick. Read once per answer, and only if somebody asks.

Why a job waits is mostly answered here and not in the job. Ages compare the `last_modified` and the `now` of one
answer of the store; what a worker promised (`next_by`) is store time too, carried forward by its own clock, so a
worker is stale when its promise is older than the store's now by the grace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from stado_like.bucket import pausing, workers
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity
from stado_like.job.terms import Terms
from stado_like.job.wanted import Pause, Wanted
from stado_like.planning.fit import why_not
from stado_like.planning.machines import machine_of
from stado_like.reading.shapes import Node
from stado_like.store.protocol import list_all

GRACE_S = 15.0
TICK_QUIET_S = 600.0


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker as its last broadcast tells it. `age_s`: how old that is; `stale`: it promised another by now.
    `wanted`: what a person wants of it now, which it may not have heard yet."""

    capacity: Capacity
    age_s: float
    stale: bool
    wanted: Wanted = field(default_factory=Wanted)

    @property
    def is_ready(self) -> bool:
        return self.capacity.accepting and not self.stale and not self.wanted.cordoned

    @property
    def has_let_go(self) -> bool:
        """It has heard what is wanted of it, and holds nothing."""
        return not self.stale and self.capacity.wanted == self.wanted.nonce and not self.capacity.held

    def why_not(self, terms: Terms, rank: int) -> tuple[str, ...]:
        """What keeps a task off this machine, as far as its last word tells; empty: it fits."""
        ask = terms.for_rank(rank).ask
        machine = machine_of(
            self.capacity,
            age_s=self.age_s,
            stale=self.stale,
            wanted=self.wanted,
            apart=frozenset((ask.apart,)) if ask.apart and self._holds_kin(terms, rank) else frozenset(),
        )
        return (machine.closed,) if self.stale else why_not(machine, ask)

    def _holds_kin(self, terms: Terms, rank: int) -> bool:
        """Whether it holds a rank of the same group. Its broadcast names attempts, and no words to keep apart by."""
        ranks = terms.group_of(rank).ranks
        for one in self.capacity.held:
            try:
                a = AttemptId.parse(one.attempt)
            except BadRecord:
                continue  # of a newer version, which names attempts in another way: it says nothing here
            if (a.job.workspace, a.job.name) == (terms.workspace, terms.name) and a.rank in ranks:
                return True
        return False


class Surroundings:
    """Lazy: a finished job asks for none of it."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self.set_aside: dict[str, str] = {}
        """Records that could not be read, with the reason."""

    @cached_property
    def workers(self) -> tuple[WorkerView, ...]:
        """Every worker that has a broadcast, stale ones too, by name. Raises `StoreUnavailable`."""
        listed = [row.key for row in list_all(self._bucket.store, keys.CAPACITY)]
        wanted, unread = workers.every(self._bucket)
        self.set_aside.update(unread)
        found = side_by_side(self._bucket, lambda key: self._worker(key, wanted), listed)
        return tuple(sorted((one for one in found if one is not None), key=lambda one: one.capacity.worker))

    def _worker(self, key: str, wanted: Mapping[str, Wanted]) -> WorkerView | None:
        try:
            found = self._bucket.read(Capacity, key)
        except BadRecord as bad:
            self.set_aside[key] = bad.message
            return None
        if found is None:
            return None
        promise = found.record.next_by or found.last_modified
        stale = found.now > promise + GRACE_S
        return WorkerView(found.record, found.age_s, stale, wanted.get(found.record.worker, Wanted()))

    @cached_property
    def pause(self) -> Pause | None:
        """Raises `StoreUnavailable`."""
        return pausing.read(self._bucket)

    def nodes(self, terms: Terms, rank: int = 0) -> tuple[Node, ...]:
        """Every machine with what keeps a task off it."""
        return tuple(Node(one.capacity.worker, one.why_not(terms, rank)) for one in self.workers)

    @cached_property
    def last_tick(self) -> tuple[float, float]:
        """When a tick last left a trace, and the store's now: `(0, now)` when there is none. A resident tick
        refreshes its lock.
        """
        traces = self._bucket.store.heads((keys.TICK_LOCK, keys.TICK_REPORT, keys.OBSERVED))
        seen = [one for one in traces if one is not None]
        if not seen:
            return 0.0, self._bucket.now()
        newest = max(seen, key=lambda one: one.last_modified)
        return newest.last_modified, newest.now

    @property
    def ticks(self) -> bool:
        """Whether a tick was seen lately."""
        at, now = self.last_tick
        return bool(at) and now - at < TICK_QUIET_S
