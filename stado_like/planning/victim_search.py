"""The fewest whose going makes room, and of equally many the ones that lose the least work.

The exact answer is a covering problem. For one task that may be anywhere it is asked machine by machine, where few
sets are worth trying, and is exact but where a machine runs very many small tasks. For a unit with rules about where
its members are, several good guesses are made, and each is thinned out until nobody in it could be spared. Then sets
are tried from the cheapest on, as long as they are cheaper than the best guess: where `SETS_WEIGHED` of them are enough
to come to it, or to one that makes room, the answer is exact; where there are more, what is certain is that no victim
is stopped for nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import comb

from stado_like.job.ids import AttemptId
from stado_like.job.terms import Ask
from stado_like.planning.board import Near, Running, Spot, Unit
from stado_like.planning.cheapest import cheapest_first
from stado_like.planning.counts import Counts
from stado_like.planning.fit import Machine, copies, fits, takes
from stado_like.planning.leaving import leaving
from stado_like.planning.packing import kinds_of
from stado_like.planning.topology import Assigned, Everyone, Seen, assign

SETS_TRIED = 2_000
"""Of one size, on one machine; where there are more, a guess is thinned out instead."""
SETS_WEIGHED, SETS_PLACED = 2_000, 200
"""For a unit with rules: so many are weighed by the numbers of members that fit, and so many of those are placed."""
THINNED_AT_ONCE = 128
"""A set is thinned in so many pieces, then in smaller ones."""

Where = Mapping[AttemptId, str]
Amounts = tuple[int, int, int]
"""Thousandths of a core, bytes, GPUs."""
Cost = tuple[int, float, int, tuple[AttemptId, ...]]


@dataclass(frozen=True)
class Group:
    """What is stopped together. `on`: its tasks by machine; `lost_s`: the seconds of work that are done again."""

    running: tuple[Running, ...]
    on: Mapping[str, tuple[Running, ...]]
    lost_s: float

    @property
    def cost(self) -> Cost:
        first = self.running[0]
        return (len(self.running), self.lost_s, first.priority, (first.attempt,))


def cost_of(groups: Iterable[Group]) -> Cost:
    """How many, the work lost, how urgent they were; then names, so that equal boards give equal answers."""
    groups = tuple(groups)
    return (
        sum(len(group.running) for group in groups),
        sum(group.lost_s for group in groups),
        max((group.running[0].priority for group in groups), default=0),
        tuple(sorted(group.running[0].attempt for group in groups)),
    )


class Search:
    """One unit on some machines; `spots` without what is being stopped anyway."""

    def __init__(self, unit: Unit, spots: Sequence[Spot], now: float, everyone: Everyone) -> None:
        self._unit = replace(unit, near=replace(unit.near, patience_s=0)) if unit.near.patience_s else unit
        self._spots, self._now = spots, now
        self._seen = Seen(everyone)
        self._company = [spot.machine for spot in spots if any(one.job == unit.job for one in spot.running)]
        """Its own tasks are as urgent as itself: none of them is ever gone."""
        self._freed: dict[tuple[AttemptId, ...], Spot] = {}
        """By who is gone: the machine without them."""
        self._plain = len(unit.members) == 1 and self._unit.near == Near()

    def where(self, freed: Collection[Group]) -> Where | None:
        """Where the unit goes when these are gone."""
        return self._where(freed, self._spots)

    def fewest(self, groups: Sequence[Group]) -> tuple[tuple[Group, ...], Where] | None:
        """Whom to stop, and where the unit goes then."""
        if not groups:
            return None
        found = self._fewest_alone(groups) if self._plain else self._fewest_together(groups)
        if found is None:
            return None
        where = self.where(found)
        return (tuple(sorted(found, key=lambda one: one.running[0].attempt)), where) if where is not None else None

    def _where(self, freed: Collection[Group], spots: Sequence[Spot]) -> Where | None:
        gone = _by_machine(freed)
        if self._plain:
            one = self._unit.members[0]
            for spot in spots:
                machine = spot.machine
                if machine.worker not in self._unit.avoid and fits(_less(spot, gone.get(machine.worker, ())), one.ask):
                    return {one.attempt: machine.worker}
            return None
        then = [self._without(spot, gone.get(spot.machine.worker)) for spot in spots]
        found = assign(self._unit, then, self._now, seen=self._seen, company=self._company)
        return found.where if isinstance(found, Assigned) else None

    def _without(self, spot: Spot, gone: Sequence[Running] | None) -> Spot:
        if gone is None:
            return spot
        who = tuple([one.attempt for one in gone])
        found = self._freed.get(who)
        if found is None:
            found = self._freed[who] = _spot_without(spot, gone)
        return found

    # ---- one task anywhere

    def _fewest_alone(self, groups: Sequence[Group]) -> tuple[Group, ...] | None:
        ask, best = self._unit.members[0].ask, None
        by_machine = _groups_by_machine(groups)
        for spot in self._spots:
            worker = spot.machine.worker
            if worker in by_machine and worker not in self._unit.avoid:
                best = _On(spot, by_machine[worker], ask).fewest(best)
        return best

    # ---- several members, or rules

    def _fewest_together(self, groups: Sequence[Group]) -> tuple[Group, ...] | None:
        if self._where(groups, self._spots) is None:
            return None
        options = self._options(groups)
        guesses = [self._first_enough(options), self._first_enough([(group,) for group in groups])]
        found = [self._thinned(guess) for guess in guesses if guess is not None]
        return self._cheaper(groups, min(found, key=cost_of, default=None))

    def _cheaper(self, groups: Sequence[Group], best: tuple[Group, ...] | None) -> tuple[Group, ...] | None:
        """The cheapest set that makes room, where it is found before `best` is reached, or too many were tried."""
        groups, placed = sorted(groups, key=cost_of_one), 0
        sets = cheapest_first([group.cost[:2] for group in groups])
        bound = cost_of(best)[:2] if best is not None else None
        members = _Members(self._unit, self._spots, self._seen.everyone)
        for cost, numbers in islice(sets, SETS_WEIGHED):
            if (bound is not None and cost > bound) or placed >= SETS_PLACED:
                break
            chosen = tuple(groups[i] for i in numbers)
            if not members.may_fit(chosen):
                continue
            if best is not None and cost == bound and cost_of(chosen) >= cost_of(best):
                continue
            placed += 1
            if self._where(chosen, self._spots) is not None:
                best, bound = chosen, cost
        return best

    def _options(self, groups: Sequence[Group]) -> list[tuple[Group, ...]]:
        """On each machine: whom it takes to make room for one member, and for as many as possible. What costs least
        for each member first."""
        members = len(self._unit.members)
        ask = min((one.ask for one in self._unit.members), key=lambda one: (one.gpus, one.cpu_millis, one.memory_bytes))
        by_machine = _groups_by_machine(groups)
        found: list[tuple[float, float, str, int, tuple[Group, ...]]] = []
        for spot in self._spots:
            worker = spot.machine.worker
            if worker not in by_machine or worker in self._unit.avoid:
                continue
            on = _On(spot, by_machine[worker], ask)
            already = copies(spot.machine, ask, members)
            most = copies(on.without(on.groups), ask, members)
            for count in sorted({already + 1, most}):
                if already < count <= most:
                    chosen = on.enough_for(count)
                    workers, lost_s, _, _ = cost_of(chosen)
                    found.append((workers / (count - already), lost_s / (count - already), worker, count, chosen))
        return [one[-1] for one in sorted(found, key=lambda one: one[:-1])]

    def _first_enough(self, options: Sequence[tuple[Group, ...]]) -> tuple[Group, ...] | None:
        """The first so many options that are enough: found by halving, since more room is never worse."""
        found: tuple[Group, ...] | None = None
        low, high = 1, len(options)
        while low <= high:
            middle = (low + high) // 2
            tried = _union(options[:middle])
            if self.where(tried) is not None:
                found, high = tried, middle - 1
            else:
                low = middle + 1
        return found

    def _thinned(self, chosen: tuple[Group, ...]) -> tuple[Group, ...]:
        """Without whom the unit starts all the same, the costliest first."""
        spots = self._with_room(chosen)
        where = self._where(chosen, spots)
        used = set(where.values()) if where is not None else set()
        on_used = tuple(group for group in chosen if used & group.on.keys())
        if on_used and self._where(on_used, spots) is not None:
            chosen, spots = on_used, self._with_room(on_used)
        chosen = tuple(sorted(chosen, key=cost_of_one, reverse=True))
        size = max(1, len(chosen) // THINNED_AT_ONCE)
        while True:
            at, before = 0, len(chosen)
            while at < len(chosen):
                tried = chosen[:at] + chosen[at + size :]
                if tried and self._where(tried, spots) is not None:
                    chosen = tried
                else:
                    at += size
            if size == 1 and len(chosen) == before:
                return chosen
            if len(chosen) == before:
                size //= 2

    def _with_room(self, freed: Collection[Group]) -> list[Spot]:
        """The machines that have room for a member when these are gone, or on which the job runs: the others do not
        count, for these and for fewer."""
        gone, job = _by_machine(freed), self._unit.job
        asks = [kind.ask for kind in kinds_of(self._unit.members)]
        found = []
        for spot in self._spots:
            then = _less(spot, gone.get(spot.machine.worker, ()))
            if any(fits(then, ask) for ask in asks) or any(one.job == job for one in spot.running):
                found.append(spot)
        return found


class _Members:
    """How many members of each kind the machines have room for: too few of one, and nothing else need be asked."""

    def __init__(self, unit: Unit, spots: Sequence[Spot], everyone: Everyone) -> None:
        kinds = kinds_of(unit.members)
        self._counts = [Counts(kind.ask, len(kind.members), everyone.sorts, {}) for kind in kinds]
        self._spots = {spot.machine.worker: spot for spot in spots if spot.machine.worker not in unit.avoid}
        self._now = {worker: self._on(spot.machine) for worker, spot in self._spots.items()}
        self._lacking = [
            len(kind.members) - sum(found[i] for found in self._now.values()) for i, kind in enumerate(kinds)
        ]
        self._more: dict[tuple[AttemptId, ...], list[int]] = {}
        """By who is gone from a machine."""

    def _on(self, machine: Machine) -> list[int]:
        return [count.on(machine) for count in self._counts]

    def may_fit(self, freed: Collection[Group]) -> bool:
        lacking = list(self._lacking)
        for worker, gone in _by_machine(freed).items():
            for i, more in enumerate(self._without(worker, gone) if worker in self._spots else ()):
                lacking[i] -= more
        return all(missing <= 0 for missing in lacking)

    def _without(self, worker: str, gone: Sequence[Running]) -> list[int]:
        who = tuple([one.attempt for one in gone])
        if who not in self._more:
            then = self._on(_less(self._spots[worker], gone))
            self._more[who] = [after - before for after, before in zip(then, self._now[worker], strict=True)]
        return self._more[who]


def cost_of_one(group: Group) -> Cost:
    return group.cost


class _On:
    """One machine, and the groups that have tasks on it."""

    def __init__(self, spot: Spot, groups: Sequence[Group], ask: Ask) -> None:
        self.groups = tuple(sorted(groups, key=cost_of_one))
        self._spot, self._ask = spot, ask
        cpu, memory = takes(spot.machine, ask)
        self._asked = (cpu, memory, 0 if ask.gpu_kind.share_gb else ask.gpus)
        self._free = (spot.machine.free_cpu_millis, spot.machine.free_memory_bytes, spot.machine.free_gpus)
        self._gives = {id(group): self._room_of(group) for group in self.groups}

    def _room_of(self, group: Group) -> Amounts:
        here = group.on[self._spot.machine.worker]
        room = [takes(self._spot.machine, one.ask) for one in here]
        return sum(cpu for cpu, _ in room), sum(memory for _, memory in room), sum(one.ask.gpus for one in here)

    def without(self, groups: Iterable[Group]) -> Machine:
        worker = self._spot.machine.worker
        return _less(self._spot, [one for group in groups for one in group.on[worker]])

    def _make_room(self, groups: Sequence[Group], count: int) -> bool:
        """Sums first: most sets fail by them."""
        if not self._add_up(groups, count):
            return False
        return copies(self.without(groups), self._ask, count) >= count

    def _add_up(self, groups: Iterable[Group], count: int) -> bool:
        gives = [self._gives[id(group)] for group in groups]
        short = (wanted * count - free for wanted, free in zip(self._asked, self._free, strict=True))
        return all(sum(one[i] for one in gives) >= needed for i, needed in enumerate(short))

    # ---- the fewest for one

    def fewest(self, best: tuple[Group, ...] | None) -> tuple[Group, ...] | None:
        """The cheapest set that makes room for one here, if it is cheaper than `best`."""
        if not self._make_room(self.groups, 1):
            return best
        sizes = sorted(len(group.running) for group in self.groups)
        losses = sorted(group.lost_s for group in self.groups)
        for size in range(1, len(self.groups) + 1):
            if best is not None and (sum(sizes[:size]), sum(losses[:size])) > cost_of(best)[:2]:
                return best  # whatever comes now has more to stop, or as many and more to lose
            if not self._can_be_enough(size):
                continue
            if comb(len(self.groups), size) > SETS_TRIED:
                guess = self.enough_for(1)
                return guess if best is None or cost_of(guess) < cost_of(best) else best
            for chosen in combinations(self.groups, size):
                if (best is None or cost_of(chosen) < cost_of(best)) and self._make_room(chosen, 1):
                    best = chosen
        return best

    def _can_be_enough(self, size: int) -> bool:
        """Whether the largest `size` of them add up, in each number by itself."""
        for i, (wanted, free) in enumerate(zip(self._asked, self._free, strict=True)):
            if sum(sorted((one[i] for one in self._gives.values()), reverse=True)[:size]) < wanted - free:
                return False
        return True

    # ---- for several

    def enough_for(self, count: int) -> tuple[Group, ...]:
        """A set that makes room for so many, of which nobody can be spared. All together are enough."""
        ways: Sequence[Callable[[Group], tuple[float, ...]]] = (
            lambda one: (-len(one.running), self._use_of(one), -one.lost_s),
            lambda one: (-len(one.running), -one.lost_s, self._use_of(one)),
            lambda one: (self._use_of(one) / len(one.running), -one.lost_s),
        )
        return min((self._spared(count, way) for way in ways), key=cost_of)

    def _spared(self, count: int, first_spared: Callable[[Group], tuple[float, ...]]) -> tuple[Group, ...]:
        chosen = list(self.groups)
        for group in sorted(self.groups, key=lambda one: (*first_spared(one), str(one.running[0].attempt))):
            left = [one for one in chosen if one is not group]
            if left and self._make_room(left, count):
                chosen = left
        return tuple(chosen)

    def _use_of(self, group: Group) -> float:
        """How much of what one member asks for it gives."""
        gives = zip(self._gives[id(group)], self._asked, strict=True)
        return sum(min(1.0, found / wanted) for found, wanted in gives if wanted)


def _by_machine(groups: Iterable[Group]) -> dict[str, list[Running]]:
    found: defaultdict[str, list[Running]] = defaultdict(list)
    for group in groups:
        for worker, running in group.on.items():
            found[worker] += running
    return found


def _groups_by_machine(groups: Iterable[Group]) -> dict[str, list[Group]]:
    found: defaultdict[str, list[Group]] = defaultdict(list)
    for group in groups:
        for worker in group.on:
            found[worker].append(group)
    return found


def _less(spot: Spot, gone: Sequence[Running]) -> Machine:
    if not gone:
        return spot.machine
    going = {one.attempt for one in gone}
    return leaving(spot.machine, gone, [one for one in spot.running if one.attempt not in going])


def _spot_without(spot: Spot, gone: Sequence[Running]) -> Spot:
    going = {one.attempt for one in gone}
    left = tuple(one for one in spot.running if one.attempt not in going)
    return replace(spot, machine=_less(spot, gone), running=left)


def _union(options: Iterable[tuple[Group, ...]]) -> tuple[Group, ...]:
    return tuple({id(group): group for option in options for group in option}.values())
