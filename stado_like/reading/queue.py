"""What waits, on which index, since when; and whether somebody is there to take it. Listings only: no entry is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.wanted import Pause
from stado_like.reading.surroundings import Surroundings
from stado_like.store.protocol import list_all


@dataclass(frozen=True, slots=True)
class IndexCount:
    """One index. `oldest_s`: how long its oldest entry has lain there; None when it is empty."""

    name: str
    count: int
    oldest_s: float | None
    oldest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    indexes: tuple[IndexCount, ...]
    workers_ready: int
    workers_stale: int
    workers_closed: int
    last_tick_at: float
    last_tick_age_s: float | None
    paused: Pause | None = None
    set_aside: dict[str, str] = field(default_factory=dict)


_INDEXES: tuple[tuple[str, str, Callable[[str], AttemptId]], ...] = (
    ("open", keys.QUEUED_OPEN, lambda key: keys.parse_entry(key).attempt),
    ("held", keys.QUEUED_HELD, lambda key: keys.parse_entry(key).attempt),
    ("later", keys.QUEUED_LATER, lambda key: keys.parse_later(key).attempt),
    ("running", keys.RUNNING, keys.parse_running),
)


def queue_status(bucket: Bucket) -> QueueStatus:
    """Raises `StoreUnavailable`; a key that is no entry is set aside."""
    set_aside: dict[str, str] = {}
    counted = tuple(_count(bucket, name, prefix, parse, set_aside) for name, prefix, parse in _INDEXES)
    around = Surroundings(bucket)
    workers = around.workers
    at, now = around.last_tick
    paused = around.pause
    return QueueStatus(
        indexes=counted,
        workers_ready=sum(one.is_ready for one in workers),
        workers_stale=sum(one.stale for one in workers),
        workers_closed=sum(not one.stale and not one.is_ready for one in workers),
        last_tick_at=at,
        last_tick_age_s=max(0.0, now - at) if at else None,
        paused=paused,
        set_aside={**set_aside, **around.set_aside},
    )


def _count(
    bucket: Bucket, name: str, prefix: str, parse: Callable[[str], AttemptId], set_aside: dict[str, str]
) -> IndexCount:
    count, oldest_at, oldest = 0, 0.0, ""
    for row in list_all(bucket.store, prefix):
        try:
            a = parse(row.key)
        except BadRecord as bad:
            set_aside[row.key] = bad.message
            continue
        count += 1
        if not oldest or row.last_modified < oldest_at:
            oldest_at, oldest = row.last_modified, str(a)
    return IndexCount(name, count, max(0.0, bucket.now() - oldest_at) if oldest else None, oldest)
