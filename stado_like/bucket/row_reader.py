"""Rows of the bucket and their bodies, as a tick reads them: each body once, whoever read it; many at once where the
way to the store is long; and pages of the slow sweeps from where the last one stopped.

A listing shows who is there, never who is not; one of which a page failed shows nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.ranges import Rows, cuts_of, is_far, list_in_ranges
from stado_like.bucket.side_by_side import side_by_side
from stado_like.bucket.tick_memory import Memory
from stado_like.errors import BadRecord, StoreError
from stado_like.job import codec, keys
from stado_like.job.records import Capacity
from stado_like.planning.world import SetAside
from stado_like.store.protocol import Page, Row

R = TypeVar("R")


class RowReader:
    """The listings of one load, with what failed and what was set aside."""

    def __init__(self, bucket: Bucket, memory: Memory) -> None:
        self.bucket = bucket
        self.memory = memory
        self.unread: dict[str, str] = {}
        self.set_aside: list[SetAside] = []
        self.ahead: dict[str, Rows | StoreError] = {}

    def rows(self, room: str, prefix: str) -> list[tuple[Row, float]]:
        """Every row of a prefix with its page's `now`. A page that fails makes the whole room unread: half a listing is
        none."""
        found = self.ahead.pop(prefix) if prefix in self.ahead else self._list((prefix, self._cuts(prefix)))
        if isinstance(found, StoreError):
            self.unread[room] = found.message
            return []
        if is_far(self.bucket):
            self.memory.note_cuts(prefix, cuts_of(found))
        return found

    def list_ahead(self, *prefixes: str) -> None:
        """Side by side what is about to be asked for, where the way to the store is long."""
        if is_far(self.bucket):
            asked = [(prefix, self._cuts(prefix)) for prefix in prefixes]
            self.ahead.update(zip(prefixes, side_by_side(self.bucket, self._list, asked), strict=True))

    def _cuts(self, prefix: str) -> list[str]:
        return self.memory.cuts_of(prefix) if is_far(self.bucket) else []

    def _list(self, asked: tuple[str, list[str]]) -> Rows | StoreError:
        try:
            return list_in_ranges(self.bucket, *asked)
        except StoreError as failed:
            return failed

    def parsed(self, room: str, prefix: str, parse: Callable[[Row], R]) -> tuple[R, ...]:
        return self.parse((row for row, _ in self.rows(room, prefix)), parse)

    def parse(self, rows: Iterable[Row], parse: Callable[[Row], R]) -> tuple[R, ...]:
        found = []
        for row in rows:
            try:
                found.append(parse(row))
            except BadRecord as bad:
                self.set_aside.append(SetAside(row.key, bad.message))
        return tuple(found)

    def body(self, kind: type[R], row: Row) -> R | None:
        """The body of a row, from memory where it is unchanged. None: gone since, or set aside. Raises `StoreError`."""
        known = self._remembered(kind, row)
        if known is not None:
            return known
        try:
            found = self.bucket.read(kind, row.key)
        except BadRecord as bad:
            self.set_aside.append(SetAside(row.key, bad.message))
            return None
        return self._remember(row, found.record) if found is not None else None

    def read_ahead(self, kind: type[R], rows: Iterable[tuple[Row, float]]) -> None:
        """Side by side the bodies that are about to be asked for, where the way to the store is long. One that cannot
        be read is asked for again, by whoever wants it."""
        if not is_far(self.bucket):
            return

        def read(row: Row) -> R | None:
            try:
                found = self.bucket.read(kind, row.key)
            except (StoreError, BadRecord):
                return None
            return found.record if found is not None else None

        wanted = [row for row, _ in rows if self._remembered(kind, row) is None]
        for row, record in zip(wanted, side_by_side(self.bucket, read, wanted), strict=True):
            if record is not None:
                self._remember(row, record)

    def _remembered(self, kind: type[R], row: Row) -> R | None:
        known = self.memory.bodies.get(row.key)
        if known is not None and known[0] == row.etag:
            return known[1]  # type: ignore[no-any-return]
        kept = self.memory.cache.body(kind, row.key, row.etag)
        if kept is not None:
            self.memory.bodies[row.key] = (row.etag, kept)
        return kept

    def _remember(self, row: Row, record: R) -> R:
        self.memory.bodies[row.key] = (row.etag, record)
        if not isinstance(record, Capacity):  # said anew every twenty seconds
            self.memory.cache.keep_body(row.key, row.etag, record)
        return record

    def forget_others(self, prefix: str, rows: list[tuple[Row, float]]) -> None:
        listed = {row.key for row, _ in rows}
        for key in [key for key in self.memory.bodies if key.startswith(prefix) and key not in listed]:
            del self.memory.bodies[key]

    def cursors(self) -> dict[str, Any]:
        if self.memory.cursors is None:
            self.memory.cursors = {}
            try:
                found = self.bucket.store.get(keys.SWEEP_CURSOR)
                if found is not None:
                    self.memory.cursors = codec.decode_plain(found.body, keys.SWEEP_CURSOR)
            except BadRecord as bad:
                self.set_aside.append(SetAside(keys.SWEEP_CURSOR, bad.message))
            except StoreError as failed:
                self.memory.cursors = None
                self.unread["sweep"] = failed.message
        return self.memory.cursors if self.memory.cursors is not None else {}

    def page(self, room: str, prefix: str, rows: int, parse: Callable[[Row], R]) -> tuple[R, ...]:
        """One page from where the last tick stopped; from the beginning again after the last one."""
        cursors = self.cursors()
        start_after = cursors.get(room, "")
        try:
            page: Page = self.bucket.store.list(
                prefix, start_after=start_after if isinstance(start_after, str) else "", limit=rows
            )
        except StoreError as failed:
            self.unread[room] = failed.message
            return ()
        cursors[room] = page.rows[-1].key if page.more and page.rows else ""
        return self.parse(page.rows, parse)
