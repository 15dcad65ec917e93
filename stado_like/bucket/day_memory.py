"""Which rows of jobs lie in day files, as far as a process that writes them has seen, in eight bytes each.

Not obvious is how it tells what to take out again. A job that was deleted is listed no more, so whoever goes through
all of `jobs/` marks the rows that it meets; what was not marked when it comes to the end is nobody's. It forgets
nothing that costs more than requests: a row that is taken out in error is written again when its job is met next.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from hashlib import blake2b

from stado_like.bucket import days
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.days import Part
from stado_like.errors import BadRecord
from stado_like.job import day_keys, day_rows
from stado_like.job.day_rows import DayRow
from stado_like.job.keys import JobId

LISTED_EVERY_S = 3_600.0
Where = tuple[str, str]
"""A workspace and a day."""


def mark_of(j: JobId, etag: str) -> int:
    return int.from_bytes(blake2b(f"{j} {etag}".encode(), digest_size=8).digest())


class DayMemory:
    """The day files of a bucket, read as they are needed."""

    def __init__(self) -> None:
        self.parts: dict[Where, list[Part]] = {}
        self._listed_s: float | None = None
        self._known: dict[Where, array[int]] = {}
        self._read: dict[Where, set[str]] = {}
        """The keys of the files that an array was made from."""
        self._met: dict[Where, bytearray] = {}
        self._fresh: set[int] = set()
        """Rows that were found since the files were listed: alive, and in no array."""

    def begin(self, bucket: Bucket) -> None:
        """Forget what was met, and list the files anew where that was long ago: others seldom write any. Raises
        `StoreUnavailable`."""
        now_s = bucket.ambient.boot_s()
        if self._listed_s is None or now_s - self._listed_s >= LISTED_EVERY_S:
            self.parts, self._listed_s = days.parts(bucket), now_s
        for where, read in list(self._read.items()):
            if read != {one.key for one in self.parts.get(where, ())}:
                del self._read[where], self._known[where]
        self._met = {where: bytearray(len(marks)) for where, marks in self._known.items()}
        self._fresh.clear()

    def meet(self, bucket: Bucket, j: JobId, etag: str, at: float) -> bool:
        """Whether a file has the row of this job, of which the listing says so. Raises `StoreUnavailable`."""
        mark = mark_of(j, etag)
        if mark in self._fresh:
            return True
        where = (j.workspace, day_keys.day_of(at))
        known = self._known.get(where)
        if known is None:
            if where not in self.parts:
                return False
            known = self._load(bucket, where)
        spot = bisect_left(known, mark)
        if spot == len(known) or known[spot] != mark:
            return False
        self._met[where][spot] = 1
        return True

    def _load(self, bucket: Bucket, where: Where) -> array[int]:
        rows, self.parts[where] = rows_of(bucket, self.parts[where])
        marks = sorted({mark_of(row.j, row.etag) for row in rows})
        self._known[where], self._met[where] = array("Q", marks), bytearray(len(marks))
        self._read[where] = {one.key for one in self.parts[where]}
        return self._known[where]

    def add(self, where: Where, rows: Iterable[DayRow], made: Iterable[Part]) -> None:
        self._fresh.update(mark_of(row.j, row.etag) for row in rows)
        standing = self.parts.setdefault(where, [])
        standing.extend(one for one in made if one not in standing)

    def unmet(self) -> list[Where]:
        """Days with rows that were not met since `begin`. Only right after all of `jobs/` was listed."""
        return [where for where in self.parts if not all(self._met.get(where, b"\0"))]

    def was_met(self, where: Where, row: DayRow) -> bool:
        mark = mark_of(row.j, row.etag)
        if mark in self._fresh:
            return True
        known = self._known.get(where, array("Q"))
        spot = bisect_left(known, mark)
        return spot < len(known) and known[spot] == mark and bool(self._met[where][spot])

    def replace(self, where: Where, gone: Iterable[Part], made: list[Part]) -> None:
        """Other files stand for some of a day."""
        dropped = set(gone)
        kept = [one for one in self.parts.get(where, ()) if one not in dropped and one not in made]
        self.parts[where] = [*kept, *made]
        if not self.parts[where]:
            del self.parts[where]


def rows_of(bucket: Bucket, some: Iterable[Part]) -> tuple[list[DayRow], list[Part]]:
    """Every row of these files, and which files hold them. One whose bytes are not those that its name says is removed:
    under that name what it should hold could not be written again. Raises `StoreUnavailable`."""
    rows: list[DayRow] = []
    whole = []
    for part in some:
        try:
            rows.extend([day_rows.read(part.workspace, line) for line in days.lines(bucket, part)])
            whole.append(part)
        except BadRecord:
            bucket.drop(part.key)
        except (ValueError, TypeError):
            whole.append(part)  # and of another shape: readers pass it over too
    return rows, whole
