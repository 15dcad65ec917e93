"""What the bucket says of a job's tasks, gathered with care about what a listing proves.

A row that is there proves that the object was written (ends are never deleted but with their job). A row that is
not there proves nothing: so the newest end of a rank is looked for once more by its key, and whether a rank was
ever released is asked by HEAD, in the order entry, claim, end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from stado_like.bucket import generations
from stado_like.bucket import lanes as releasing
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.generations import Standing
from stado_like.errors import BadRecord
from stado_like.job import blocks, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Job
from stado_like.job.states import Decision
from stado_like.job.terms import Terms
from stado_like.planning import lanes
from stado_like.store.protocol import Row, list_all


@dataclass(slots=True)
class Listed:
    """The rows under a job's status: which ends, heartbeats and stops are known to exist."""

    ends: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    beats: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    stops: set[int] = field(default_factory=set)
    own: set[str] = field(default_factory=set)
    units: dict[int, bool] = field(default_factory=dict)
    """Blocks of which a heartbeat or an end is listed; True: the end. What they carry is in `ends`, as if listed."""
    given_back: set[int] = field(default_factory=set)
    strange: list[str] = field(default_factory=list)
    standing: tuple[Standing, Terms] | None = None
    """Of a gang, with its job's terms, once somebody asked."""

    @property
    def goes_on(self) -> bool:
        """Whether a rank has a heartbeat of an attempt of which no end is listed."""
        return any(max(ns) > max(self.ends.get(rank, {0}), default=0) for rank, ns in self.beats.items() if ns)


@dataclass(frozen=True, slots=True)
class TaskNow:
    """One rank: its last end, if any, and the attempt that is open (None: the task is over). `released` False: it
    never was. `undecided`: it is neither over nor open, for its gang's other members decide about it too."""

    rank: int
    last: End | None
    last_n: int
    open: AttemptId | None
    released: bool = True
    undecided: bool = False

    @property
    def is_over(self) -> bool:
        return self.open is None and not self.undecided


def list_status(bucket: Bucket, j: JobId, prefix: str = "") -> Listed:
    """`prefix`: only what lies below it, one task's status say. Raises `StoreUnavailable`, and `BadRecord` for a
    block's end that cannot be read."""
    listed = listed_of(j, list_all(bucket.store, prefix or keys.status_of(j)))
    if max((*listed.ends, *listed.beats, *listed.stops), default=0) > 0:
        terms = bucket.block_terms(j)
        if terms is not None:
            open_blocks(bucket, j, terms, listed)
    return listed


def open_blocks(bucket: Bucket, j: JobId, terms: Terms, listed: Listed) -> None:
    """Put what the ends of blocks say among what is listed, and the blocks themselves aside."""
    listed.stops -= set(blocks.units(terms))  # those only mark that some of their ranks are stopped
    for unit in [rank for rank in listed.beats if blocks.is_unit(terms, rank)]:
        del listed.beats[unit]
        listed.units[unit] = False
    for unit in [rank for rank in listed.ends if blocks.is_unit(terms, rank)]:
        del listed.ends[unit]
        end = bucket.end(AttemptId(j, unit, 1))
        listed.units[unit] = end is not None
        if end is not None:
            listed.given_back.update(end.given_back)
            for rank in blocks.ranks_of(terms, unit):
                if blocks.carries(end, rank):
                    listed.ends[rank].add(1)


def listed_of(j: JobId, rows: Iterable[Row]) -> Listed:
    """Rows under a job's status, sorted by what they are."""
    listed = Listed()
    for row in rows:
        try:
            seen = keys.parse_status(j, row.key)
        except BadRecord:
            listed.strange.append(row.key)
            continue
        if seen.kind == "end":
            listed.ends[seen.rank].add(seen.n)
        elif seen.kind == "heartbeat":
            listed.beats[seen.rank].add(seen.n)
        elif seen.kind == "stop":
            listed.stops.add(seen.rank)
        else:
            listed.own.add(seen.kind)
    return listed


def one_now(bucket: Bucket, j: JobId, job: Job, terms: Terms, rank: int, listed: Listed) -> TaskNow:
    """Where one rank stands, by itself or in its block."""
    unit = blocks.unit_of(terms, rank)
    if unit is None or bucket.end(AttemptId(j, unit, 1)) is not None:
        return task_now(bucket, j, rank, listed)
    released = was_released(bucket, j, job, terms, unit, listed)
    return TaskNow(rank, None, 0, AttemptId(j, unit, 1) if released else None, released)


def newest_traced(j: JobId, rank: int, listed: Listed) -> AttemptId:
    """The newest attempt of a rank that has a heartbeat or an end; the first one where there is none."""
    return keys.AttemptId(j, rank, max([1, *listed.ends.get(rank, ()), *listed.beats.get(rank, ())]))


def task_now(bucket: Bucket, j: JobId, rank: int, listed: Listed) -> TaskNow:
    """Where a rank stands: follows its ends from the newest listed one. Raises `StoreUnavailable`, `BadRecord`."""
    n = max(listed.ends.get(rank, {0}), default=0)
    last: End | None = None
    if n:
        last = bucket.end(keys.AttemptId(j, rank, n))
    while last is None or not last.is_final:
        following = bucket.end(keys.AttemptId(j, rank, n + 1))
        if following is None:
            if last is not None and last.decision is Decision.GANG:
                return _of_gang(bucket, keys.AttemptId(j, rank, n), last, listed)
            return TaskNow(rank, last, n, keys.AttemptId(j, rank, n + 1))
        last, n = following, n + 1
    return TaskNow(rank, last, n, None)


def _of_gang(bucket: Bucket, a: AttemptId, last: End, listed: Listed) -> TaskNow:
    """A rank whose last end left what follows to all members of its gang."""
    if listed.standing is None:
        job = bucket.job(a.job)
        if job is None:
            return TaskNow(a.rank, last, a.n, None)  # deleted just now: then it was over
        terms = bucket.terms(job)
        listed.standing = (generations.look_at(bucket, a.job, terms), terms)
    standing, terms = listed.standing
    end, goes_on = generations.as_it_stands(a, last, terms, standing)
    return TaskNow(a.rank, end, a.n, a.next if goes_on else None, undecided=goes_on is None)


def tasks_now(bucket: Bucket, j: JobId, job: Job, terms: Terms, listed: Listed) -> list[TaskNow]:
    """Every rank of a job. Along each lane, the first rank that was not released decides for those behind it."""
    if terms.block:
        return _in_blocks(bucket, j, job, terms, listed)
    found: dict[int, TaskNow] = {}
    for group in terms.groups:
        for first in lanes.head(terms, group):
            going = True
            for rank in lanes.lane(terms, first):
                going = going and was_released(bucket, j, job, terms, rank, listed)
                found[rank] = task_now(bucket, j, rank, listed) if going else TaskNow(rank, None, 0, None, False)
    return [found[rank] for rank in range(terms.tasks)]


def _in_blocks(bucket: Bucket, j: JobId, job: Job, terms: Terms, listed: Listed) -> list[TaskNow]:
    """Every rank of a job in blocks: as its block's end says; where that has none, what is open is the block."""
    found: list[TaskNow] = []
    released: set[int] = set()
    for unit in blocks.units(terms):
        above = blocks.parent(terms, unit)
        going = (above is None or above in released) and was_released(bucket, j, job, terms, unit, listed)
        if going:
            released.add(unit)
        a = keys.AttemptId(j, unit, 1)
        ended = going and bucket.end(a) is not None
        for rank in blocks.ranks_of(terms, unit):
            if ended or rank in listed.ends:
                found.append(task_now(bucket, j, rank, listed))
            else:
                found.append(TaskNow(rank, None, 0, a if going else None, going))
    return found


def was_released(bucket: Bucket, j: JobId, job: Job, terms: Terms, rank: int, listed: Listed) -> bool:
    """Whether a rank was ever released. Those of submit count as released: their entries are written, or will be."""
    if rank in listed.ends or rank in listed.beats or lanes.is_first(terms, rank):
        return True
    unit = blocks.unit_of(terms, rank)
    if unit is not None:
        end = bucket.end(keys.AttemptId(j, unit, 1))
        return end is not None and (rank in end.given_back or blocks.carries(end, rank))
    if rank in listed.units:
        return True
    return any(releasing.seen(bucket, job, terms, keys.AttemptId(j, rank, 1)))
