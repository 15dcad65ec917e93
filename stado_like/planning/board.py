"""What placement decides upon: machines with their room, and units of waiting work. Plain data, made by `bucket/` from
the records, so that a hand-made board is a test and one board gives one plan.

A *unit* is what is placed as a whole: one task, or a gang. All numbers are integers: thousandths of a core, bytes,
whole GPUs (and ten-thousandths of one, where a card is shared). Times are store time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.fit import Machine


@dataclass(frozen=True, slots=True)
class Running:
    """A task that holds room on a machine."""

    attempt: AttemptId
    ask: Ask
    priority: int
    running_at: float = 0.0
    """When it began to run; 0: it does not yet."""
    ends_by: float | None = None
    """When its time limit ends it at the latest; None: nobody knows."""
    protected_until: float = 0.0
    """Its minimum runtime: not preempted before."""
    capped: bool = False
    """Preempted as often as its run allows: not again."""
    gang: bool = False
    """Stopped only with every member of its job."""
    stopping: bool = False
    """A stop is under way: its room comes."""
    saved_at: float = 0.0
    """When its newest checkpoint was complete: what it did before is not lost. 0: none is known."""

    @property
    def job(self) -> JobId:
        return self.attempt.job


@dataclass(frozen=True, slots=True)
class Spot:
    """One machine on the board: what it has free, and who holds the rest. `machine.free_*` already leaves out what was
    promised to placements that nobody has claimed yet."""

    machine: Machine
    running: tuple[Running, ...] = ()
    heard_at: float = 0.0
    """When it last spoke."""
    echoed: str = ""
    """The nonce of the holds that its worker obeys, as its last broadcast says."""


@dataclass(frozen=True, slots=True)
class Member:
    """One task of a unit."""

    attempt: AttemptId
    ask: Ask


@dataclass(frozen=True, slots=True)
class Near:
    """Where a unit's members land relative to each other. Names of levels: node, nvlink_domain, fabric, rack."""

    keep_within: str = ""
    spread: str = ""
    min_nodes: int = 0
    max_nodes: int = 0
    patience_s: int = 0
    interconnect: str = "auto"
    min_gbps: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """Waiting work. `placed_by_tick` False: any worker it fits claims it by itself, and a plan only keeps room for it
    when it is the head."""

    job: JobId
    members: tuple[Member, ...]
    priority: int
    created_ms: int
    placed_by_tick: bool = True
    least: int = 0
    """How many members must start together; 0: all."""
    near: Near = Near()
    time_limit_s: int | None = None
    waiting_since: float = 0.0
    shape: Mapping[str, int] = field(default_factory=dict)
    """A total that the plan shall split, as `demands.to_split` says it: `gpus`, `min_nodes`, `max_nodes`,
    `min_per_machine`, …. Empty: it is split."""
    group: str = ""
    """The worker group that its members belong to, where the job names groups and this is one of them."""
    unsplit: str = ""
    """Why its total could not be split less than a minute ago: until that is over it is not tried again."""
    avoid: frozenset[str] = frozenset()
    """Workers that refused it lately, or did not claim it in time."""

    @property
    def order(self) -> tuple[int, int, str]:
        """Scheduling order: priority, then creation."""
        return (-self.priority, self.created_ms, str(self.job))


@dataclass(frozen=True, slots=True)
class Hold:
    """Room kept on one machine for the unit at the head: others may use it only if they end before `starts_at`, or fit
    beside it. `starts_at` 0: no start is known."""

    job: JobId
    worker: str
    cpu_millis: int
    memory_bytes: int
    gpus: int
    priority: int
    starts_at: float = 0.0
    whole: bool = False
    created_ms: int = 0
    """Of the job: what comes before it in the queue does not mind the hold."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What a workspace may use at once; None: no limit."""

    gpus: int | None = None
    cpu_millis: int | None = None
    memory_bytes: int | None = None
    running_jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Board:
    now: float
    spots: tuple[Spot, ...]
    units: tuple[Unit, ...]
    """In any order; the plan sorts them."""
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    """By workspace; one that is not here has no limits."""
    holds: tuple[Hold, ...] = ()
    holds_nonce: str = ""
    queue_paused: str = ""
