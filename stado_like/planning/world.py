"""A frozen view of the bucket, as a tick read it: what is known, with the store's own times, and what could not be
read.

A view is never of one instant: each answer has its own `now`, and an age compares two times of one answer. "Could not
be read" is a third answer beside "there" and "not there": it is kept as a sentence (`Look.unknown`, `World.unread`), so
that the plan can defer instead of guessing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.job.keys import AttemptId, Entry, JobId, LaterEntry, Order
from stado_like.job.records import Capacity, Claim, Heartbeat, Observed
from stado_like.planning.awaited import Waiter
from stado_like.planning.family import Child
from stado_like.planning.groups import Gathering
from stado_like.planning.overdue import Late
from stado_like.planning.queue import Queue

STALE_GRACE_S = 15.0
BROADCAST_GRACE_S = 15.0


@dataclass(frozen=True, slots=True)
class Held:
    """A row of running/ with its body: a claim that stood when it was listed. `last_modified` and `now` are of the
    listing."""

    attempt: AttemptId
    claim: Claim
    etag: str
    last_modified: float
    now: float


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat object. `record` is None when its body could not be understood: it was written all the same, and that
    is the proof."""

    etag: str
    last_modified: float
    now: float
    record: Heartbeat | None


@dataclass(frozen=True, slots=True)
class Blob:
    """The newest object below an attempt's own checkpoint prefix."""

    last_modified: float
    now: float


@dataclass(frozen=True, slots=True)
class Look:
    """One claim and what a tick saw of its life.

    `vouched`: its worker's word stands, nothing else was read. `unknown`: why it could not be looked at, else empty.
    `ended_at`: when its end record was written, 0 when there is none. `beat` None: no heartbeat was ever written, the
    claim counts as one. `blob` is looked for only when the heartbeat is late. `read_at`: the tick's own clock that
    never jumps, before the first of these reads.
    """

    held: Held
    ttl_s: float = 60.0
    vouched: bool = False
    unknown: str = ""
    ended_at: float = 0.0
    beat: Beat | None = None
    blob: Blob | None = None
    read_at: float = 0.0

    @property
    def attempt(self) -> AttemptId:
        return self.held.attempt

    @property
    def machine(self) -> str:
        return self.held.claim.worker

    @property
    def now(self) -> float:
        """Store time in the answer that brought the heartbeat, or the claim that stands for it."""
        return self.beat.now if self.beat else self.held.now

    @property
    def signature(self) -> tuple[str, float]:
        """What must not change while an attempt is armed: the etag and the time of its heartbeat, or of its claim."""
        return (self.beat.etag, self.beat.last_modified) if self.beat else (self.held.etag, self.held.last_modified)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """What a worker last said of itself."""

    worker: str
    capacity: Capacity
    last_modified: float
    now: float


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A row of open/: a job that ticks watch until it is over, or a deletion under way. `since`: when the index was
    written; `looked_at`: when it was last looked after, by a clock of ours that never jumps, 0: nobody knows;
    `had_claims`: whether any of it was held then."""

    job: JobId
    since: float
    looked_at: float = 0.0
    had_claims: bool = False


@dataclass(frozen=True, slots=True)
class SweptJob:
    """A row of the page of jobs/ that this tick looks through, of which listings do not tell enough. `ended`: the last
    end that they show of its first task; `on_queue`: they show its entry too, and only what kind of job it is they do
    not."""

    job: JobId
    since: float
    ended: int = 0
    on_queue: bool = False


@dataclass(frozen=True, slots=True)
class LyingEntry:
    """A row of queued/ that was written long ago."""

    key: str
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class SetAside:
    """A record that a tick could not use, and why. The rest goes on."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class World:
    """Everything a plan is made of.

    `looks` has one row per claim. `gatherings` has the open jobs with groups that wait for others, `waiters` those that
    wait for other jobs, `children` those that have a parent; `late` the attempts that waited too long to start.
    Of a page of all indexes of the queue `queued` are the entries of what is claimed, `waiting` those that have lain
    there for longer than a tick, `lying` for ten minutes and no tick has looked yet;
    `orders` are the stop orders in all inboxes, and the orders to start that hold no more.
    `unread` maps what could not be listed (running, capacity, later,
    cancels, open, groups, after, children, overdue, queued, entries, orders, jobs, observed) to why. `armed_here_s`
    says for how long *this* process has seen an attempt armed, by a clock that never jumps; attempts
    that another process armed are not in it.
    """

    now: float
    looks: tuple[Look, ...] = ()
    broadcasts: Mapping[str, Broadcast] = field(default_factory=dict)
    later: tuple[LaterEntry, ...] = ()
    cancels: tuple[tuple[JobId, int | None], ...] = ()
    open_jobs: tuple[OpenJob, ...] = ()
    young: int = 0
    """How many more there are that this tick leaves to their submitters."""
    swept: tuple[SweptJob, ...] = ()
    gatherings: tuple[Gathering, ...] = ()
    waiters: tuple[Waiter, ...] = ()
    children: tuple[Child, ...] = ()
    late: tuple[Late, ...] = ()
    queued: tuple[Entry, ...] = ()
    lying: tuple[LyingEntry, ...] = ()
    waiting: tuple[LyingEntry, ...] = ()
    orders: tuple[Order, ...] = ()
    observed: Observed = field(default_factory=Observed)
    armed_here_s: Mapping[str, float] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    set_aside: tuple[SetAside, ...] = ()
    index: tuple[tuple[str, float], ...] | None = None
    """Every key of queued/ and when it was written, where it was listed whole."""
    on_queue: Mapping[JobId, Mapping[int, int]] = field(default_factory=dict)
    """Of the jobs in open/: the ranks whose attempts were seen in queued/open and queued/held."""
    queue: Queue | None = None
    """What waits, for a placement. None: it could not be told (`unread["place"]`), or nobody asked."""
