"""Lists of jobs, without reading what nobody asked for.

A bucket may hold a hundred thousand finished jobs, and each costs requests to look at. So the candidates come from
listings alone: a job is created once and never changed, so the `last_modified` of its key is its age, and the indexes
(queue, claims, `open/`) name every job that is not over. What was told of a job once it was over stays true, and is
kept by whoever looks (`reading/kept_rows`) and, for everybody, in day files (`reading/day_rows`); what lies on the
queue is told from one listing of `status/` for many jobs at once. Any other row costs a GET of the job and, for a
one-task job, its ends; for an array its final, or else one listing of its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.records import Job, Tombstone
from stado_like.reading import candidates
from stado_like.reading.candidates import Candidate, Indexed, Known
from stado_like.reading.day_rows import DayRows
from stado_like.reading.job_row import JobRow
from stado_like.reading.kept_rows import KeptRows
from stado_like.store.protocol import Page

if TYPE_CHECKING:
    from stado_like.reading.rows import Look

DAY_S = 86_400.0
AT_ONCE, BATCH_MOST, AHEAD = 32, 1_024, 30_000
CAPPED_FROM = 1_000
"""Of so many of the newest jobs those are shown that a limit lets; more are held only where it comes to that."""
WORTH_A_PAGE = 13
"""So many GETs cost what one LIST does."""
KNOWN_ENOUGH = 5_000
"""Kept rows by which the space of keys is cut, instead of a day file's."""
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


def list_jobs(bucket: Bucket, wanted: Wanted, kept: KeptRows | None = None) -> Listing:
    """`kept`: what is known from earlier looks; what this one learns is added to it. Raises `StoreUnavailable`; a
    record that cannot be read is set aside and the rest goes on."""
    set_aside: dict[str, str] = {}
    return Listing(tuple(stream_jobs(bucket, wanted, set_aside, kept)), set_aside)


def stream_jobs(
    bucket: Bucket, wanted: Wanted, set_aside: dict[str, str], kept: KeptRows | None = None
) -> Iterator[JobRow]:
    """The same, one after another, so that a million rows need not be held. What is set aside is in `set_aside` once
    the last one has come."""
    kept = KeptRows() if kept is None else kept
    indexed = candidates.indexed(bucket, set_aside)
    reading = _Reading(bucket, wanted, kept, indexed, set_aside)
    cap = max(CAPPED_FROM, 2 * wanted.limit) if wanted.limit and not wanted.states and not wanted.labels else 0
    shown, whole = reading.candidates(cap)
    told = 0
    try:
        while True:
            for row in reading.rows(shown):
                yield row
                told += 1
                if told == wanted.limit:
                    return
            if whole:
                return
            # Of those that were listed so many were deleted or unreadable that the limit was not reached.
            shown, whole = reading.candidates(0, older_than=shown[-1] if shown else None)
    finally:
        kept.save()


class _Reading:
    """One look at many jobs. What is needed to read a job is loaded only when one must be read: where all rows were
    kept, that would be most of the time that a list takes."""

    def __init__(
        self, bucket: Bucket, wanted: Wanted, kept: KeptRows, indexed: Indexed, set_aside: dict[str, str]
    ) -> None:
        self._bucket = bucket
        self._wanted = wanted
        self._kept = kept
        self._now = bucket.now()
        self._indexed = indexed
        self._set_aside = set_aside
        self._by_job = not wanted.labels or not _are_of_tasks(wanted.labels)
        self._fresh: frozenset[JobId] = frozenset()
        self._kept_of_days = 0
        self._days = DayRows(bucket, wanted.workspace, worth_a_listing=WORTH_A_PAGE)

    def candidates(self, cap: int, older_than: Candidate | None = None) -> tuple[list[Candidate], bool]:
        """Jobs by age, newest first: of more than `cap` only the newest, where there is a cap, and whether these are
        all."""
        wanted, unfinished = self._wanted, self._indexed.unfinished
        found: list[Candidate] = []
        whole = True

        def take(page: Page) -> None:
            nonlocal whole
            for row in page.rows:
                age_s = max(0.0, page.now - row.last_modified)
                if not keys.is_job(row.key):
                    self._say_stray(row.key)
                elif age_s >= wanted.older_than_s and (wanted.every or age_s < DAY_S or row.key in unfinished):
                    found.append(Candidate(row.last_modified, row.key, row.etag))
            if cap and len(found) >= 4 * cap:
                found.sort(reverse=True)
                del found[cap:]
                whole = False

        candidates.every_job(self._bucket, wanted.workspace, self._known, take)
        gone = candidates.dying(self._bucket, self._indexed.opened)
        found = [one for one in found if one.key not in gone and (older_than is None or one < older_than)]
        found.sort(reverse=True)
        if cap and len(found) > cap:
            del found[cap:]
            whole = False
        self._fresh = _fresh(self._bucket, self._indexed, found, wanted)
        return found, whole

    def _say_stray(self, key: str) -> None:
        try:
            keys.parse_job(key)
        except BadRecord as bad:
            self._set_aside[key] = bad.message

    def _known(self) -> Known:
        mine = self._kept.keys_of(self._wanted.workspace)
        return Known(mine, len(mine)) if len(mine) >= KNOWN_ENOUGH else self._days.known()

    @cached_property
    def _look(self) -> Look:
        from stado_like.reading.rows import Look
        from stado_like.reading.surroundings import Surroundings

        around = Surroundings(self._bucket)
        around.set_aside = self._set_aside
        claimed = frozenset(self._indexed.claimed)
        return Look(self._bucket, around, claimed, self._now, self._wanted.labels, self._fresh)

    def rows(self, shown: list[Candidate]) -> Iterator[JobRow]:
        """What is told of each, in order, of those that are wanted."""
        at, size = 0, AT_ONCE
        while at < len(shown):  # small batches first: whoever wants a few rows, or interrupts, should not wait for many
            ahead = shown[at + size : at + size + AHEAD] if size == BATCH_MOST else []
            yield from self._rows_of(shown[at : at + size], ahead)
            at, size = at + size, min(2 * size, BATCH_MOST)

    def _rows_of(self, batch: list[Candidate], ahead: list[Candidate]) -> Iterator[JobRow]:
        told: dict[str, JobRow] = {}
        if self._by_job:
            told = self._kept.rows(batch)
            over = [one for one in batch if one.key not in told and one.key not in self._indexed.unfinished]
            told |= self._told_by_days(over, ahead)
        asked = [one for one in batch if one.key not in told]
        if asked:
            told |= self._ask(asked)
        may_be, has = self._wanted.may_be, self._has
        return (row for one in batch if (row := told.get(one.key)) is not None and may_be(row) and has(row))

    def _ask(self, asked: list[Candidate]) -> dict[str, JobRow]:
        jobs = [self._kept.job(one.key, one.etag) for one in asked]
        answers = side_by_side(self._bucket, lambda both: self._read(*both), zip(asked, jobs, strict=True))
        found: dict[str, JobRow] = {}
        for one, known, (job, row) in zip(asked, jobs, answers, strict=True):
            if row is not None:
                found[one.key] = row
            if row is not None and row.is_over:
                self._kept.keep_row(one.key, one.etag, row)
            elif job is not None and known is None and one.j in self._fresh:
                self._kept.keep_job(one.key, one.etag, job)
        return found

    def _told_by_days(self, unknown: list[Candidate], ahead: list[Candidate]) -> dict[str, JobRow]:
        told = self._days.rows(unknown, ahead)
        if self._kept_of_days < KEPT_OF_DAYS:
            for one in unknown:
                if one.key in told:
                    self._kept.keep_row(one.key, one.etag, told[one.key])
            self._kept_of_days += len(told)
        return told

    def _has(self, row: JobRow) -> bool:
        """The labels that are wanted. A row that was read has been judged by them, its tasks' too."""
        return not self._by_job or all(row.labels.get(name) == value for name, value in self._wanted.labels.items())

    def _read(self, one: Candidate, job: Job | None) -> tuple[Job | None, JobRow | None]:
        from stado_like.reading.rows import read_row

        j = one.j
        try:
            job = self._bucket.job(j) if job is None else job
            return job, None if job is None else read_row(self._look, j, job)
        except BadRecord as bad:
            self._set_aside[str(j)] = bad.message
        except KeyError as missing:
            self._set_aside[str(j)] = f"{one.key} has no {missing}"
        return None, None


def _are_of_tasks(names: Iterable[str]) -> bool:
    """Whether a label is among them that only tasks carry."""
    from stado_like.job.labels import is_of_tasks

    return any(is_of_tasks(name) for name in names)


def _fresh(bucket: Bucket, indexed: Indexed, shown: list[Candidate], wanted: Wanted) -> frozenset[JobId]:
    """Of the jobs with a first attempt on the queue and no claim, those of which `status/` holds no end, by listings
    that each answer for more jobs than as many GETs for its price would."""
    if not indexed.first:
        return frozenset()
    on_queue = {keys.job(j): j for j in indexed.first - indexed.claimed}
    asked = [on_queue[one.key] for one in shown if one.key in on_queue]
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


def list_deleted(bucket: Bucket, workspace: str = "") -> tuple[list[tuple[JobId, Tombstone]], dict[str, str]]:
    """Tombstones, newest first, and those that could not be read."""
    set_aside: dict[str, str] = {}
    prefix = f"{keys.DELETED}{workspace}." if workspace else keys.DELETED
    ids = list(candidates.parsed(bucket, prefix, keys.parse_tombstone, set_aside))

    def read(j: JobId) -> tuple[JobId, Tombstone] | None:
        try:
            found = bucket.tombstone(j)
        except BadRecord as bad:
            set_aside[str(j)] = bad.message
            return None
        return None if found is None else (j, found)

    found = [one for one in side_by_side(bucket, read, ids) if one is not None]
    return sorted(found, key=lambda one: -one[1].at), set_aside
