"""The rows of jobs that are over, from day files: for a list that would else read two objects of each such job.

Not obvious is when that is worth its requests. A listing of `days/` costs what thirteen GETs do, so it waits until as
many are at stake; a day's files are read where that takes fewer requests than what is not known of the day. A list goes
back in time, so lines are kept of the days of one batch only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stado_like.bucket import days
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.days import Part
from stado_like.bucket.side_by_side import side_by_side
from stado_like.job import day_keys, day_rows
from stado_like.reading import told
from stado_like.reading.candidates import Candidate, Known
from stado_like.reading.job_row import JobRow

READS_OF_A_JOB = 2
"""GETs for a job of one task that is over."""
AT_ONCE = 8
"""Files that are read side by side: their lines are held until the list has passed them."""
SAMPLED = 64
ROW_BYTES = 40
"""What a row takes in a file, packed, about."""
Where = tuple[str, str]
"""A workspace and a day."""


class DayRows:
    """`worth_a_listing`: how many GETs cost what one LIST does."""

    def __init__(self, bucket: Bucket, workspace: str, *, worth_a_listing: int) -> None:
        self._bucket = bucket
        self._workspace = workspace
        self._worth_a_listing = worth_a_listing
        self._listed: dict[Where, list[Part]] | None = None
        self._lines: dict[Where, dict[bytes, bytes]] = {}
        self._missed = 0

    def rows(self, asked: Sequence[Candidate], ahead: Sequence[Candidate] = ()) -> dict[str, JobRow]:
        """What day files tell of these jobs, under their keys; none of these is known to go on. `ahead`: which are
        asked for next, so that their files come at once with those of these. Raises `StoreUnavailable`."""
        self._missed += len(asked)
        if self._listed is None and READS_OF_A_JOB * self._missed < self._worth_a_listing:
            return {}
        if not asked or not self._parts():
            return {}
        placed = [(_where(one), one) for one in asked]
        self._load(Counter(where for where, _ in placed), ahead)
        found = {}
        for where, one in placed:
            line = self._lines.get(where, {}).get(_name(one.key))
            row = _row(line, one) if line is not None else None
            if row is not None:
                found[one.key] = row
        return found

    def known(self) -> Known:
        """Keys of jobs that the largest file tells of, and about how many jobs all tell of."""
        parts = [part for some in self._parts().values() for part in some]
        if not parts:
            return Known()
        largest = max(parts, key=lambda one: one.size_bytes)
        prefix = f"jobs/{largest.workspace}/"
        names = [f"{prefix}{day_rows.name_in(line).decode()}.json" for line in self._read(largest)]
        return Known(names, sum(part.size_bytes for part in parts) // ROW_BYTES)

    def _parts(self) -> dict[Where, list[Part]]:
        if self._listed is None:
            self._listed = days.parts(self._bucket, self._workspace)
        return self._listed

    def _load(self, wanted: Counter[Where], ahead: Sequence[Candidate]) -> None:
        newest = max(day for _, day in wanted)
        for where in [where for where, lines in self._lines.items() if lines and where[1] > newest]:
            self._lines[where] = {}  # behind us
        parts = self._worth_reading(wanted)
        if parts:
            soon = Counter(where for one in ahead[::SAMPLED] if (where := _where(one)) not in wanted)
            parts += self._worth_reading(soon)[: max(0, AT_ONCE - len(parts))]
        for part in parts:
            self._lines.setdefault((part.workspace, part.day), {})
        for part, lines in zip(parts, side_by_side(self._bucket, self._read, parts), strict=True):
            self._lines[part.workspace, part.day].update((day_rows.name_in(line), line) for line in lines)

    def _worth_reading(self, wanted: Counter[Where]) -> list[Part]:
        """The files of these days that were not read yet, where they are fewer requests than the jobs would be."""
        found: list[Part] = []
        for where, jobs in wanted.items():
            some = self._parts().get(where, [])
            if where not in self._lines and len(some) <= READS_OF_A_JOB * jobs:
                found += some
        return found

    def _read(self, part: Part) -> list[bytes]:
        try:
            return days.lines(self._bucket, part)
        except days.READABLE:
            return []


def _where(one: Candidate) -> Where:
    return one.key.split("/", 2)[1], day_keys.day_of(one.at)


def _name(key: str) -> bytes:
    """The job's name and incarnation, as a line says them."""
    return key[key.rindex("/") + 1 : -len(".json")].encode()


def _row(line: bytes, one: Candidate) -> JobRow | None:
    """None: it says something of an earlier job of that name, or cannot be read."""
    try:
        said = day_rows.read_said(line, one.etag)
        return None if said is None else told.row_of(one.key, said)
    except days.READABLE:
        return None
