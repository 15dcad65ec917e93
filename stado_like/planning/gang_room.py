"""Whether a unit with several members, or with rules about where they are, has room: `topology.assign`, seldom asked.

`assign` weighs every machine it is given. Four things keep a plan over thousands of gangs short. It is given only
machines with room for the smallest member, and of a run that goes on those that share a network with its tasks first.
Units of the same shape share a refusal, since within one plan room only shrinks (of one whose tasks run, until another
is added). What units of one ask learnt of a machine holds while nothing is put there (`topology.Seen`). And a
unit is offered the first machines with room before it is offered all. The price of the last: in a cluster with more
than `OFFERED` such machines a gang may miss a tighter network that begins further on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from stado_like.job import reasons_placement as says
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Member, Near, Running, Spot, Unit
from stado_like.planning.fit import Kept, Machine, copies, why_not
from stado_like.planning.networks import allowed, name_at
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
        self._tasks: defaultdict[JobId, list[int]] = defaultdict(list)
        """By job: the machines on which its tasks run, one for each task."""
        for i, spot in enumerate(rooms.spots):
            for one in spot.running:
                self._tasks[one.job].append(i)
        self._words: set[str] = set().union(*(spot.machine.apart for spot in board.spots))
        self._full: set[tuple[object, ...]] = set()
        self._never: dict[tuple[object, ...], bool] = {}
        self._cursors: dict[tuple[object, ...], int] = {}
        self._seen: dict[tuple[object, ...], Seen] = {}
        self._seen_empty: dict[tuple[object, ...], Seen] = {}
        self.empty = [with_machine(*each, ()) for each in zip(rooms.spots, rooms.emptied, strict=True)]
        """As if nothing ran."""
        self.everyone = Everyone(tuple(rooms.machines), self.empty)

    def is_plain(self, unit: Unit, members: Sequence[Member]) -> bool:
        """One task that may be anywhere: no question of topology."""
        return len(members) == 1 and (unit.near is NO_RULE or unit.near == NO_RULE)

    def took(self, i: int, job: JobId, word: str) -> None:
        self.spots[i] = with_machine(self._rooms.spots[i], self._rooms.machines[i], tuple(self._rooms.running(i)))
        self._bare[i] = replace(self.spots[i], running=())
        self._tasks[job].append(i)
        if word:
            self._words.add(word)

    # ---- now

    def fit(self, unit: Unit, kept: Mapping[str, Kept], bits: int) -> Assigned | Unassigned | None:
        """Where it may start now. None: there is no room, as for others of its shape."""
        shape = (*self._shape(unit), bits, unit.job if unit.job in self._tasks else None, self._count_of(unit.job))
        if shape in self._full:
            return None
        seen, company = self._seen_by(self._seen, unit), self._company(unit.job)
        seen.when_empty = self._seen_by(self._seen_empty, unit)
        for spots in self._offered(unit, company, kept):
            found = assign(unit, spots, self._now, kept=kept, seen=seen, company=company)
            if isinstance(found, Assigned) or found.could_start_looser is not None:
                return found
        self._full.add(shape)
        return None

    def _count_of(self, job: JobId) -> int:
        return len(self._tasks[job]) if job in self._tasks else 0

    def _company(self, job: JobId) -> list[Machine]:
        return [self._rooms.machines[i] for i in sorted(set(self._tasks[job]))] if job in self._tasks else []

    def _is_loose(self, unit: Unit) -> bool:
        """Alike members that may be anywhere: a count of rooms answers whether they fit."""
        first = unit.members[0].ask
        alike = all(one.ask is first or one.ask == first for one in unit.members)
        return alike and unit.near == NO_RULE and not unit.avoid and unit.job not in self._tasks

    def _offered(self, unit: Unit, company: Sequence[Machine], kept: Mapping[str, Kept]) -> Iterator[Sequence[Spot]]:
        """Machines with room for one member at least: those close to where its tasks run, then the first ones, then
        all. Every machine for one that may rather wait for what is in use now."""
        if unit.near.patience_s:
            yield self._bare
            return
        within = unit.near.keep_within
        if within and len({name_at(machine, within) for machine in company}) > 1:
            return  # it cannot be kept within two of them
        ask, need = _least_of(unit.members), unit.least or len(unit.members)
        for rank in allowed(unit.near) if company else ():
            names = {self.everyone.named(rank, unit.near.min_gbps).get(one.worker) for one in company}
            name = names.pop()
            if name is not None and not names:
                there = self.everyone.on(rank, unit.near.min_gbps, name)
                yield [self._bare[i] for i in self._rooms.free_among(there, ask)]
        if company:
            return
        start, loose = self._start(ask), self._is_loose(unit)
        first = [self._bare[i] for i in islice(self._rooms.free(ask, start), OFFERED)]
        if first and (not loose or _hold((one.machine for one in first), ask, need, kept)):
            yield first
        if len(first) == OFFERED:
            every = self._rooms.all_free(ask, start)
            if not loose or _hold((self._rooms.machines[i] for i in every), ask, need, kept):
                yield [self._bare[i] for i in every]

    def _start(self, ask: Ask) -> int:
        """Before this one no machine has room for the ask: room only shrinks."""
        said = what_it_says(ask, apart=False)
        first = next(self._rooms.free(ask, self._cursors.get(said, 0)), len(self.spots))
        self._cursors[said] = first
        return first

    # ---- who is alike

    def _shape(self, unit: Unit) -> tuple[object, ...]:
        near = (unit.near, bool(unit.near.patience_s) and unit.waiting_since)
        return (*_counted(unit.members), unit.least, near, unit.avoid, self._known_words(unit))

    def _known_words(self, unit: Unit) -> tuple[str, ...]:
        """Words of its members that keep them off machines now: then it is like no other."""
        words = (member.ask.apart for member in unit.members if member.ask.apart)
        return tuple(dict.fromkeys(word for word in words if word in self._words))

    def _seen_by(self, among: dict[tuple[object, ...], Seen], unit: Unit) -> Seen:
        """What units alike in what they ask, and in the rules about single machines, learnt before."""
        asked = _counted(unit.members)
        if len(asked) == 1:
            asked = ((asked[0][0], counted(len(unit.members))),)
        alike = (asked, unit.near.spread, unit.near.keep_within, self._known_words(unit))
        found = among.get(alike)
        if found is None:
            found = among[alike] = Seen(self.everyone)
        return found

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
        self, unit: Unit, members: Sequence[Member], spots: Sequence[Spot], seen: Seen | None = None
    ) -> Mapping[AttemptId, str] | None:
        """Where these members would go on the given machines, whatever the unit would rather wait for. `seen`: of the
        same question about other spots."""
        near = replace(unit.near, patience_s=0) if unit.near.patience_s else unit.near
        company = None if unit.job in self._tasks else ()
        asked = replace(unit, members=tuple(members), least=0, near=near)
        found = assign(asked, spots, self._now, seen=seen or Seen(self.everyone), company=company)
        return found.where if isinstance(found, Assigned) else None

    def never(self, unit: Unit, members: Sequence[Member], kinds: Sequence[Kind]) -> bool:
        """Whether it could not start even if nothing ran anywhere; by shape, where that answers for all."""
        whole = replace(unit, members=tuple(members))
        if self._is_loose(whole):
            emptied = self._rooms.emptied
            able = (emptied[i] for i in self._rooms.ever_one_by_one(kinds[0]))
            return not _hold(able, members[0].ask, len(members), {})
        shape = self._shape(whole)
        if shape not in self._never:
            able_spots = [self.empty[i] for i in self.could_use(kinds, unit.avoid)]
            self._never[shape] = self.assign(unit, members, able_spots, self._seen_by(self._seen_empty, whole)) is None
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
