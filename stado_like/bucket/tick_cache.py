"""What a tick leaves on this machine's disk for the next one: records that never change, and what it saw of them.

Cron starts a process for each tick. Without this each would read again what stands since yesterday: what a thousand
waiting jobs ask for, who holds what runs, how the ranks of an array ended. It is right without any of it; it only asks
more.

What may be kept, and why it stays right:

    a job's record       never changed; its key is never used for another. Deleted, the tombstone decides, and every use
                         asks for that, or ends at a gate that does
    an end               never changed, goes only with its job
    claims, orders, …    with the etag of the row that showed them; served only to a row with the same one
    an entry's ask       with the time at which it was written
    when a job of `open/` was looked after   a time of this boot's clock
    marks                what the slow sweep saw of a job or an entry (`sweeping`)

A store that was emptied has another record of itself, `state/store.json`: what was kept of the one before is nothing to
it. Where there is none, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, StoreError
from stado_like.job import codec, keys
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.records import End
from stado_like.kept_lines import KeptLines
from stado_like.kept_marks import KeptMarks

FORMAT = 1
"""Counts up whenever a line has another shape, or says the same in other words."""
MOST_BYTES = 32 << 20
MOST_MARKS = 1 << 20
WEEK_S = 7 * 86_400.0
MOST_OF_AN_END_BYTES = 2048
"""What is longer holds a log; it is read again."""

R = TypeVar("R")


class TickCache:
    """The part of a tick's memory that outlives its process. `folder`: where; None: nowhere."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._about = ""
        self.lines: KeptLines | None = None
        self.marks = KeptMarks(None, "", most=MOST_MARKS)

    def open(self, bucket: Bucket) -> None:
        """Before a tick's reads. One request; where it brings no answer nothing is served until one comes."""
        if self._folder is None:
            return
        try:
            found = bucket.store.get(keys.STORE_VERDICT)
        except StoreError:
            found = None
        which = found.etag if found is not None else ""  # guard: kept of this store
        about = f"{FORMAT} {bucket.store.url} {which}" if which else ""
        if about == self._about:
            return
        self._about = about
        self.lines, self.marks = None, KeptMarks(None, "", most=MOST_MARKS)
        if about:
            name = blake2b(bucket.store.url.encode(), digest_size=16).hexdigest()
            self.lines = KeptLines(self._folder / f"{name}.lines", about, most_bytes=MOST_BYTES)
            self.marks = KeptMarks(self._folder / f"{name}.marks", about, most=MOST_MARKS)

    def save(self) -> None:
        """After a tick."""
        if self.lines is not None:
            self.lines.save()
        self.marks.save()

    def said(self, key: str) -> Any:
        return self.lines.said(key) if self.lines is not None else None

    def keep(self, key: str, value: Any) -> None:
        if self.lines is not None:
            self.lines.keep(key, value)

    # ---- records

    def body(self, kind: type[R], key: str, etag: str) -> R | None:
        """The record under a key while its row has this etag."""
        said = self.said(key)
        if not isinstance(said, list) or len(said) != 2 or said[0] != etag:  # guard: etag of this listing
            return None
        return _record(kind, said[1], key)

    def keep_body(self, key: str, etag: str, record: object) -> None:
        if self.lines is not None:
            self.lines.keep(key, [etag, codec.to_plain(record)])

    def end(self, key: str) -> End | None:
        return _record(End, self.said(key), key)

    def keep_end(self, key: str, end: End) -> None:
        if self.lines is None:
            return
        plain = codec.to_plain(end)
        if len(codec.encode(plain)) <= MOST_OF_AN_END_BYTES:
            self.lines.keep(key, plain)

    # ---- when a job of open/ was looked after

    def mended(self, j: JobId, boot_id: str) -> tuple[float, float, float, bool] | None:
        said = self.said(f"mended/{j}")
        if not isinstance(said, list) or len(said) != 5 or said[0] != boot_id:
            return None
        _, looked_at, ranks_at, wait_s, had_claims = said
        return looked_at, ranks_at, wait_s, had_claims

    def keep_mended(self, j: JobId, boot_id: str, said: tuple[float, float, float, bool]) -> None:
        self.keep(f"mended/{j}", [boot_id, *said])


def _record(kind: type[R], plain: Any, key: str) -> R | None:
    """None where another version kept something that this one cannot read."""
    if not isinstance(plain, Mapping):
        return None
    try:
        return codec.from_plain(kind, plain, key)
    except BadRecord:
        return None


# ---- marks


def landed(a: AttemptId, now: float) -> str:
    """The mark of an attempt whose entry was written."""
    return f"landed/{int(now // WEEK_S)}/{a}"


def looked_at(key: str, now: float) -> str:
    """The mark of an entry that lay there for long, and rightly so."""
    return f"lies/{int(now // WEEK_S)}/{key}"


def over(j: JobId, since: float) -> str:
    """The mark of a job that needs no look any more. `since`: when its record was written."""
    return f"over/{since!r}/{j}"
