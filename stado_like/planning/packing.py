"""Members onto machines that are all allowed: on as few as possible, and within the rules about their number.

The largest room first, and the last members where the least is left that suffices: what remains stays in large pieces.
Members that ask for the same thing are counted instead of tried one by one, which is what makes a thousand machines
and a gang of 64 a matter of milliseconds; a unit of several kinds is packed kind by kind, the largest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stado_like.job.terms import Ask
from stado_like.planning.board import Member
from stado_like.planning.fit import Machine, copies, taking


@dataclass(frozen=True, slots=True)
class Room:
    """A machine that may be used, and how many members of each kind it takes alone. Of one kind it may be more than
    there are members."""

    machine: Machine
    counts: tuple[int, ...]
    used: bool = False
    """Tasks of the run are on it."""
    spread: str = ""
    """Its name at the level over which the run is spread."""
    within: str = ""
    """Its name at the level within which the run is kept."""

    @property
    def takes_any(self) -> bool:
        return any(self.counts)

    @property
    def order(self) -> tuple[bool, int, int, int, str]:
        """The least free first."""
        here = self.machine
        return (not self.used, here.free_gpus, here.free_cpu_millis, here.free_memory_bytes, here.worker)


@dataclass(frozen=True, slots=True)
class Rules:
    """How many machines. `used`: how many the run is on already. `spread`: one member for each name."""

    min_nodes: int = 0
    max_nodes: int = 0
    used: int = 0
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """Members that ask for the same."""

    ask: Ask
    members: tuple[Member, ...]


@dataclass(slots=True)
class Packed:
    """Members by machine. `whole`: all of them."""

    where: dict[str, list[Member]] = field(default_factory=dict)
    whole: bool = False

    @property
    def machines(self) -> int:
        return len(self.where)


def kinds_of(members: Sequence[Member]) -> tuple[Kind, ...]:
    """The members by what they ask for, the largest first. An `Ask` holds mappings: it is compared, not hashed."""
    found: list[tuple[Ask, list[Member]]] = []
    for member in members:
        for ask, alike in found:
            if ask is member.ask or ask == member.ask:
                alike.append(member)
                break
        else:
            found.append((member.ask, [member]))
    kinds = [Kind(ask, tuple(alike)) for ask, alike in found]
    return tuple(sorted(kinds, key=lambda kind: (-kind.ask.gpus, -kind.ask.cpu_millis, -kind.ask.memory_bytes)))


def pack(rooms: Sequence[Room], kinds: Sequence[Kind], rules: Rules) -> Packed:
    """As many members as the rules let in."""
    if rules.spread:
        rooms = _one_each(rooms)
    if len(kinds) == 1:
        return _counted(rooms, kinds[0], rules)
    return _tried(rooms, kinds, rules)


def _one_each(rooms: Sequence[Room]) -> list[Room]:
    """Of every name the one machine that is left with the least, for one member."""
    best: dict[str, Room] = {}
    for room in sorted(rooms, key=lambda one: one.order):
        if any(room.counts):
            best.setdefault(room.spread, room)
    return [replace(one, counts=tuple(min(1, n) for n in one.counts)) for one in best.values()]


def _counted(rooms: Sequence[Room], kind: Kind, rules: Rules) -> Packed:
    wanted = left = len(kind.members)
    most = max(0, rules.max_nodes - rules.used) if rules.max_nodes else len(rooms)
    fewest = max(0, rules.min_nodes - rules.used)
    by_room = sorted((one for one in rooms if one.counts[0]), key=lambda one: (-min(one.counts[0], wanted), *one.order))
    if rules.used:
        by_room.sort(key=lambda one: not one.used)
    chosen: list[tuple[Room, int]] = []
    opened = 0
    for position, room in enumerate(by_room):
        if not left:
            break
        if not room.used and opened >= most:
            continue
        takes = min(room.counts[0], left - max(0, fewest - opened - 1)) if not room.used else min(room.counts[0], left)
        if takes == left and not room.used:
            smaller = [one for one in by_room[position:] if one.counts[0] >= left and not one.used]
            room = min(smaller, key=lambda one: (min(one.counts[0], wanted), one.order))
        if takes > 0:
            chosen.append((room, takes))
            left -= takes
            opened += not room.used
    return Packed(_in_order(chosen, kind.members), whole=not left and opened >= fewest)


def _in_order(chosen: Sequence[tuple[Room, int]], members: Sequence[Member]) -> dict[str, list[Member]]:
    """Neighbouring ranks on one machine, neighbouring machines of one rack."""
    where: dict[str, list[Member]] = {}
    first = 0
    for room, takes in sorted(chosen, key=lambda one: (_rack(one[0].machine.labels), one[0].machine.worker)):
        where[room.machine.worker] = list(members[first : first + takes])
        first += takes
    return where


def _rack(labels: Mapping[str, str]) -> str:
    return labels.get("topology.stado.io/rack") or labels.get("topology.astraeus.io/rack") or ""


def _tried(rooms: Sequence[Room], kinds: Sequence[Kind], rules: Rules) -> Packed:
    """Kind by kind, on machines that were opened first and then on others."""
    most = max(0, rules.max_nodes - rules.used) if rules.max_nodes else len(rooms)
    fewest = max(0, rules.min_nodes - rules.used)
    wanted = sum(len(kind.members) for kind in kinds)
    by_room = sorted(rooms, key=lambda one: (not one.used, -max(one.counts), *one.order))
    free = {one.machine.worker: one.machine for one in rooms}
    opened = [one.machine.worker for one in by_room if one.used]
    closed = [one.machine.worker for one in by_room if not one.used]
    packed, placed, new = Packed(), 0, 0
    for kind in kinds:
        waiting = kind.members
        untouched = []
        for number, name in enumerate([*opened, *closed]):
            fresh = number >= len(opened)
            if not waiting or (fresh and new >= most):
                untouched += [name] if fresh else []
                continue
            keeps = max(0, fewest - new - fresh)
            limit = 1 - len(packed.where.get(name, ())) if rules.spread else len(waiting)
            takes = copies(free[name], kind.ask, min(len(waiting), limit, wanted - placed - keeps))
            for member in waiting[:takes]:
                free[name] = taking(free[name], kind.ask)
                packed.where.setdefault(name, []).append(member)
            waiting, placed, new = waiting[takes:], placed + takes, new + (fresh and takes > 0)
            untouched += [name] if fresh and not takes else []
        opened += [name for name in closed if name in packed.where]
        closed = untouched
    packed.whole = placed == wanted and new >= fewest
    return packed
