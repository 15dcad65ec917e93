"""What a tick may do, as data: printable, comparable, and a dry run for free. `bucket/apply` carries each out.

An action names what was seen, never how to write it: whoever carries it out looks again where the protocol asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stado_like.job.keys import AttemptId, Entry, JobId, LaterEntry, Order
from stado_like.job.records import Armed, Claim, Observed
from stado_like.job.states import JobState
from stado_like.planning import place_actions
from stado_like.planning.world import Held, Look


@dataclass(frozen=True, slots=True)
class SettleCancel:
    """A verdict or a person's stop (`rank`) whose index still stands: end what is queued, let the rest be stopped."""

    job: JobId
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class MoveDue:
    """A retry whose time has come: its entry moves from later to open."""

    entry: LaterEntry


@dataclass(frozen=True, slots=True)
class DropSpent:
    """An entry of an attempt that is claimed: spent, and in everybody's way."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class SweepEntry:
    """An entry that has lain there for long, and that perhaps no claimer will ever meet: looked at whether it still
    may."""

    key: str
    attempt: AttemptId


@dataclass(frozen=True, slots=True)
class DropOrder:
    """An order for an attempt that nobody holds any more, in the inbox of a worker that may never look again."""

    order: Order


@dataclass(frozen=True, slots=True)
class ReleaseGroup:
    """A worker group whose groups are up, or which had begun: its first ranks are queued."""

    job: JobId
    group: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A job that can never start, or a worker group of it: its verdict. `awaited`: for the sake of what it waits for,
    unless it was released."""

    job: JobId
    state: JobState
    reason: str
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class ReleaseWaiter:
    """A job whose awaited jobs have come to what it asked for: its entries go where workers look. `again`: that was
    decided before, and some of them may be left."""

    job: JobId
    again: bool = False


@dataclass(frozen=True, slots=True)
class EndChild:
    """A job whose parent is over."""

    job: JobId


@dataclass(frozen=True, slots=True)
class EndLate:
    """An attempt that waited too long to start. `standing`: the claim of a tick that died over it."""

    attempt: AttemptId
    key: str
    reason: str
    standing: Claim | None = None


@dataclass(frozen=True, slots=True)
class Remember:
    """What this tick saw Stale, kept for the next one. `armed` and `cleared` are for people."""

    observed: Observed
    armed: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reap:
    """Decide the death of an attempt. `undelivered`: no heartbeat was ever written, so nothing had started."""

    look: Look
    armed: Armed
    undelivered: bool

    @property
    def attempt(self) -> AttemptId:
        return self.look.attempt


@dataclass(frozen=True, slots=True)
class SettleEnded:
    """A claim whose end record exists: what it decided was not carried out to the last step."""

    held: Held

    @property
    def attempt(self) -> AttemptId:
        return self.held.attempt


@dataclass(frozen=True, slots=True)
class MendJob:
    """A row of open/: release missing ranks, queue lost attempts again, write the final, finish a deletion.

    `claimed` and `waiting` are ranks with an attempt that was seen in running/ or in queued/: those need no look.
    `urgent`: it had claims at the last look and has none now, so it may be over.
    """

    job: JobId
    since: float
    claimed: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class SweepJob:
    """A row of jobs/: a one-task job whose submit may have been cut short, a several-task job without its index.
    `ended`: the last end that is listed of its first task; `on_queue`: so is its entry."""

    job: JobId
    since: float
    ended: int = 0
    on_queue: bool = False


@dataclass(frozen=True, slots=True)
class BrakePulled:
    """More than half of the machines with running work, and at least two, look dead at once: none is reaped.

    `until`: when they go unless something moves, store time; 0 when they go now, `released` of them.
    """

    machines: tuple[str, ...]
    of_machines: int
    attempts: tuple[str, ...]
    since: float
    until: float
    released: int = 0


@dataclass(frozen=True, slots=True)
class Deferred:
    """Left for the next tick, because it could not be told, or may not be done yet."""

    what: str
    why: str


Action = (
    SettleCancel
    | MoveDue
    | DropSpent
    | SweepEntry
    | DropOrder
    | Remember
    | Reap
    | SettleEnded
    | ReleaseGroup
    | GiveUp
    | ReleaseWaiter
    | EndChild
    | EndLate
    | MendJob
    | SweepJob
    | BrakePulled
    | Deferred
    | place_actions.Action
)
