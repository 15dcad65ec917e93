"""Lists of jobs, without reading what nobody asked for.

A bucket may hold a hundred thousand finished jobs, and each costs requests to look at. So the candidates come from
listings alone: a job is created once and never changed, so the `last_modified` of its key is its age, and the indexes
(queue, claims, `open/`) name every job that is not over. What was told of a job once it was over stays true, and is
kept by whoever looks (`reading/kept_rows`) and, for everybody, in day files (`reading/day_rows`); what lies on the
queue is told from one listing of `status/` for many jobs at once. Any other row costs a GET of the job and, for a
one-task job, its ends; for an array its final, or else one listing of its status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.labels import is_of_tasks
from stado_like.job.records import Job, Tombstone
from stado_like.reading.day_rows import DayRows
from stado_like.reading.kept_rows import KeptRows
from stado_like.reading.shapes import JobRow
from stado_like.store.protocol import list_all

if TYPE_CHECKING:
    from stado_like.reading.rows import Look

DAY_S = 86_400.0
AT_ONCE = 32
WORTH_A_PAGE = 13
"""So many GETs cost what one LIST does."""
KEPT_OF_DAYS = 10_000
"""Rows of day files that one look keeps on its disk too: what is shown most. All of a very long list would push each
other out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which jobs. `every` False: unfinished ones and those submitted in the last day. States are compared without
    case.
    """

    workspace: str = ""
    states: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int = 0
    every: bool = False
    older_than_s: float = 0.0

    def may_be(self, row: JobRow) -> bool:
        return not self.states or row.state.value.lower() in {one.lower() for one in self.states}


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows, newest first, and the records that could not be read, with the reason."""

    rows: tuple[JobRow, ...]
    set_aside: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A job that may be shown, as a listing named it."""

    j: JobId
    etag: str
    at: float

    @property
    def key(self) -> str:
        return keys.job(self.j)


@dataclass(slots=True)
class _Indexed:
    """What the indexes say of jobs that are not over."""

    unfinished: set[JobId] = field(default_factory=set)
    opened: list[JobId] = field(default_factory=list)
    claimed: set[JobId] = field(default_factory=set)
    first: set[JobId] = field(default_factory=set)
    """Jobs with a first attempt on the queue."""


def list_jobs(bucket: Bucket, wanted: Wanted, kept: KeptRows | None = None) -> Listing:
    """`kept`: what is known from earlier looks; what this one learns is added to it. Raises `StoreUnavailable`; a
    record that cannot be read is set aside and the rest goes on."""
    set_aside: dict[str, str] = {}
    kept = KeptRows() if kept is None else kept
    indexed = _indexed(bucket, set_aside)
    now, candidates = _candidates(bucket, wanted, indexed.unfinished, set_aside)
    dying = _deletions(bucket, indexed.opened)
    candidates = [one for one in candidates if one.j not in dying]
    reading = _Reading(bucket, wanted, kept, now, indexed, set_aside)
    reading.fresh = _fresh(bucket, indexed, [one.j for one in candidates], wanted)
    rows: list[JobRow] = []
    for batch in _batches(candidates, AT_ONCE):
        rows += reading.rows_of(batch)
        if wanted.limit and len(rows) >= wanted.limit:
            break
    kept.save()
    return Listing(tuple(rows[: wanted.limit] if wanted.limit else rows), set_aside)


class _Reading:
    """One look at many jobs. What is needed to read a job is loaded only when one must be read: where all rows were
    kept, that would be most of the time that a list takes."""

    def __init__(
        self,
        bucket: Bucket,
        wanted: Wanted,
        kept: KeptRows,
        now: float,
        indexed: _Indexed,
        set_aside: dict[str, str],
    ) -> None:
        self._bucket = bucket
        self._wanted = wanted
        self._kept = kept
        self._now = now
        self._unfinished = frozenset(indexed.unfinished)
        self._claimed = frozenset(indexed.claimed)
        self._set_aside = set_aside
        self._by_job = not any(is_of_tasks(name) for name in wanted.labels)
        self.fresh: frozenset[JobId] = frozenset()
        self._kept_of_days = 0
        self._days = DayRows(bucket, wanted.workspace, worth_a_listing=WORTH_A_PAGE)

    @cached_property
    def _look(self) -> Look:
        from stado_like.reading.rows import Look
        from stado_like.reading.surroundings import Surroundings

        around = Surroundings(self._bucket)
        around.set_aside = self._set_aside
        return Look(self._bucket, around, self._claimed, self._now, self._wanted.labels, self.fresh)

    def rows_of(self, batch: list[_Candidate]) -> list[JobRow]:
        kept = self._kept
        known = {one: kept.row(one.key, one.etag) for one in batch} if self._by_job else {}
        told = {one: row for one, row in known.items() if row is not None}
        if self._by_job:
            told |= self._told_by_days([one for one in batch if one not in told and one.j not in self._unfinished])
        asked = [one for one in batch if one not in told]
        jobs = {one: kept.job(one.key, one.etag) for one in asked}
        answers = side_by_side(self._bucket, lambda one: self._read(one, jobs[one]), asked)
        read = dict(zip(asked, answers, strict=True))
        for one, (job, row) in read.items():
            if row is not None and row.is_over:
                kept.keep_row(one.key, one.etag, row)
            elif job is not None and jobs[one] is None and one.j in self.fresh:
                kept.keep_job(one.key, one.etag, job)
        rows = [told[one] if one in told else read[one][1] for one in batch]
        return [row for row in rows if row is not None and self._wanted.may_be(row) and self._has(row)]

    def _told_by_days(self, unknown: list[_Candidate]) -> dict[_Candidate, JobRow]:
        found = self._days.rows([(one.j, one.etag, one.at) for one in unknown])
        told = {one: found[one.j] for one in unknown if one.j in found}
        for one, row in islice(told.items(), max(0, KEPT_OF_DAYS - self._kept_of_days)):
            self._kept.keep_row(one.key, one.etag, row)
        self._kept_of_days += len(told)
        return told

    def _has(self, row: JobRow) -> bool:
        """The labels that are wanted. A row that was read has been judged by them, its tasks' too."""
        return not self._by_job or all(row.labels.get(name) == value for name, value in self._wanted.labels.items())

    def _read(self, one: _Candidate, job: Job | None) -> tuple[Job | None, JobRow | None]:
        from stado_like.reading.rows import read_row

        try:
            job = self._bucket.job(one.j) if job is None else job
            return job, None if job is None else read_row(self._look, one.j, job)
        except BadRecord as bad:
            self._set_aside[str(one.j)] = bad.message
        except KeyError as missing:
            self._set_aside[str(one.j)] = f"{one.key} has no {missing}"
        return None, None


def _batches(every: list[_Candidate], size: int) -> Iterator[list[_Candidate]]:
    for at in range(0, len(every), size):
        yield every[at : at + size]


def _candidates(
    bucket: Bucket, wanted: Wanted, unfinished: set[JobId], set_aside: dict[str, str]
) -> tuple[float, list[_Candidate]]:
    """Jobs by age, newest first. One listing of the workspace's jobs, or of all."""
    prefix = keys.jobs_of(wanted.workspace) if wanted.workspace else keys.JOBS
    aged: list[tuple[float, JobId, str]] = []
    for row in list_all(bucket.store, prefix):
        j = _parsed(keys.parse_job, row.key, set_aside)
        if j is not None:
            aged.append((row.last_modified, j, row.etag))
    now = bucket.now()
    shown = [
        (at, j, etag)
        for at, j, etag in aged
        if (wanted.every or j in unfinished or now - at < DAY_S) and now - at >= wanted.older_than_s
    ]
    return now, [_Candidate(j, etag, at) for at, j, etag in sorted(shown, reverse=True)]


def _parsed(parse: Callable[[str], JobId], key: str, set_aside: dict[str, str]) -> JobId | None:
    try:
        return parse(key)
    except BadRecord as bad:
        set_aside[key] = bad.message
        return None


def _indexed(bucket: Bucket, set_aside: dict[str, str]) -> _Indexed:
    found = _Indexed()
    for prefix in (keys.QUEUED_OPEN, keys.QUEUED_HELD, keys.QUEUED_LATER):
        for row in list_all(bucket.store, prefix):
            try:
                a = keys.attempt_of_entry(row.key)
            except BadRecord as bad:
                set_aside[row.key] = bad.message
                continue
            found.unfinished.add(a.job)
            if a.n == 1 and prefix != keys.QUEUED_LATER:
                found.first.add(a.job)
    for row in list_all(bucket.store, keys.OPEN):
        j = _parsed(keys.parse_open_index, row.key, set_aside)
        if j is not None:
            found.opened.append(j)
    for row in list_all(bucket.store, keys.RUNNING):
        j = _parsed(lambda key: keys.parse_running(key).job, row.key, set_aside)
        if j is not None:
            found.claimed.add(j)
    found.unfinished |= {*found.opened, *found.claimed}
    return found


def _fresh(bucket: Bucket, indexed: _Indexed, shown: list[JobId], wanted: Wanted) -> frozenset[JobId]:
    """Of the jobs with a first attempt on the queue and no claim, those of which `status/` holds no end, by listings
    that each answer for more jobs than as many GETs for its price would."""
    asked = [j for j in shown if j in indexed.first and j not in indexed.claimed]
    if wanted.limit and not wanted.states and not wanted.labels:
        asked = asked[: wanted.limit]
    waiting = sorted(asked, key=keys.status_of)
    fresh: set[JobId] = set()
    at = 0
    while len(waiting) - at >= WORTH_A_PAGE:
        page = bucket.store.list(keys.STATUS, start_after=keys.status_of(waiting[at]))
        last = page.rows[-1].key if page.more and page.rows else ""
        ended = {prefix for row in page.rows if (prefix := _of_an_end(row.key))}
        answered = [j for j in waiting[at:] if not last or f"{keys.status_of(j)}~" < last]
        fresh |= {j for j in answered if keys.status_of(j) not in ended}
        at += len(answered)
        if len(answered) < WORTH_A_PAGE:
            break
    return frozenset(fresh)


def _of_an_end(key: str) -> str:
    """The status prefix of the job whose attempt this key says has ended; empty for any other key."""
    parts = key.split("/")
    return f"{'/'.join(parts[:3])}/" if len(parts) == 5 and parts[4].startswith("end.") else ""


def _deletions(bucket: Bucket, opened: list[JobId]) -> set[JobId]:
    """Jobs in `open/` that have a tombstone: what is left of them is on its way out."""
    present = bucket.present(*(keys.tombstone(j) for j in opened))
    return {j for j, buried in zip(opened, present, strict=True) if buried}


def list_deleted(bucket: Bucket, workspace: str = "") -> tuple[list[tuple[JobId, Tombstone]], dict[str, str]]:
    """Tombstones, newest first, and those that could not be read."""
    set_aside: dict[str, str] = {}
    ids = []
    for row in list_all(bucket.store, f"{keys.DELETED}{workspace}." if workspace else keys.DELETED):
        j = _parsed(keys.parse_tombstone, row.key, set_aside)
        if j is not None:
            ids.append(j)

    def read(j: JobId) -> tuple[JobId, Tombstone] | None:
        try:
            found = bucket.tombstone(j)
        except BadRecord as bad:
            set_aside[str(j)] = bad.message
            return None
        return None if found is None else (j, found)

    found = [one for one in side_by_side(bucket, read, ids) if one is not None]
    return sorted(found, key=lambda one: -one[1].at), set_aside
