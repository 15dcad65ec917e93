"""What is stored about gangs: placements, joins, who waits at the barrier, and the verdict there. `records` has all
others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job.records import Budgets


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One member of a placement: its attempt and the worker that shall run it. `devices`: the only GPUs it may take
    there, where it takes every free one."""

    rank: int
    attempt: str
    worker: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """gangs/…/placement.json: a generation of a gang, decided whole. `attempts` has each rank's first attempt in it, by
    rank, also of those that come later; `members` who starts together. `barrier` False: none waits for another.
    `budgets`: what the gang had spent before; `aborts`: how many generations in a row before this one never started."""

    nonce: str
    attempts: tuple[int, ...]
    members: tuple[Seat, ...] = ()
    barrier: bool = True
    budgets: Budgets = field(default_factory=Budgets)
    aborts: int = 0
    decided_at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """gangs/…/join.<rank>.<n>.json: one member that comes later, or alone. `devices`: as of a `Seat`."""

    nonce: str
    attempt: str
    worker: str
    devices: tuple[str, ...] = ()
    decided_at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """gangs/…/ready.<rank>.<n>: this attempt is set up and waits. `address`, `port`: where the members shall meet, if
    it is this one that leads them."""

    nonce: str
    attempt: str
    worker: str
    address: str = ""
    port: int = 0
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """gangs/…/barrier.json: the one verdict at the barrier. `go`: these `attempts` start, and meet at `address` and
    `port`. Else none of the generation ever starts; `blamed` are workers that the next placement passes over."""

    nonce: str
    go: bool
    attempts: tuple[str, ...] = ()
    address: str = ""
    port: int = 0
    reason: str = ""
    blamed: tuple[str, ...] = ()
    by: str = ""
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)
