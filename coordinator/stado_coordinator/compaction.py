"""The slow pass that writes day files: it goes through `jobs/`, a few pages a minute, and notes what is over.

Nothing depends on it. A job that it has not met yet is read by whoever lists it; a tick that is killed loses a few
minutes of reading; two that do it at once write some rows twice. What makes it cheap is what it need not ask: a job
that is known to go on, or whose row it has met in a day file, costs nothing beyond its line of the listing, and one
that was found going on is looked at again after twice as long. It walks through all of `jobs/` about once an hour,
however much lies there, and stops hurrying once nothing new turns up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeVar

from stado_like.bucket import days
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.day_memory import DayMemory, Where, mark_of, rows_of
from stado_like.bucket.days import Part
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.job import day_keys, keys
from stado_like.job.day_rows import DayRow
from stado_like.job.keys import AttemptId, JobId
from stado_like.planning.world import World
from stado_like.reading import told
from stado_like.reading.rows import read_over
from stado_like.store.protocol import Row, list_all

PLACE = "days"
RESIDENT_EVERY_S, CRON_EVERY_S = 60.0, 600.0
QUIET_FIRST_S, QUIET_MOST_S = 600.0, 3_600.0
RESIDENT_SPENDS_S, CRON_SPENDS_S = 2.0, 5.0
ROUND_S = 3_600.0
AT_ONCE = 64
WORTH_A_PAGE = 13
QUEUE_ROWS_MOST = 10_000
PENDING_MOST, PENDING_WORTH, PENDING_S = 20_000, 200, 300.0
SMALL_BYTES, JOINED_FROM, JOINED_MOST = 64 * 1024, 8, 16
GOING_FIRST_S, GOING_MOST_S, GOING_REMEMBERED = 60.0, 3_600.0, 200_000
T = TypeVar("T")
UNREADABLE = (BadRecord, KeyError, TypeError, AttributeError, ValueError)


class Compaction:
    """What a process remembers of it. All of it may be lost."""

    def __init__(self) -> None:
        self._memory = DayMemory()
        self._pending: dict[Where, list[DayRow]] = {}
        self._pending_since_s = 0.0
        self._going: dict[int, tuple[float, float]] = {}
        """When to look again at a job that went on, by `boot_s`, and how long that waits then."""
        self._queued: set[JobId] | None = None
        """Jobs that lie on the queue, as far as this step has listed it."""
        self._due_s: float | None = None
        self._pages = self._pages_before = 0
        self._whole = False
        """This round began in this process, at the first key."""
        self._lively = False
        """Something was found in this round."""
        self._quiet_s = 0.0
        """How long a round waits after one that found nothing."""

    def is_due(self, bucket: Bucket, places: dict[str, Any], *, resident: bool) -> bool:
        """A resident writes a minute after its start. Ticks that start anew each time go by what the last one left."""
        if resident:
            now_s = bucket.ambient.boot_s()
            self._due_s = now_s + RESIDENT_EVERY_S if self._due_s is None else self._due_s
            return now_s >= self._due_s
        now = bucket.now()
        if not 0 <= now - _place(places, "at", 0.0) < CRON_EVERY_S:
            first = PLACE not in places
            _leave(places, at=now)
            return not first
        return False

    def step(self, bucket: Bucket, places: dict[str, Any], going: Container[JobId], *, resident: bool) -> Counter[str]:
        """Go on through `jobs/`, and write what is worth a file. Raises `StoreError`: all but the place is kept."""
        did = Counter[str]()
        now_s = bucket.ambient.boot_s()
        until_s = now_s + (RESIDENT_SPENDS_S if resident else CRON_SPENDS_S)
        self._queued = None
        most_pages = max(1, round(self._pages_before * RESIDENT_EVERY_S / ROUND_S)) if resident else 1_000
        self._due_s = now_s + RESIDENT_EVERY_S
        over = False
        for _ in range(most_pages):
            over = self._page(bucket, places, going, until_s, did)
            if over or bucket.ambient.boot_s() >= until_s:
                break
        self._flush(bucket, did, everything=over or not resident)
        if over:
            self._quiet_s = 0.0 if self._lively else min(max(2 * self._quiet_s, QUIET_FIRST_S), QUIET_MOST_S)
            self._due_s = now_s + max(self._quiet_s, RESIDENT_EVERY_S)
            self._end_round(bucket, did)
        self._join(bucket, did)
        return +did

    def _page(
        self, bucket: Bucket, places: dict[str, Any], going: Container[JobId], until_s: float, did: Counter[str]
    ) -> bool:
        """The next page, as far as time allows. True: it was the last one of a round."""
        after = _place(places, "after", "")
        if not after or not self._pages:
            self._memory.begin(bucket)
            self._pages, self._whole = 0, not after
        page = bucket.store.list(keys.JOBS, start_after=after)
        self._pages += 1
        unknown: list[tuple[JobId, Row]] = []
        for row in page.rows:
            try:
                j = keys.parse_job(row.key)
            except BadRecord:
                continue  # the sweep of jobs/ says so
            if not self._memory.meet(bucket, j, row.etag, row.last_modified) and self._may_be_over(
                bucket, j, row, going
            ):
                unknown.append((j, row))
        if len(unknown) >= WORTH_A_PAGE:
            queued = self._on_the_queue(bucket)
            unknown = [one for one in unknown if one[0] not in queued]
        for at in range(0, len(unknown), AT_ONCE):
            self._read(bucket, unknown[at : at + AT_ONCE], did)
            if bucket.ambient.boot_s() >= until_s and at + AT_ONCE < len(unknown):
                _leave(places, after=unknown[at + AT_ONCE - 1][1].key)
                return False
        _leave(places, after=page.rows[-1].key if page.more and page.rows else "")
        return not (page.more and page.rows)

    def _on_the_queue(self, bucket: Bucket) -> set[JobId]:
        """For more jobs a request than looks for their ends would be. Of a queue that is very long, the first part."""
        if self._queued is None:
            rows = islice(list_all(bucket.store, keys.QUEUED), QUEUE_ROWS_MOST)
            self._queued = {a.job for a in _attempts(row.key for row in rows)}
        return self._queued

    def _may_be_over(self, bucket: Bucket, j: JobId, row: Row, going: Container[JobId]) -> bool:
        if j in going:
            return False
        due_s, _ = self._going.get(mark_of(j, row.etag), (0.0, 0.0))
        return bucket.ambient.boot_s() >= due_s

    def _read(self, bucket: Bucket, some: Sequence[tuple[JobId, Row]], did: Counter[str]) -> None:
        """Note those of these jobs that are over. One that never had an end is told by two requests."""
        bucket = Bucket(bucket.store, ambient=bucket.ambient, budget_s=bucket.budget_s)  # ends are remembered no longer
        ends = side_by_side(bucket, lambda one: _has_ended(bucket, one[0]), some)
        rest = [one for one, ended in zip(some, ends, strict=True) if not ended]
        finals = bucket.present(*(keys.final(j) for j, _ in rest))
        closed = [one for one, ended in zip(some, ends, strict=True) if ended]
        closed += [one for one, final in zip(rest, finals, strict=True) if final]
        rows = side_by_side(bucket, lambda one: _row(bucket, *one), closed)
        found = {j: row for (j, _), row in zip(closed, rows, strict=True)}
        for j, listed in some:
            row = found.get(j)
            if row is None:
                self._look_later(bucket, mark_of(j, listed.etag))
                continue
            self._going.pop(mark_of(j, listed.etag), None)
            self._pending_since_s = self._pending_since_s if self._pending else bucket.ambient.boot_s()
            where = (j.workspace, day_keys.day_of(row.at))
            self._pending.setdefault(where, []).append(row)
            self._memory.add(where, [row], [])
            did["rows"] += 1
            self._lively = True

    def _look_later(self, bucket: Bucket, mark: int) -> None:
        if len(self._going) >= GOING_REMEMBERED:
            self._going.clear()
        _, waited_s = self._going.get(mark, (0.0, GOING_FIRST_S / 2))
        wait_s = min(2 * waited_s, GOING_MOST_S)
        self._going[mark] = (bucket.ambient.boot_s() + wait_s, wait_s)

    def _flush(self, bucket: Bucket, did: Counter[str], *, everything: bool) -> None:
        waited = bucket.ambient.boot_s() - self._pending_since_s >= PENDING_S
        many = sum(map(len, self._pending.values())) >= PENDING_MOST
        for where in sorted(self._pending):
            rows = self._pending[where]
            if everything or waited or many or len(rows) >= PENDING_WORTH:
                made = days.write(bucket, *where, rows)
                self._memory.add(where, rows, made)
                did["files"] += len(made)
                del self._pending[where]

    def _end_round(self, bucket: Bucket, did: Counter[str]) -> None:
        """Rows of jobs that are listed no more are taken out, so that nothing is left of what was deleted."""
        if self._whole:
            for where in self._memory.unmet():
                self._rewrite(bucket, where, list(self._memory.parts[where]), did)
        self._pages_before, self._pages = self._pages, 0
        self._lively = False

    def _rewrite(self, bucket: Bucket, where: Where, some: list[Part], did: Counter[str]) -> None:
        rows, _ = rows_of(bucket, some)
        alive = [row for row in rows if self._memory.was_met(where, row)]
        if not some or (rows and len(alive) == len(rows)):
            return
        self._memory.replace(where, some, days.join(bucket, some, alive))
        did["taken out"] += len(rows) - len(alive)

    def _join(self, bucket: Bucket, did: Counter[str]) -> None:
        """Small files of one day become one: of one day each time."""
        for where, standing in self._memory.parts.items():
            small = [one for one in standing if one.size_bytes <= SMALL_BYTES][:JOINED_MOST]
            if len(small) >= JOINED_FROM:
                self._memory.replace(where, small, days.join(bucket, small, rows_of(bucket, small)[0]))
                did["joined"] += len(small)
                return


def known_to_go_on(world: World) -> set[JobId]:
    """The jobs that are not over, as far as a tick has seen anyway."""
    going = {look.held.attempt.job for look in world.looks} | {one.job for one in world.open_jobs}
    going |= {one.attempt.job for one in world.later} | {j for j, _ in world.cancels}
    return going | {a.job for a in _attempts(key for key, _ in world.index or ())}


def _attempts(entries: Iterable[str]) -> Iterator[AttemptId]:
    for key in entries:
        with suppress(BadRecord):  # whoever plans says so
            yield keys.attempt_of_entry(key)


def _has_ended(bucket: Bucket, j: JobId) -> bool:
    """Whether the first attempt of its first task has. An end that cannot be read is one."""
    try:
        return bucket.end(AttemptId(j, 0, 1)) is not None
    except BadRecord:
        return True


def _row(bucket: Bucket, j: JobId, listed: Row) -> DayRow | None:
    try:
        job = bucket.job(j)
        found = read_over(bucket, j, job) if job is not None else None
        if found is None:
            return None
        row = DayRow(j, listed.etag, listed.last_modified, told.plain(found))
        row.line()  # what cannot be written is set aside here, and keeps nobody else's row from its file
        return row
    except UNREADABLE:
        return None  # whoever lists it says why


def _place(places: dict[str, Any], name: str, other: T) -> T:
    """Where this pass stopped, as an earlier tick left it."""
    spot = places.get(PLACE)
    found = spot.get(name) if isinstance(spot, dict) else None
    return found if isinstance(found, type(other)) else other


def _leave(places: dict[str, Any], **where: str | float) -> None:
    spot = places.get(PLACE)
    places[PLACE] = {**(spot if isinstance(spot, dict) else {}), **where}
