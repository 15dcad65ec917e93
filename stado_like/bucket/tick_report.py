"""The report that a tick leaves in the store, and what a reader makes of it: when a tick last ran here.

A store without ticks looks like one where nothing happens to be due: retries wait, the dead are not noticed. So whoever
explains why something waits says since when there was no tick.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.job import codec, keys


def write_report(bucket: Bucket, report: Mapping[str, Any]) -> None:
    """Put the report; last writer wins, nothing is decided by it. Raises `StoreUnavailable`."""
    bucket.put(keys.TICK_REPORT, report)


def read_report(bucket: Bucket) -> dict[str, Any] | None:
    """The newest report of any tick on this store. Raises `StoreUnavailable`, `BadRecord`."""
    found = bucket.store.get(keys.TICK_REPORT)
    return codec.decode_plain(found.body, keys.TICK_REPORT) if found is not None else None


def last_tick_at(bucket: Bucket) -> float | None:
    """When a tick last gave a sign here, store time: its report, or the lock of one that runs. None: never. Raises
    `StoreUnavailable`.

    A resident coordinator writes an unchanged report once a minute, so read this with two minutes' patience.
    """
    seen = [stat.last_modified for stat in bucket.store.heads((keys.TICK_REPORT, keys.TICK_LOCK)) if stat is not None]
    return max(seen, default=None)
