"""Where the members of a unit go: the tightest network that has room for them, and on it the fewest machines.

Rules are never broken: what they exclude waits and says why. A preference (`patience`) only delays: a unit that could
start on a looser network waits so long for a tighter one that would hold it if other work ended.

A pure function of a unit, the machines and the time, in which the order of the machines does not count: the same board
gives the same answer to whoever asks, now and when it is explained. It reads every machine once for each kind of
member, and sorts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.ids import AttemptId, JobId
from stado_like.planning.board import Spot, Unit
from stado_like.planning.counts import Counts, sorts_of
from stado_like.planning.fit import Kept, Machine
from stado_like.planning.leaving import leaving
from stado_like.planning.networks import NODE, Network, allowed, name_at, name_on
from stado_like.planning.packing import Kind, Packed, Room, Rules, kinds_of, pack
from stado_like.planning.unassigned import Outside, why_outside

NOBODY: Final[Mapping[str, Kept]] = MappingProxyType({})
COUNTED: Final = 64
Preference = tuple[int, int, int, Network, str]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Every member (or, where fewer may start together, as many as there is room for) with its worker, and what they
    share."""

    where: Mapping[AttemptId, str]
    network: Network


@dataclass(frozen=True)
class Unassigned:
    """Why not. `could_start_looser`: where it could start now, if it waits for a tighter network only. `nodes` is made
    when it is looked at: what each machine says against the members that found no place."""

    reason: str
    could_start_looser: Assigned | None = None
    explain: Callable[[], Mapping[str, tuple[str, ...]]] = field(default=dict, compare=False, repr=False)

    @cached_property
    def nodes(self) -> Mapping[str, tuple[str, ...]]:
        return self.explain()


class Everyone:
    """All machines that many questions are about: what of them never changes. `emptied`: as if nothing ran."""

    def __init__(self, machines: Sequence[Machine] = (), emptied: Sequence[Spot] = ()) -> None:
        self._machines, self.emptied = machines, emptied
        self._names: dict[tuple[int, int], Mapping[str, str]] = {}
        self._on: dict[tuple[int, int], Mapping[str, Sequence[int]]] = {}
        self.sorts = sorts_of(machines)

    def __bool__(self) -> bool:
        return bool(self._machines)

    def named(self, rank: int, gbps: int) -> Mapping[str, str]:
        """By worker, of those that are on a network of that rank: its name."""
        found = self._names.get((rank, gbps))
        if found is None:
            found = self._names[rank, gbps] = _named(self._machines, rank, gbps)
        return found

    def on(self, rank: int, gbps: int, name: str) -> Sequence[int]:
        """Which of them are on one network."""
        found = self._on.get((rank, gbps))
        if found is None:
            names, by_name = self.named(rank, gbps), defaultdict[str, list[int]](list)
            for i, machine in enumerate(self._machines):
                if machine.worker in names:
                    by_name[names[machine.worker]].append(i)
            found = self._on[rank, gbps] = by_name
        return found.get(name, ())


@dataclass(slots=True)
class Seen:
    """What whoever asks many times, for units that are alike and of one rule about where they are, learnt before.
    `rooms`: by worker, of use while its `Machine` is the very same. `answers`: by kind of member, see `Counts`.
    `at_best`: by unit, the tightest network that would hold it if nothing ran; `when_empty`: what was learnt for it."""

    everyone: Everyone
    rooms: dict[str, Room] = field(default_factory=dict)
    answers: defaultdict[int, dict[int, bool]] = field(default_factory=lambda: defaultdict(dict))
    at_best: dict[tuple[object, ...], Network | None] = field(default_factory=dict)
    when_empty: Seen | None = None


def nothing_seen() -> Seen:
    return Seen(Everyone())


def assign(
    unit: Unit,
    spots: Sequence[Spot],
    now: float,
    *,
    kept: Mapping[str, Kept] = NOBODY,
    seen: Seen | None = None,
    company: Sequence[Machine] | None = None,
) -> Assigned | Unassigned:
    """The best place for the unit now. `kept`: by worker, room that is held for others. `seen`: of the same question
    about other spots. `company`: the machines on which tasks of its job run, where the spots do not tell."""
    seen = seen or nothing_seen()
    search = _Search(unit, spots, kept, seen, company)
    found = search.best()
    if found is None:
        return Unassigned(_headline(unit, spots), explain=search.explain)
    left_s = unit.waiting_since + unit.near.patience_s - now
    if unit.near.patience_s and left_s > 0 and len(unit.members) > 1:
        tighter = _tighter(unit, spots, found.network, seen)
        if tighter is not None:
            minutes = max(1, -(-int(left_s) // 60))
            otherwise = str(found.network)
            return Unassigned(says.waits_for_fabric(minutes, str(tighter), otherwise), found, search.explain)
    return found


def _tighter(unit: Unit, spots: Sequence[Spot], than: Network, seen: Seen) -> Network | None:
    """The tightest network of a better kind that holds the unit when the work on it has ended."""
    if than.is_as_good_as == NODE:
        return None
    asked = (unit.near, len(unit.members), unit.least, unit.avoid)
    if asked not in seen.at_best:
        empty = seen.everyone.emptied or [
            replace(spot, machine=leaving(spot.machine, spot.running), running=()) for spot in spots
        ]
        found = _Search(unit, empty, NOBODY, seen.when_empty or Seen(seen.everyone), ()).best()
        seen.at_best[asked] = found.network if found is not None else None
    best = seen.at_best[asked]
    return best if best is not None and best.is_as_good_as < than.is_as_good_as else None


def _headline(unit: Unit, spots: Sequence[Spot]) -> str:
    ready, total = sum(not spot.machine.closed for spot in spots), len(spots)
    if len(unit.members) == 1:
        return reasons.no_machine_fits(ready, total)
    if unit.least and unit.least < len(unit.members):
        return says.minimum_cannot_be_placed(ready, total)
    return says.gang_cannot_be_placed(ready, total)


@dataclass(frozen=True, slots=True)
class _Group:
    """Machines that share a network, and the name within which the run is kept."""

    network: Network
    within: str
    rooms: list[Room]

    def holds(self, kinds: Sequence[Kind], need: int) -> bool:
        """Whether it might: a comparison of sums, before anything is packed."""
        if len(kinds) == 1:
            return sum(room.counts[0] for room in self.rooms) >= need
        sums = [sum(room.counts[i] for room in self.rooms) for i in range(len(kinds))]
        return all(found >= len(kind.members) for found, kind in zip(sums, kinds, strict=True))


class _Search:
    """One look at the board for one unit."""

    def __init__(
        self,
        unit: Unit,
        spots: Sequence[Spot],
        kept: Mapping[str, Kept],
        seen: Seen,
        company: Sequence[Machine] | None = None,
    ) -> None:
        self.unit, self.near, self.kept, self.seen = unit, unit.near, kept, seen
        self.spots = spots
        self.kinds = kinds_of(unit.members)
        self.counts = self._counts()
        if company is None:
            company = [spot.machine for spot in spots if _has_task_of(unit.job, spot)]
        self.company = company
        names = {machine.worker for machine in self.company}
        self.rules = Rules(self.near.min_nodes, self.near.max_nodes, len(names), bool(self.near.spread))
        within = self.near.keep_within
        self.kept_in = {name_at(machine, within) for machine in self.company} if within else set[str]()
        self.rooms = list(self._rooms(names))

    # ---- the machines

    def _counts(self) -> list[Counts]:
        """Of members of a single kind more is counted than there are: units of other sizes may use it."""
        everyone, answers, alone = self.seen.everyone, self.seen.answers, len(self.kinds) == 1
        return [
            Counts(kind.ask, counted(len(kind.members)) if alone else len(kind.members), everyone.sorts, answers[i])
            for i, kind in enumerate(self.kinds)
        ]

    def _rooms(self, used: set[str]) -> Iterable[Room]:
        """Those that take a member, and that no rule excludes by itself."""
        near, full = self.near, self.rules.max_nodes and self.rules.used >= self.rules.max_nodes
        taken = {name_at(machine, near.spread) for machine in self.company} if near.spread else set()
        kept_in, avoid, all_kept, seen = self.kept_in, self.unit.avoid, self.kept, self.seen.rooms
        for spot in self.spots:
            machine = spot.machine
            worker = machine.worker
            if worker in avoid or (full and worker not in used):
                continue
            kept = all_kept.get(worker) if all_kept else None
            room = seen.get(worker) if kept is None else None
            if room is None or room.machine is not machine or room.used != (worker in used):
                room = self._room(machine, kept, used=worker in used)
                if kept is None:
                    seen[worker] = room
            if near.spread and (not room.spread or room.spread in taken):
                continue
            if near.keep_within and (not room.within or (kept_in and kept_in != {room.within})):
                continue
            if room.takes_any:
                yield room

    def _room(self, machine: Machine, kept: Kept | None, *, used: bool) -> Room:
        near = self.near
        spread = name_at(machine, near.spread) if near.spread else ""
        within = name_at(machine, near.keep_within) if near.keep_within else ""
        return Room(machine, tuple([count.on(machine, kept) for count in self.counts]), used, spread, within)

    # ---- the networks

    def _groups(self, rank: int) -> list[_Group]:
        """The machines that share a network of that rank, within what the run is kept in."""
        gbps, found = self.near.min_gbps, dict[tuple[str, str], list[Room]]()
        everyone = self.seen.everyone
        names = everyone.named(rank, gbps) if everyone else _named((room.machine for room in self.rooms), rank, gbps)
        ours = {name_on(machine, rank, gbps) for machine in self.company}
        if not names or len(ours) > 1:
            return []  # nobody is on one, or the run's other tasks do not share one
        for room in self.rooms:
            name = names.get(room.machine.worker)
            if name is not None and (not ours or name in ours):
                found.setdefault((name, room.within), []).append(room)
        return [_Group(Network(rank, name), within, rooms) for (name, within), rooms in found.items()]

    # ---- the answer

    def best(self) -> Assigned | None:
        everyone, least = len(self.unit.members), self.unit.least
        found = self._best(everyone)
        if found is not None or not least or least >= everyone:
            return found
        if len(self.kinds) == 1:
            return self._best(least)
        first = replace(self.unit, members=self.unit.members[:least], least=0)
        return _Search(first, self.spots, self.kept, nothing_seen()).best()

    def _best(self, need: int) -> Assigned | None:
        """On the tightest network that holds `need` members: all of them, or as many as go."""
        for rank in allowed(self.near):
            found = self._on_one_machine(need) if rank == NODE else self._on_one_network(rank, need)
            if found is not None:
                packed, network = found
                where = {member.attempt: worker for worker, members in packed.where.items() for member in members}
                return Assigned(where, network)
        return None

    def _on_one_machine(self, need: int) -> tuple[Packed, Network] | None:
        others = {machine.worker for machine in self.company}
        if len(others) > 1 or self.rules.min_nodes > 1 or (self.rules.spread and need > 1):
            return None
        able = [room for room in self.rooms if sum(room.counts) >= need and (not others or room.used)]
        for room in sorted(able, key=_order):
            found = self._pack((room,), need)
            if found is not None:
                return found, Network(NODE, room.machine.worker)
        return None

    def _on_one_network(self, rank: int, need: int) -> tuple[Packed, Network] | None:
        able = [group for group in self._groups(rank) if group.holds(self.kinds, need)]
        if need == len(self.unit.members):
            return self._first_best(able, need)
        packed = [(found, group) for group in able if (found := self._pack(group.rooms, need)) is not None]
        if not packed:
            return None
        found, group = min(packed, key=lambda one: _preference(*one))
        return found, group.network

    def _first_best(self, able: Sequence[_Group], need: int) -> tuple[Packed, Network] | None:
        """Those first of which the best can be hoped, until no other can be better than what was found."""
        hoped = sorted(((self._hoped(group, need), group) for group in able), key=lambda one: one[0])
        best: tuple[Preference, Packed, Network] | None = None
        for hope, group in hoped:
            if best is not None and hope >= best[0]:
                break
            packed = self._pack(group.rooms, need)
            if packed is not None:
                found = _preference(packed, group)
                if best is None or found < best[0]:
                    best = (found, packed, group.network)
        return best[1:] if best is not None else None

    def _hoped(self, group: _Group, need: int) -> Preference:
        """Its preference, if all members go onto as few machines as their number alone allows."""
        machines, left = 0, need
        for count in sorted([sum(room.counts) for room in group.rooms], reverse=True):
            if left <= 0:
                break
            machines, left = machines + 1, left - count
        return (-need, machines, *_beside(group))

    def _pack(self, rooms: Sequence[Room], need: int) -> Packed | None:
        found = pack(rooms, self.kinds, self.rules)
        if found.whole:
            return found
        enough = _placed(found) >= need and found.machines + self.rules.used >= self.rules.min_nodes
        return found if enough and need < len(self.unit.members) else None

    # ---- why not

    def explain(self) -> Mapping[str, tuple[str, ...]]:
        """What each machine says, as if as many members as possible were placed."""
        loosest = next((groups for rank in reversed(allowed(self.near)) if (groups := self._groups(rank))), [])
        tried = [(pack(group.rooms, self.kinds, self.rules), group) for group in loosest]
        found = min(tried, key=lambda one: _preference(*one), default=None)
        packed, group = found if found is not None else (Packed(), None)
        level, here = self.near.spread, {spot.machine.worker: spot.machine for spot in self.spots}
        used = {*packed.where, *(machine.worker for machine in self.company)}
        how_far = Outside(
            unit=self.unit,
            kinds=self.kinds,
            where=packed.where,
            network=group.network if group is not None else None,
            within=group.within if group is not None else next(iter(sorted(self.kept_in)), ""),
            allowed=frozenset(room.machine.worker for room in group.rooms) if group is not None else frozenset(),
            used=frozenset(used),
            spread=frozenset(name_at(here[worker], level) for worker in used) if level else frozenset(),
        )
        return {worker: why_outside(how_far, machine, self.kept.get(worker)) for worker, machine in here.items()}


def counted(members: int) -> int:
    """How far is counted, for so many alike members. It is the same for units of most sizes, so that they share what
    they learn."""
    return max(COUNTED, members)


def _named(machines: Iterable[Machine], rank: int, gbps: int) -> Mapping[str, str]:
    return {one.worker: name for one in machines if (name := name_on(one, rank, gbps)) is not None}


def _has_task_of(job: JobId, spot: Spot) -> bool:
    return any(one.job == job for one in spot.running)


def _order(room: Room) -> tuple[bool, int, int, int, str]:
    return room.order


def _placed(packed: Packed) -> int:
    return sum(len(members) for members in packed.where.values())


def _preference(packed: Packed, group: _Group) -> Preference:
    """The most members, the fewest machines, the least room left beside."""
    return (-_placed(packed), packed.machines, *_beside(group))


def _beside(group: _Group) -> tuple[int, Network, str]:
    return sum(room.machine.free_gpus for room in group.rooms), group.network, group.within
