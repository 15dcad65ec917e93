"""One job as a bucket at rest shows it: its record, its status, and every index row that names it.

There are two ways to come by such a picture. The first reads a few long listings and sorts their rows by job: cheap
for ten thousand jobs, and as true as listings are. The second asks for everything about one job by its keys, in the
order in which an attempt passes (entry, claim, end), so that one which moves while we look is met further on. Rules
run on both; what only the first shows is no finding.

Pictures are thrown away one after the other, with the ends they read: a bucket's own memory of ends would keep them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from stado_like.bucket import entries, generations, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load import Listed
from stado_like.errors import BadRecord, NewerRecord
from stado_like.fsck import blocks as read_blocks
from stado_like.fsck.finding import Finding, found
from stado_like.job import blocks, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Job, Pointer, Verdict
from stado_like.job.states import Decision
from stado_like.job.terms import Terms
from stado_like.planning import lanes
from stado_like.store.protocol import list_all

R = TypeVar("R")


@dataclass(slots=True)
class Traces:
    """What indexes say of one job. `opened_at`: when its row of open/ was written; None: there is none."""

    entries: dict[str, AttemptId] = field(default_factory=dict)
    claims: set[AttemptId] = field(default_factory=set)
    cancels: set[int | None] = field(default_factory=set)
    orders: dict[str, AttemptId] = field(default_factory=dict)
    opened_at: float | None = None
    buried: bool = False
    data: set[str] = field(default_factory=set)
    """Prefixes of logs, outputs, checkpoints and gangs that hold something."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Where one rank stands. `open` None: it is over, or (`unknown`) its newest end could not be read."""

    rank: int
    n: int
    last: End | None
    open: AttemptId | None
    unknown: bool = False

    @property
    def is_over(self) -> bool:
        return self.open is None and not self.unknown


@dataclass(slots=True)
class JobPicture:
    """`is_there`: its key in jobs/ exists; `job` is None then too when its record cannot be read. `ends` holds what was
    read: nothing where `ends_read` is False. `moving`: ranks that went on while we looked."""

    id: JobId
    is_there: bool = False
    job: Job | None = None
    terms: Terms | None = None
    status: Listed = field(default_factory=Listed)
    traces: Traces = field(default_factory=Traces)
    ends: dict[AttemptId, End] = field(default_factory=dict)
    ends_read: bool = False
    verdict: Verdict | None = None
    open_what: str = ""
    now: float = 0.0
    moving: set[int] = field(default_factory=set)
    gang: dict[int, tuple[End, bool | None]] = field(default_factory=dict)
    """By rank, an end that left what follows to all members, as it stands, and whether the task goes on."""
    units: dict[int, End] = field(default_factory=dict)
    """The ends of blocks that were read; what they carry is in `ends`, and in `status` as if listed."""
    carried: set[int] = field(default_factory=set)
    troubles: list[Finding] = field(default_factory=list)
    """Records that could not be read on the way."""
    _ranks: dict[int, Rank] = field(default_factory=dict)
    _claimed: dict[int, int] | None = None
    _queued: set[AttemptId] | None = None

    @property
    def has_status(self) -> bool:
        seen = self.status
        return bool(seen.ends or seen.beats or seen.stops or seen.own or seen.strange or seen.units)

    @property
    def is_final(self) -> bool:
        return "final" in self.status.own

    @property
    def has_verdict(self) -> bool:
        return "verdict" in self.status.own

    @property
    def is_dying(self) -> bool:
        return self.traces.buried

    @property
    def claimed(self) -> dict[int, int]:
        """rank -> the newest attempt of it that has a claim."""
        if self._claimed is None:
            self._claimed = {}
            for a in self.traces.claims:
                self._claimed[a.rank] = max(a.n, self._claimed.get(a.rank, 0))
        return self._claimed

    @property
    def queued(self) -> set[AttemptId]:
        if self._queued is None:
            self._queued = set(self.traces.entries.values())
        return self._queued

    def rank(self, rank: int) -> Rank:
        known = self._ranks.get(rank)
        if known is None:
            known = self._ranks[rank] = self._stands(rank)
        return known

    def _stands(self, rank: int) -> Rank:
        n = max(self.status.ends.get(rank, ()), default=0)
        if rank in self.moving:
            return Rank(rank, n, None, None, unknown=True)
        if n == 0:
            unit = self._open_unit(rank)
            return Rank(rank, 0, None, keys.AttemptId(self.id, rank if unit is None else unit, 1))
        last = self.ends.get(keys.AttemptId(self.id, rank, n))
        if last is None:
            return Rank(rank, n, None, None, unknown=True)
        if rank in self.gang:
            stands, goes_on = self.gang[rank]
            following = keys.AttemptId(self.id, rank, n + 1) if goes_on else None
            return Rank(rank, n, stands, following, unknown=goes_on is None)
        return Rank(rank, n, last, None if last.is_final else keys.AttemptId(self.id, rank, n + 1))

    def _open_unit(self, rank: int) -> int | None:
        """The block that carries a rank and has not ended."""
        unit = blocks.unit_of(self.terms, rank) if self.terms is not None else None
        return unit if unit is not None and not self.status.units.get(unit) else None

    def has_trace(self, rank: int) -> bool:
        """Whether anything shows that the rank was released: an end, a heartbeat, a claim, an entry of attempt 1."""
        unit = self._open_unit(rank)
        if unit is not None:
            return self.has_trace(unit)
        return (
            rank in self.status.ends
            or rank in self.status.beats
            or rank in self.status.units
            or rank in self.status.given_back
            or rank in self.claimed
            or keys.AttemptId(self.id, rank, 1) in self.queued
        )

    def is_released(self, rank: int, terms: Terms) -> bool:
        """Whether it was, or its lane has let it go. The first ranks of a group that depends on others are let go
        together, when those are up: the very first tells for all."""
        if self.has_trace(rank) or lanes.is_first(terms, rank):
            return True
        unit = self._open_unit(rank)
        if unit is not None:
            return self.is_released(unit, terms)
        before = lanes.predecessor(terms, rank)
        if before is not None:
            return self.lets_go(before, terms)
        return self.has_trace(terms.group_of(rank).first)

    def lets_go(self, before: int, terms: Terms) -> bool:
        """Whether this rank has released the one that follows it in its lane."""
        if terms.release_by_end:
            return before in self.status.ends and self.rank(before).is_over
        status = self.status
        return before in status.ends or before in status.beats or before in status.units or before in self.claimed


# ---- reading


def read(bucket: Bucket, p: JobPicture, *, every_end: bool) -> JobPicture:
    """Read what the rules need: the job, its ends (those of a job with a final only when asked), an early verdict.
    Raises `StoreUnavailable`; a record that cannot be read is one of `troubles`."""
    p.troubles.clear()
    p.ends.clear()
    p.gang.clear()
    p.units.clear()
    p._ranks.clear()
    if p.is_there:
        _read_job(bucket, p)
    terms = p.terms
    p.ends_read = terms is not None and not p.is_dying and (every_end or not (terms.several and p.is_final))
    if terms is not None and terms.block:
        wanted = p.ends_read
        read_blocks.set_aside(p, terms, lambda a: _end_at(bucket, p, a) if wanted else None)
    if p.ends_read:
        for rank, numbers in p.status.ends.items():
            for n in numbers:
                if keys.AttemptId(p.id, rank, n) not in p.ends:
                    _read_end(bucket, p, keys.AttemptId(p.id, rank, n))
        if terms is not None and terms.gang:
            _read_gang(bucket, p, terms)
    if terms is not None and p.has_verdict and not (terms.several and p.is_final):
        p.verdict = _optional(bucket, Verdict, keys.verdict(p.id), p)
    if p.traces.opened_at is not None and not p.traces.buried:
        pointer = _optional(bucket, Pointer, keys.open_index(p.id), p)
        p.open_what = pointer.what if pointer is not None else ""
    p.now = bucket.now()
    return p


def _read_job(bucket: Bucket, p: JobPicture) -> None:
    key = keys.job(p.id)
    try:
        p.job = bucket.job(p.id)
        p.is_there = p.job is not None
        p.terms = bucket.terms(p.job) if p.job is not None else None
    except BadRecord as bad:
        p.troubles.append(found("job-newer" if isinstance(bad, NewerRecord) else "job-unreadable", key, bad.message))
    except (KeyError, TypeError, AttributeError) as wrong:
        p.troubles.append(found("job-unreadable", key, f"{key} is no specification: {wrong!r}"))


def _read_end(bucket: Bucket, p: JobPicture, a: AttemptId) -> None:
    end = _end_at(bucket, p, a)
    if end is not None:
        p.ends[a] = end


def _end_at(bucket: Bucket, p: JobPicture, a: AttemptId) -> End | None:
    key = keys.end(a)
    try:
        end = bucket.read(End, key)
    except BadRecord as bad:
        p.troubles.append(found("end-newer" if isinstance(bad, NewerRecord) else "end-unreadable", key, bad.message))
        return None
    return end.record if end is not None else None


def _read_gang(bucket: Bucket, p: JobPicture, terms: Terms) -> None:
    """What stands where all members decide. Of records that cannot be read an audit tells."""
    lasts = {rank: keys.AttemptId(p.id, rank, max(numbers)) for rank, numbers in p.status.ends.items() if numbers}
    open_ends = {rank: a for rank, a in lasts.items() if a in p.ends and p.ends[a].decision is Decision.GANG}
    if not open_ends:
        return
    try:
        standing = generations.look_at(bucket, p.id, terms)
    except BadRecord:
        p.gang.update({rank: (p.ends[a], None) for rank, a in open_ends.items()})
        return
    for rank, a in open_ends.items():
        p.gang[rank] = generations.as_it_stands(a, p.ends[a], terms, standing)


def _optional(bucket: Bucket, kind: type[R], key: str, p: JobPicture) -> R | None:
    try:
        seen = bucket.read(kind, key)
    except BadRecord as bad:
        code = "record-newer" if isinstance(bad, NewerRecord) else "record-unreadable"
        p.troubles.append(found(code, key, bad.message))
        return None
    return seen.record if seen is not None else None


def fresh(bucket: Bucket, j: JobId, known: Traces, *, every_end: bool) -> JobPicture:
    """The picture of one job, asked by its keys now. `known`: index rows that were seen, which are asked for again.

    Raises `StoreUnavailable`.
    """
    there, buried = bucket.present(keys.job(j), keys.tombstone(j))
    opened = bucket.store.head(keys.open_index(j))
    before = read(
        bucket,
        JobPicture(j, is_there=there, status=_status(bucket, j)),
        every_end=every_end,
    )
    before.traces.claims = {*known.claims, *_claims(bucket, j)}
    possible = sorted({*known.entries, *_entry_keys(before)})
    seen = [key for key, is_there in zip(possible, bucket.present(*possible), strict=True) if is_there]
    orders = sorted(known.orders)
    traces = Traces(
        entries={key: keys.attempt_of_entry(key) for key in seen},
        claims=set(_claims(bucket, j)),
        cancels=set(_cancels(bucket, j)),
        orders={
            key: known.orders[key] for key, is_there in zip(orders, bucket.present(*orders), strict=True) if is_there
        },
        opened_at=opened.last_modified if opened is not None else None,
        buried=buried,
        data={
            prefix
            for prefix in keys.data_of(j)
            if (buried or not there or (every_end and prefix in known.data)) and bucket.store.list(prefix, limit=1).rows
        },
    )
    after = JobPicture(j, is_there=there, status=_status(bucket, j), traces=traces)
    read(bucket, after, every_end=every_end)
    after.moving = {
        rank
        for rank in {*before.status.ends, *after.status.ends}
        if before.status.ends.get(rank, set()) != after.status.ends.get(rank, set())
    }
    return after


def _status(bucket: Bucket, j: JobId) -> Listed:
    """With the rows of blocks among those of ranks: `read` sorts them out, and minds those that cannot be read."""
    return load.listed_of(j, list_all(bucket.store, keys.status_of(j)))


def _entry_keys(p: JobPicture) -> Iterator[str]:
    """Where entries of the open attempts lie, if they lie where they should."""
    if p.job is None or p.terms is None or p.is_final:
        return
    for rank in range(p.terms.tasks):
        a = p.rank(rank).open
        if a is not None and (lanes.is_head(p.terms, rank) or p.is_released(rank, p.terms)):
            yield from entry_names(p.job, p.terms, a, p.rank(rank).last)


def entry_names(job: Job, terms: Terms, a: AttemptId, before: End | None) -> tuple[str, ...]:
    """Every key under which an entry of this attempt may lie, in whichever index its job has its entries."""
    ask = terms.for_rank(a.rank).ask
    both = (keys.entry(index, a, terms.priority, job.created_ms, ask) for index in (keys.QUEUED_OPEN, keys.QUEUED_HELD))
    return tuple(dict.fromkeys((*entries.all_keys(job, terms, a, before), *both)))


def _claims(bucket: Bucket, j: JobId) -> Iterator[AttemptId]:
    for row in list_all(bucket.store, keys.running_of(j)):
        try:
            yield keys.parse_running(row.key)
        except BadRecord:
            continue  # said by the rule of foreign keys, which sees the whole room


def _cancels(bucket: Bucket, j: JobId) -> Iterator[int | None]:
    for row in list_all(bucket.store, f"{keys.CANCELS}{j}."):
        try:
            job, rank = keys.parse_cancel_index(row.key)
        except BadRecord:
            continue  # said by the rule of foreign keys, which sees the whole room
        if job == j:
            yield rank
