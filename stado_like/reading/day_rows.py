"""The rows of jobs that are over, from day files: for a list that would else read two objects of each such job.

Not obvious is when that is worth its requests. A listing of `days/` costs what thirteen GETs do, so it waits until as
many are at stake; a day's files are read where that takes fewer requests than what is not known of the day. A list goes
back in time, so lines are kept of one day only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stado_like.bucket import days
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.days import Part
from stado_like.bucket.side_by_side import side_by_side
from stado_like.job import day_keys, day_rows
from stado_like.job.keys import JobId
from stado_like.reading import told
from stado_like.reading.shapes import JobRow

READS_OF_A_JOB = 2
"""GETs for a job of one task that is over."""
Asked = tuple[JobId, str, float]
"""A job with the etag and the time of its record, as `jobs/` lists them."""


class DayRows:
    """`worth_a_listing`: how many GETs cost what one LIST does."""

    def __init__(self, bucket: Bucket, workspace: str, *, worth_a_listing: int) -> None:
        self._bucket = bucket
        self._workspace = workspace
        self._worth_a_listing = worth_a_listing
        self._parts: dict[tuple[str, str], list[Part]] | None = None
        self._lines: dict[tuple[str, str], dict[bytes, bytes]] = {}
        self._missed = 0

    def rows(self, asked: Sequence[Asked]) -> dict[JobId, JobRow]:
        """What day files tell of these jobs, none of which is known to go on. Raises `StoreUnavailable`."""
        self._missed += len(asked)
        if self._parts is None:
            if READS_OF_A_JOB * self._missed < self._worth_a_listing:
                return {}
            self._parts = days.parts(self._bucket, self._workspace)
        if not self._parts:
            return {}
        placed = [((j.workspace, day_keys.day_of(at)), j, etag) for j, etag, at in asked]
        self._load(Counter(where for where, _, _ in placed))
        found = {}
        for where, j, etag in placed:
            line = self._lines.get(where, {}).get(day_rows.name_of(j))
            row = _row(line, j, etag) if line is not None else None
            if row is not None:
                found[j] = row
        return found

    def _load(self, wanted: Counter[tuple[str, str]]) -> None:
        assert self._parts is not None
        for where in [where for where in self._lines if where not in wanted]:
            self._lines[where] = {}  # behind us: a list goes back in time
        fresh = [
            where
            for where, jobs in wanted.items()
            if where not in self._lines and 0 < len(self._parts.get(where, ())) <= READS_OF_A_JOB * jobs
        ]
        parts = [part for where in fresh for part in self._parts[where]]
        for part, lines in zip(parts, side_by_side(self._bucket, self._read, parts), strict=True):
            kept = self._lines.setdefault((part.workspace, part.day), {})
            kept.update((day_rows.name_in(line), line) for line in lines)

    def _read(self, part: Part) -> Iterable[bytes]:
        try:
            return days.lines(self._bucket, part)
        except days.READABLE:
            return ()


def _row(line: bytes, j: JobId, etag: str) -> JobRow | None:
    """None: it says something of an earlier job of that name, or cannot be read."""
    try:
        one = day_rows.read(j.workspace, line)
        return told.row_of(j, one.said) if one.etag == etag else None  # guard: day rows go by the listing
    except days.READABLE:
        return None
