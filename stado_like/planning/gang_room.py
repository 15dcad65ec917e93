"""Whether a unit with several members, or with rules about where they are, has room: `topology.assign`, seldom asked.

`assign` weighs every machine it is given. Three things keep a plan over thousands of gangs short: it is given only
machines with room for the smallest member; units of the same shape share an answer, since within one plan room only
shrinks (not those with tasks that run already, nor those that some worker refused: their answer is their own); and a
unit without any rule is offered the first machines with room before it is offered all. The price of the last: in a
cluster with more than `OFFERED` such machines a gang without rules may miss a tighter network that begins further on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from stado_like.job import reasons_placement as says
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Member, Near, Running, Spot, Unit
from stado_like.planning.fit import Kept, Machine, copies, why_not
from stado_like.planning.packing import Room
from stado_like.planning.rooms import Kind, Rooms, what_it_says
from stado_like.planning.topology import Assigned, Everyone, Seen, Unassigned, assign, counted

OFFERED = 256
NO_RULE = Near()


def with_machine(spot: Spot, machine: Machine, running: tuple[Running, ...] | None = None) -> Spot:
    if machine is spot.machine and (running is None or running is spot.running):
        return spot
    return replace(spot, machine=machine, running=spot.running if running is None else running)


class GangRooms:
    def __init__(self, board: Board, rooms: Rooms) -> None:
        self._now, self._rooms = board.now, rooms
        self.spots: list[Spot] = list(rooms.spots)
        self._bare = [replace(spot, running=()) for spot in rooms.spots]
        """For units without tasks that run: who else runs where is nothing to them."""
        self._has_tasks: set[JobId] = {one.job for spot in board.spots for one in spot.running}
        self._words: set[str] = set().union(*(spot.machine.apart for spot in board.spots))
        self._full: set[tuple[object, ...]] = set()
        self._never: dict[tuple[object, ...], bool] = {}
        self._cursors: dict[tuple[object, ...], int] = {}
        self._seen: dict[tuple[object, ...], Seen] = {}
        self.everyone = Everyone(rooms.machines)

    def is_plain(self, unit: Unit, members: Sequence[Member]) -> bool:
        """One task that may be anywhere: no question of topology."""
        return len(members) == 1 and (unit.near is NO_RULE or unit.near == NO_RULE)

    def took(self, i: int, job: JobId, word: str) -> None:
        self.spots[i] = with_machine(self._rooms.spots[i], self._rooms.machines[i], tuple(self._rooms.running(i)))
        self._bare[i] = replace(self.spots[i], running=())
        self._has_tasks.add(job)
        if word:
            self._words.add(word)

    def empty(self) -> list[Spot]:
        """As if nothing ran."""
        return [with_machine(*each, ()) for each in zip(self._rooms.spots, self._rooms.emptied, strict=True)]

    # ---- now

    def fit(self, unit: Unit, kept: Mapping[str, Kept], bits: int) -> Assigned | Unassigned | None:
        """Where it may start now. None: there is no room, as for others of its shape."""
        shape = self._shape(unit, bits)
        if shape is not None and shape in self._full:
            return None
        seen = self._seen_by(unit, shape)
        found = self._on_the_first(unit, kept, seen) if self._is_loose(unit) else None
        if found is None:
            offered = self._offered(unit)
            if offered:
                found = assign(unit, offered, self._now, kept=kept, seen=seen)
        if isinstance(found, Assigned):
            return found
        if found is not None and found.could_start_looser is not None:
            return found
        if shape is not None:
            self._full.add(shape)
        return None

    def _is_loose(self, unit: Unit) -> bool:
        """Alike members that may be anywhere: a count of rooms answers whether they fit."""
        first = unit.members[0].ask
        alike = all(one.ask is first or one.ask == first for one in unit.members)
        return alike and unit.near == NO_RULE and not unit.avoid and unit.job not in self._has_tasks

    def _seen_by(self, unit: Unit, shape: tuple[object, ...] | None) -> Seen:
        """What units alike in what they ask, and in the rules about single machines, learnt before."""
        if shape is None:
            return Seen(self.everyone)
        asked = _counted(unit.members)
        if len(asked) == 1:
            asked = ((asked[0][0], counted(len(unit.members))),)
        alike = (asked, unit.near.spread, unit.near.keep_within)
        found = self._seen.get(alike)
        if found is None:
            found = self._seen[alike] = Seen(self.everyone, alone=True)
        return found

    def _on_the_first(self, unit: Unit, kept: Mapping[str, Kept], seen: Seen) -> Assigned | Unassigned | None:
        """Where a unit without any rule may start among the first machines with room for a member. None: not told."""
        ask, need = unit.members[0].ask, unit.least or len(unit.members)
        first = [self._bare[i] for i in islice(self._rooms.free(ask, self._start(ask)), OFFERED)]
        if _hold((one.machine for one in first), ask, need, kept):
            found = assign(unit, first, self._now, kept=kept, seen=seen)
            if isinstance(found, Assigned):
                return found
        if len(first) < OFFERED or not _hold((self._rooms.machines[i] for i in self._all(ask)), ask, need, kept):
            return Unassigned("")  # these are all that there are, or all of them do not hold it
        return None

    def _offered(self, unit: Unit) -> list[Spot]:
        """Machines with room for one member at least. All of them for a unit with tasks that run (where those are
        counts), and for one that may rather wait for what is in use now."""
        if unit.job in self._has_tasks or unit.near.patience_s:
            return self.spots
        return [self._bare[i] for i in self._all(_least_of(unit.members))]

    def _all(self, ask: Ask) -> list[int]:
        return self._rooms.all_free(ask, self._start(ask))

    def _start(self, ask: Ask) -> int:
        """Before this one no machine has room for the ask: room only shrinks."""
        said = what_it_says(ask, apart=False)
        first = next(self._rooms.free(ask, self._cursors.get(said, 0)), len(self.spots))
        self._cursors[said] = first
        return first

    def _shape(self, unit: Unit, bits: int) -> tuple[object, ...] | None:
        if unit.avoid or unit.job in self._has_tasks:
            return None
        if any(member.ask.apart in self._words for member in unit.members if member.ask.apart):
            return None
        near = (unit.near, bool(unit.near.patience_s) and unit.waiting_since)
        return (*_counted(unit.members), unit.least, near, bits)

    def nodes(self, unit: Unit, most: int) -> Mapping[str, tuple[str, ...]]:
        """What each machine, of so many, says against a unit for which there is no room."""
        spots = sorted(self.spots, key=lambda one: one.machine.worker)[:most]
        if self.is_plain(unit, unit.members):
            said = {one.machine.worker: why_not(one.machine, unit.members[0].ask) for one in spots}
            refused = says.refused_lately(unit.job.name)
            return {worker: (*one, refused) if worker in unit.avoid else one for worker, one in said.items()}
        found = assign(unit, spots, self._now)
        return found.nodes if isinstance(found, Unassigned) else {}

    # ---- at another time

    def assign(
        self, unit: Unit, members: Sequence[Member], spots: Sequence[Spot], rooms: dict[str, Room] | None = None
    ) -> Mapping[AttemptId, str] | None:
        """Where these members would go on the given machines, whatever the unit would rather wait for. `rooms`: of the
        same question about other spots."""
        near = replace(unit.near, patience_s=0) if unit.near.patience_s else unit.near
        seen = Seen(self.everyone, {} if rooms is None else rooms, alone=unit.job not in self._has_tasks)
        found = assign(replace(unit, members=tuple(members), least=0, near=near), spots, self._now, seen=seen)
        return found.where if isinstance(found, Assigned) else None

    def never(self, unit: Unit, members: Sequence[Member], kinds: Sequence[Kind]) -> bool:
        """Whether it could not start even if nothing ran anywhere; by shape, where that answers for all."""
        whole = replace(unit, members=tuple(members))
        if self._is_loose(whole):
            emptied = self._rooms.emptied
            able = (emptied[i] for i in self._rooms.ever_one_by_one(kinds[0]))
            return not _hold(able, members[0].ask, len(members), {})
        shape = self._shape(whole, 0)
        if shape is None or shape not in self._never:
            spots, emptied, avoid = self._rooms.spots, self._rooms.emptied, unit.avoid
            empty = [with_machine(spots[i], emptied[i], ()) for i in self.could_use(kinds, avoid)]
            answer = self.assign(unit, members, empty) is None
            if shape is None:
                return answer
            self._never[shape] = answer
        return self._never[shape]

    def could_use(self, kinds: Sequence[Kind], avoid: frozenset[str]) -> Sequence[int]:
        """The machines that could take work of one of these kinds if nothing ran on them."""
        ever = [self._rooms.ever(kind) for kind in kinds]
        found = ever[0] if len(ever) == 1 else sorted(set().union(*ever))
        return [i for i in found if self._rooms.machines[i].worker not in avoid] if avoid else found


def _hold(machines: Iterable[Machine], ask: Ask, need: int, kept: Mapping[str, Kept]) -> bool:
    """Whether there is room for so many; looks no further than necessary."""
    for machine in machines:
        need -= copies(machine, ask, need, kept.get(machine.worker))
        if need <= 0:
            return True
    return False


def _least_of(members: Iterable[Member]) -> Ask:
    """An ask that no member undercuts in any number."""
    asks = [member.ask for member in members]
    if all(ask is asks[0] for ask in asks):
        return asks[0]
    least = min(asks, key=lambda one: (one.gpus, one.cpu_millis, one.memory_bytes))
    return replace(
        least,
        cpu_millis=min(one.cpu_millis for one in asks),
        memory_bytes=min(one.memory_bytes for one in asks),
        gpus=min(0 if one.gpu_kind.share_gb else one.gpus for one in asks),
    )


def _counted(members: Iterable[Member]) -> tuple[tuple[object, int], ...]:
    """The members by what they say, and how many."""
    return tuple(Counter(what_it_says(member.ask, apart=False) for member in members).items())
