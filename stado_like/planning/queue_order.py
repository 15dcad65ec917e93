"""In which order waiting work is looked at: priority, then the creation of its job, then rank.

Not obvious is what does not count. How long something waited changes nothing, nor what its people used before: an
order that changes while work runs makes equals evict each other. A restarted task keeps its job's place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from stado_like.job.ids import JobId
from stado_like.planning.board import Hold, Unit


class Ordered(Protocol):
    """What has a place in the queue: a unit, a hold's job, an entry."""

    @property
    def job(self) -> JobId: ...
    @property
    def priority(self) -> int: ...
    @property
    def created_ms(self) -> int: ...


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """First to run first. Units of one job follow each other by rank, then attempt."""
    return sorted(units, key=_key)


def _key(unit: Unit) -> tuple[int, int, JobId, int, int]:
    first = unit.members[0].attempt if unit.members else None
    rank, n = (first.rank, first.n) if first else (0, 0)
    return (-unit.priority, unit.created_ms, unit.job, rank, n)


def is_ahead(one: Ordered, hold: Hold) -> bool:
    """Whether work comes before the job that room is held for: a hold is none of its business."""
    return (-one.priority, one.created_ms, one.job) < (-hold.priority, hold.created_ms, hold.job)
