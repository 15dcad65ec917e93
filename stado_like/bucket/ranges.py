"""A long listing in parallel: the space of keys is cut where pages ended when it was listed last.

A page follows from the one before it, so a hundred of them take a hundred times the way to the store, unless it is
known where to begin in the middle. Wherever the cuts lie, each key is in one range; where little has changed since,
each range is whole pages, and cutting costs no listing more.
"""

from __future__ import annotations

from collections.abc import Sequence

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import AT_ONCE, side_by_side
from stado_like.store.protocol import Row

PAGE = 1_000
WORTH_CUTTING = 4
"""Pages."""

Rows = list[tuple[Row, float]]
"""Rows, each with the `now` of its page."""


def is_far(bucket: Bucket) -> bool:
    """Whether answers travel over a network."""
    return bucket.store.url.startswith("s3:")


def list_in_ranges(bucket: Bucket, prefix: str, cuts: Sequence[str]) -> Rows:
    """Every row of a prefix, in order. `cuts`: keys, or what would be some, in order. Raises `StoreUnavailable`."""
    ends = list(zip(["", *cuts], [*cuts, ""], strict=True))
    return [one for rows in side_by_side(bucket, lambda both: _range(bucket, prefix, *both), ends) for one in rows]


def cuts_of(rows: Rows) -> list[str]:
    """Where to cut the next time: at ends of pages, into ranges of about one size."""
    pages = len(rows) // PAGE
    if pages < WORTH_CUTTING:
        return []
    each = max(1, -(-pages // AT_ONCE)) * PAGE
    return [rows[at - 1][0].key for at in range(each, len(rows), each)]


def _range(bucket: Bucket, prefix: str, after: str, last: str) -> Rows:
    """Rows behind `after`, up to `last`; empty is no bound."""
    found: Rows = []
    while True:
        page = bucket.store.list(prefix, start_after=after)
        found.extend((row, page.now) for row in page.rows if not last or row.key <= last)
        if not page.more or not page.rows or (last and page.rows[-1].key >= last):
            return found
        after = page.rows[-1].key
