"""What can go wrong with one request, and who decides when: a script (exhaustive tests) or a seeded policy (the
simulator)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from tests.sim.world import World

WRITES = ("create", "put", "replace", "delete")


class Kind(StrEnum):
    """`lost answer` of a read is a read that failed. `refused` answers were never carried out; `applied 500` ones
    were."""

    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    LOST = "lost answer"
    CONFLICT = "409"
    OWN_REJECTED = "412 after own success"
    APPLIED_500 = "500 that applied"
    BUSY = "503"
    TIMEOUT = "timeout"
    DELAYED = "delayed request"
    DUPLICATED = "duplicated request"
    STALE_LIST = "stale list"
    EXPIRED = "expired credentials"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class Fault:
    """`delay_s`: how much later a delayed or duplicated request arrives, how old a stale list is, how long a timeout
    took."""

    kind: Kind
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Op:
    """One request as it is sent. `number` counts the operations of its actor, from 0."""

    actor: str
    number: int
    kind: str
    key: str


class Faults(Protocol):
    def choose(self, op: Op) -> Fault | None: ...


class NoFaults:
    def choose(self, op: Op) -> Fault | None:
        return None


@dataclass
class At:
    """One fault at one operation of one actor; afterwards none."""

    actor: str
    number: int
    fault: Fault
    fired: bool = False

    def choose(self, op: Op) -> Fault | None:
        if self.fired or op.actor != self.actor or op.number != self.number:
            return None
        self.fired = True
        return self.fault


@dataclass
class Rates:
    """How often each fault comes, per request that it can strike; how late the late ones are, seconds."""

    shares: Mapping[Kind, float]
    late_s: tuple[float, float] = (1.0, 4 * 3600.0)
    stale_s: tuple[float, float] = (1.0, 30.0)
    timeout_s: tuple[float, float] = (3.0, 10.0)


STRIKES: Mapping[Kind, tuple[str, ...]] = {
    Kind.CRASH_BEFORE: (*WRITES, "get", "head", "list"),
    Kind.CRASH_AFTER: (*WRITES, "get", "head", "list"),
    Kind.LOST: (*WRITES, "get", "head", "list"),
    Kind.CONFLICT: ("create", "replace"),
    Kind.OWN_REJECTED: ("create",),
    Kind.APPLIED_500: WRITES,
    Kind.BUSY: (*WRITES, "get", "head", "list"),
    Kind.TIMEOUT: (*WRITES, "get", "head", "list"),
    Kind.DELAYED: WRITES,
    Kind.DUPLICATED: WRITES,
    Kind.STALE_LIST: ("list",),
    Kind.EXPIRED: (*WRITES, "get", "head", "list"),
    Kind.PARTITION: (*WRITES, "get", "head", "list"),
}


@dataclass
class Storm:
    """Seeded faults at given rates, and spells: an actor cut off, a bucket away, credentials expired, until a time."""

    world: World
    rates: Rates
    calm: bool = False
    spells: dict[tuple[str, Kind], float] = field(default_factory=dict)
    """(an actor, a host, or `*`; kind) -> until when."""
    counted: Counter[str] = field(default_factory=Counter)

    def spell(self, actors: Iterable[str], kind: Kind, seconds: float) -> None:
        for actor in actors:
            self.spells[actor, kind] = self.world.now_s + seconds

    def choose(self, op: Op) -> Fault | None:
        for (actor, kind), until_s in self.spells.items():
            if self.world.now_s < until_s and (actor in ("*", op.actor) or op.actor.startswith(f"{actor}/")):
                return self._fault(kind)
        if self.calm:
            return None
        chance = self.world.random
        for kind, share in self.rates.shares.items():
            if op.kind in STRIKES[kind] and chance.random() < share:
                return self._fault(kind)
        return None

    def _fault(self, kind: Kind) -> Fault:
        self.counted[kind.value] += 1
        chance = self.world.random
        if kind in (Kind.DELAYED, Kind.DUPLICATED):
            low, high = self.rates.late_s
            return Fault(kind, low * (high / low) ** chance.random())
        if kind is Kind.STALE_LIST:
            return Fault(kind, chance.uniform(*self.rates.stale_s))
        if kind in (Kind.TIMEOUT, Kind.PARTITION):
            return Fault(kind, chance.uniform(*self.rates.timeout_s))
        return Fault(kind)
