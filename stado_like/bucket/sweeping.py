"""The slow sweep: a page of all jobs and a page of the queue a tick, and which of them need a look of their own.

Whatever a transition leaves unfinished stands in an index (`running/`, `open/`, `cancels/`, `queued/later`), and ticks
follow those. The sweep is for what stands in none: a submit that died before its first entry, a verdict whose index was
never written, an entry that came after its job was over. Looking at every job for that would cost ten requests each,
for ever, so most are passed over for what listings and earlier ticks tell:

    over                a tick saw its last end, and nothing of it has changed since (a mark, with the time of its row)
    watched, claimed    it stands in `open/`, or somebody holds it
    on the queue        it is known to have one task, and the entry of its open attempt was seen there, now or by an
                        earlier tick: from then on every step of it leaves a trace; and neither a verdict, nor a stop,
                        nor a tombstone is listed

A listing shows who is there, never who is not: what it does not show is found a round later. And marks last a week, so
every job is asked about by its own keys once in a while, whatever listings said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_world import Reading
from stado_like.bucket.tick_cache import landed, looked_at, over
from stado_like.bucket.tick_memory import Memory
from stado_like.errors import BadRecord, StoreError
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.planning.world import LyingEntry, SweptJob, World
from stado_like.store.protocol import Row

SWEPT_A_TICK = 1000
ENTRIES_A_TICK = 1000
LISTS_A_SWEEP = 4
"""So many pages of `status/` at most tell what stands of a page of jobs; the rest of it is the next tick's."""
LYING_S = 600.0
PLACE_LIES_S = 180.0
"""An order to start holds for two minutes; then it is no more than in the way."""
WAITING_S = 20.0


def with_sweep(
    bucket: Bucket, memory: Memory, world: World, *, young_s: float = 0.0, slow_every_s: float = 0.0
) -> World:
    """The world with the pages that it is this tick's turn to look through. Raises nothing for a failed read.

    `young_s`: rows of jobs/ younger than this are left to their submitter. `slow_every_s`: how often a page is worth
    its listings.
    """
    now_s = bucket.ambient.boot_s()
    if memory.slow_at is not None and now_s - memory.slow_at < slow_every_s:
        return world
    memory.slow_at = now_s
    sweep = _Sweep(bucket, memory, world)
    entries = sweep.entries()
    orders = sweep.orders()
    lying = [one for one, since in entries if world.now - since >= LYING_S]
    known = memory.cache.marks.among({one: looked_at(one.key, world.now) for one in lying})
    return replace(
        world,
        queued=sweep.spent(entries),
        lying=tuple(one for one in lying if one not in known),
        waiting=sweep.in_turn([one for one, since in entries if world.now - since >= WAITING_S]),
        orders=tuple(one for one, since in orders if one.kind == "stop" or world.now - since > PLACE_LIES_S),
        swept=sweep.jobs(young_s),
        unread={**world.unread, **sweep.reading.unread},
        set_aside=(*world.set_aside, *sweep.reading.set_aside),
    )


class _Sweep:
    def __init__(self, bucket: Bucket, memory: Memory, world: World) -> None:
        self.bucket = bucket
        self.memory = memory
        self.world = world
        self.marks = memory.cache.marks
        self.reading = Reading(bucket, memory)
        self.reading.cursors()
        self.seen = set(memory.queue.seen)

    # ---- the queue

    def entries(self) -> list[tuple[LyingEntry, float]]:
        """A page of all indexes. What is seen here has landed."""
        found = list(self.reading.page("entries", keys.QUEUED, ENTRIES_A_TICK, _entry))
        now = self.world.now
        attempts = {one.attempt: landed(one.attempt, now) for one, _ in found}
        known = self.marks.among(attempts)
        self.marks.mark(said for a, said in attempts.items() if a not in known)
        self.seen.update(attempts)
        return found

    def spent(self, entries: Sequence[tuple[LyingEntry, float]]) -> tuple[keys.Entry, ...]:
        claimed = {look.attempt for look in self.world.looks}
        return tuple(
            keys.parse_entry(one.key)
            for one, _ in entries
            if one.attempt in claimed and not one.key.startswith(keys.QUEUED_LATER)
        )

    def in_turn(self, entries: list[LyingEntry]) -> tuple[LyingEntry, ...]:
        """Whoever notes why they wait takes the first few: each time others."""
        places = self.memory.places
        at = places.get("notes", 0)
        at = at % len(entries) if entries and isinstance(at, int) else 0
        places["notes"] = at + NOTED_APART
        return (*entries[at:], *entries[:at])

    def orders(self) -> tuple[tuple[keys.Order, float], ...]:
        rows = self.memory.queue.inbox
        if rows is None:
            rows = [row for row, _ in self.reading.rows("orders", keys.INBOX)]
        return self.reading.parse(rows, lambda row: (keys.parse_order(row.key), row.last_modified))

    # ---- jobs

    def jobs(self, young_s: float) -> tuple[SweptJob, ...]:
        world, before = self.world, self.memory.places.get("jobs", "")
        page = self.reading.page(
            "jobs", keys.JOBS, SWEPT_A_TICK, lambda row: SweptJob(keys.parse_job(row.key), row.last_modified)
        )
        elsewhere = {look.attempt.job for look in world.looks} | {one.job for one in world.open_jobs}
        asked = [one for one in page if one.job not in elsewhere and world.now - one.since >= young_s]
        done = self.marks.among({one: over(one.job, one.since) for one in asked})
        asked = sorted((one for one in asked if one not in done), key=lambda one: keys.status_of(one.job))
        if not asked:
            return ()
        try:
            statuses, told = self._beside([one.job for one in asked], keys.STATUS, keys.status_of, _folder)
            buried, sure = self._beside([one.job for one in asked[:told]], keys.DELETED, keys.tombstone, str)
        except StoreError as failed:
            self.reading.unread["jobs"] = failed.message
            self.memory.places["jobs"] = before
            return ()
        if sure < len(asked):
            self.memory.places["jobs"] = keys.job(asked[sure - 1].job)
        return tuple(self._needing_a_look(asked[:sure], statuses, buried))

    def _needing_a_look(
        self, asked: list[SweptJob], statuses: Mapping[JobId, list[str]], buried: Mapping[JobId, list[str]]
    ) -> list[SweptJob]:
        open_now: dict[SweptJob, AttemptId] = {}
        needing: list[SweptJob] = []
        for one in asked:
            ended = _last_end(one.job, statuses.get(one.job, ()))
            if one.job in buried or ended is None:
                needing.append(one)
            else:
                open_now[replace(one, ended=ended)] = AttemptId(one.job, 0, ended + 1)
        unseen = {one: landed(a, self.world.now) for one, a in open_now.items() if a not in self.seen}
        there = self.marks.among(unseen)
        for one in open_now:
            known = self.memory.jobs.seen(one.job)
            if one in unseen and one not in there:
                needing.append(one)
            elif known is None or known.terms.watched:
                needing.append(replace(one, on_queue=known is None))
        return needing

    def _beside(
        self, wanted: list[JobId], prefix: str, begins: Callable[[JobId], str], place_of: Callable[[str], str]
    ) -> tuple[dict[JobId, list[str]], int]:
        """The keys under `prefix` that are about these jobs, in as few pages as can be, and for how many jobs that is
        the whole answer. Raises `StoreError`."""
        places = {begins(j): j for j in wanted}
        found: defaultdict[JobId, list[str]] = defaultdict(list)
        told = 0
        for _ in range(LISTS_A_SWEEP):
            first = begins(wanted[told])
            page = self.bucket.store.list(prefix, start_after=first[:-1])
            for row in page.rows:
                j = places.get(place_of(row.key))
                if j is not None:
                    found[j].append(row.key)
            last = page.rows[-1].key if page.more and page.rows else ""
            before = told
            while told < len(wanted) and (not last or f"{begins(wanted[told])}~" < last):
                told += 1
            if told == before:
                told += 1  # it alone fills a page: it is looked at by itself
            if told == len(wanted):
                break
        return found, told


NOTED_APART = 10


def _folder(key: str) -> str:
    return key[: key.find("/", key.find("/", len(keys.STATUS)) + 1) + 1]


def _last_end(j: JobId, rows: Sequence[str]) -> int | None:
    """The number of the last end that is listed of a one-task job that goes on, 0 where it has none. None: there is
    more to be seen to, or other tasks."""
    ended = 0
    for key in rows:
        try:
            seen = keys.parse_status(j, key)
        except BadRecord:
            return None
        if seen.kind == "end" and seen.rank == 0:
            ended = max(ended, seen.n)
        elif seen.kind != "waiting" and not (seen.kind == "heartbeat" and seen.rank == 0):
            return None
    return ended


def _entry(row: Row) -> tuple[LyingEntry, float]:
    return LyingEntry(row.key, keys.attempt_of_entry(row.key)), row.last_modified
