"""What a placement decides, as data: who goes where, which room is kept, who is stopped, and why the rest waits.

It stands apart from `placement`, so that whoever carries a plan out, shows it or compares it needs not its reasoning.
All of it is in an order that depends only on what it says: equal boards give equal values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.job.ids import AttemptId, JobId
from stado_like.planning.board import Hold


@dataclass(frozen=True, slots=True)
class PlaceUnit:
    """Tasks of one job that start together, each with its worker. `devices`: of those that take every free GPU, which
    the plan counted for them."""

    job: JobId
    where: Mapping[AttemptId, str]
    devices: Mapping[AttemptId, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evict:
    """A running task that is stopped for more urgent work, of which `head` is the first task. `reason` is what its own
    workspace may read."""

    attempt: AttemptId
    worker: str
    head: AttemptId
    reason: str

    @property
    def for_job(self) -> JobId:
        return self.head.job


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why the first task of a job that waits does so. `headline`: it is the head, and room is kept for it. `nodes`:
    what each machine says against it, where none does; a machine without reasons would."""

    reason: str
    headline: bool = False
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shaped:
    """How a job's total, or that of one of its groups, is split into tasks from now on."""

    job: JobId
    tasks: int
    gpus_each: int
    why: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Unsplit:
    """A total for which no split was found on the machines as they are, and why."""

    job: JobId
    group: str
    why: str


@dataclass(frozen=True, slots=True)
class Placing:
    """`placed` are orders. `taken` is work that workers claim by themselves, and where the plan keeps its room until
    they did. `quota` says, by job, what of its workspace's quota a job waits for: the text of a history's entry."""

    placed: tuple[PlaceUnit, ...] = ()
    holds: tuple[Hold, ...] = ()
    evictions: tuple[Evict, ...] = ()
    waiting: Mapping[JobId, Waiting] = field(default_factory=dict)
    shapes: tuple[Shaped, ...] = ()
    unsplit: tuple[Unsplit, ...] = ()
    taken: tuple[PlaceUnit, ...] = ()
    quota: Mapping[JobId, str] = field(default_factory=dict)
