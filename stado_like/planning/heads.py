"""The heads of the queue: where and when each can start first, what is stopped for it, and who may pass.

A head's earliest start is a question about ends. First the room that is coming anyway, because it is being stopped;
then what preemption can make; then the ends that time limits promise, the earliest that is enough; and where even all
of those are not, the machines on which the fewest tasks without a limit would have to end. More room is never worse,
so each of these is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from stado_like.job.ids import AttemptId
from stado_like.job.terms import Ask
from stado_like.planning import preemption
from stado_like.planning.board import Board, Hold, Member, Running, Unit
from stado_like.planning.fit import Kept, Machine, fits
from stado_like.planning.gang_room import GangRooms, with_machine
from stado_like.planning.holds import at_start, ends_in_time, fits_beside, holds_for, kept_now, known_end
from stado_like.planning.rooms import NOWHERE, Kind, Rooms
from stado_like.planning.topology import Seen

MOMENTS = 256
"""At most so many ends are told apart for a gang; of more, some are taken for a little later than they are."""

Where = Mapping[AttemptId, str]


@dataclass(frozen=True, slots=True)
class Head:
    """`could_use`: the machines that it could use and nothing ahead of it. `starts_at` 0: not known. `victims`: whom it
    needs gone, and `evicts`: they may be told now. `stopping`: how many of those it preempted have not ended."""

    unit: Unit
    holds: tuple[Hold, ...]
    could_use: tuple[int, ...]
    starts_at: float = 0.0
    victims: tuple[Running, ...] = ()
    evicts: bool = False
    stopping: int = 0
    protected: tuple[str, ...] = ()


class Heads:
    def __init__(self, board: Board, rooms: Rooms, gangs: GangRooms) -> None:
        self._board, self._rooms, self._gangs = board, rooms, gangs
        self.all: list[Head] = []
        self.held: dict[int, tuple[Hold, int]] = {}
        """By machine: its hold, and the number of the head."""
        self._owner: dict[int, Head] = {}
        """By machine: the head of whatever waits and could use it."""
        self._then: dict[int, Machine] = {}
        self._whereabouts: dict[AttemptId, str] | None = None
        self._kept: dict[int, dict[str, Kept]] = {}
        """What `kept` answered since the last change of a held machine."""

    # ---- who may pass

    def bits(self, unit: Unit) -> int:
        """Which heads the unit passes because it ends in time, as a number for a `Kind`'s cursors."""
        found = 0
        if unit.time_limit_s is not None:
            for number, head in enumerate(self.all):
                if head.holds and ends_in_time(head.holds[0], unit.time_limit_s, self._board.now):
                    found |= 1 << number
        return found

    def lets(self, i: int, ask: Ask, bits: int) -> bool:
        held = self.held.get(i)
        if held is None or bits >> held[1] & 1:
            return True
        return fits_beside(held[0], ask, self.then(i))

    def kept(self, bits: int) -> Mapping[str, Kept]:
        """What must stay free now, by worker, of work that passes only the heads in `bits`."""
        found = self._kept.get(bits)
        if found is None:
            found = self._kept[bits] = {
                hold.worker: kept_now(hold, self._rooms.machines[i], self.then(i))
                for i, (hold, number) in self.held.items()
                if not bits >> number & 1
            }
        return found

    def worker_of(self, task: Running) -> str:
        if self._whereabouts is None:
            self._whereabouts = {one.attempt: spot.machine.worker for spot in self._rooms.spots for one in spot.running}
        return self._whereabouts[task.attempt]

    def then(self, i: int) -> Machine:
        """A held machine when its head starts."""
        if i not in self._then:
            self._then[i] = at_start(self.held[i][0], self._rooms.machines[i], self._rooms.running(i))
        return self._then[i]

    def took(self, i: int) -> None:
        if i in self.held:
            self._then.pop(i, None)
            self._kept.clear()

    # ---- who is one

    def over(self, kinds: Sequence[Kind]) -> Head | None:
        """The head that work of these kinds is behind. None: there is a machine for it that nothing ahead could use."""
        if not self.all or any(self._rooms.unclaimed(kind) for kind in kinds):
            return None
        first = min((self._rooms.first_ever(kind) for kind in kinds), default=NOWHERE)
        return self._owner.get(first)

    def make(self, unit: Unit, members: Sequence[Member], could_use: Sequence[int]) -> Head | None:
        """The unit becomes a head, on those machines that nothing ahead of it could use. None: it could not start on
        these alone, even if they were empty. Either way nothing after it is a head there."""
        free = [i for i in could_use if i not in self._owner]
        behind = self.ahead(could_use)
        head = self._head(unit, members, free) if free else None
        if head is not None:
            number = len(self.all)
            self.all.append(head)
            self._kept.clear()
            for hold in head.holds:
                self.held[self._rooms.index[hold.worker]] = (hold, number)
        owner = head or behind
        if owner is not None:
            for i in free:
                self._owner[i] = owner
                self._rooms.claim(i)
        return head

    def ahead(self, could_use: Sequence[int]) -> Head | None:
        """A head on one of these machines."""
        return next((self._owner[i] for i in could_use if i in self._owner), None)

    def _head(self, unit: Unit, members: Sequence[Member], could_use: Sequence[int]) -> Head | None:
        search = _Search(self._rooms, self._gangs, unit, members, could_use)
        kept = {hold.worker for hold in self._board.holds if hold.job == unit.job}
        standing = [i for i in could_use if self._rooms.spots[i].machine.worker in kept]
        around = tuple(could_use)
        if search.on_empty(could_use) is None:
            return None
        for machines in (standing, could_use):
            where = search.when_stopped(machines)
            if where is not None:
                gone = self._stopping(where) if machines is standing else 0
                return Head(unit, self._holds(unit, where, 0.0), around, stopping=gone)
        protected: tuple[str, ...] = ()
        for machines in (standing, could_use):
            eviction = self._eviction(unit, machines) if machines else None
            if eviction is not None and eviction.victims:
                holds = self._holds(unit, eviction.where, 0.0)
                return Head(unit, holds, around, victims=eviction.victims, evicts=self._is_obeyed(holds, kept))
            protected = eviction.protected if eviction is not None else protected
        found = search.first_known(could_use)
        if found is not None:
            starts_at, where = found
            return Head(unit, self._holds(unit, where, starts_at), around, starts_at, protected=protected)
        where = search.least_busy(standing) or search.least_busy(could_use)
        return Head(unit, self._holds(unit, where or {}, 0.0), around, protected=protected)

    def _eviction(self, unit: Unit, machines: Sequence[int]) -> preemption.Eviction | None:
        running = (one.priority for i in machines for one in self._rooms.spots[i].running)
        if min(running, default=unit.priority) >= unit.priority:
            return None
        chosen = set(machines)
        spots = [with_machine(self._rooms.spots[i], self._rooms.machines[i]) for i in machines]
        others = [spot for i, spot in enumerate(self._rooms.spots) if i not in chosen]
        return preemption.victims(unit, spots, self._board.now, others=others, everyone=self._gangs.everyone)

    def _holds(self, unit: Unit, where: Where, starts_at: float) -> tuple[Hold, ...]:
        on = {worker: self._rooms.machines[self._rooms.index[worker]] for worker in set(where.values())}
        return holds_for(unit, where, on, starts_at)

    def _stopping(self, where: Where) -> int:
        spots = (self._rooms.spots[self._rooms.index[worker]] for worker in set(where.values()))
        return sum(one.stopping for spot in spots for one in spot.running)

    def _is_obeyed(self, holds: Iterable[Hold], kept: set[str]) -> bool:
        """Whether the workers know that this room is held: only then is anybody stopped for it."""
        nonce = self._board.holds_nonce
        return bool(nonce) and all(
            hold.worker in kept and self._rooms.spots[self._rooms.index[hold.worker]].echoed == nonce for hold in holds
        )


class _Search:
    """When one unit could start on some machines."""

    def __init__(
        self, rooms: Rooms, gangs: GangRooms, unit: Unit, members: Sequence[Member], could_use: Sequence[int]
    ) -> None:
        self._rooms, self._gangs, self._unit, self._members = rooms, gangs, unit, members
        self._seen = Seen(gangs.everyone)
        self._endless = {i: sum(known_end(one) == float("inf") for one in rooms.running(i)) for i in could_use}

    def _fits(self, machines: Sequence[int], goes: Callable[[int, Running], bool]) -> Where | None:
        """On the machines, when all that `goes` is gone."""
        rooms, one = self._rooms, self._members[0]
        if self._gangs.is_plain(self._unit, self._members):
            for i in machines:
                if fits(rooms.without(i, lambda task, at=i: goes(at, task)), one.ask):  # type: ignore[misc]
                    return {one.attempt: rooms.machines[i].worker}
            return None
        spots = []
        for i in machines:
            left = tuple(task for task in rooms.running(i) if not goes(i, task))
            then = rooms.without(i, lambda task, at=i: goes(at, task))  # type: ignore[misc]
            spots.append(with_machine(rooms.spots[i], then, left))
        return self._gangs.assign(self._unit, self._members, spots, self._seen)

    def on_empty(self, machines: Sequence[int]) -> Where | None:
        return self._fits(machines, lambda i, task: True)

    def when_stopped(self, machines: Sequence[int]) -> Where | None:
        """None: nothing is being stopped there, or that is not enough."""
        if not any(task.stopping for i in machines for task in self._rooms.running(i)):
            return None
        return self._fits(machines, lambda i, task: task.stopping)

    def first_known(self, machines: Sequence[int]) -> tuple[float, Where] | None:
        """The earliest moment at which known ends have made enough room, and where."""
        if self._gangs.is_plain(self._unit, self._members):
            return self._first_known_alone(machines)
        ends = {known_end(task) for i in machines for task in self._rooms.running(i)}
        moments = sorted(end for end in ends if 0 < end < float("inf"))
        if len(moments) > MOMENTS:
            moments = [moments[(n + 1) * len(moments) // MOMENTS - 1] for n in range(MOMENTS)]
        found: tuple[float, Where] | None = None
        low, high = 0, len(moments)
        while low < high:
            middle = (low + high) // 2
            where = self._fits(machines, lambda i, task: known_end(task) <= moments[middle])  # noqa: B023
            if where is None:
                low = middle + 1
            else:
                found, high = (moments[middle], where), middle
        return found

    def _first_known_alone(self, machines: Sequence[int]) -> tuple[float, Where] | None:
        """Each machine by itself: its own few ends."""
        one, best = self._members[0], None
        for i in machines:
            ends = {known_end(task) for task in self._rooms.running(i)}
            moments = sorted(end for end in ends if 0 < end < (best[0] if best else float("inf")))
            low, high = 0, len(moments)
            while low < high:
                middle = (low + high) // 2
                then = self._rooms.without(i, lambda task: known_end(task) <= moments[middle])  # noqa: B023
                if fits(then, one.ask):
                    high = middle
                else:
                    low = middle + 1
            if low < len(moments):
                best = (moments[low], i)
        return (best[0], {one.attempt: self._rooms.machines[best[1]].worker}) if best else None

    def least_busy(self, machines: Sequence[int]) -> Where | None:
        """Where the fewest tasks without a known end are in the way."""
        counts = sorted({self._endless[i] for i in machines})
        found: Where | None = None
        low, high = 0, len(counts)
        while low < high:
            middle = (low + high) // 2
            where = self._fits(
                machines,
                lambda i, task: known_end(task) < float("inf") or self._endless[i] <= counts[middle],  # noqa: B023
            )
            if where is None:
                low = middle + 1
            else:
                found, high = where, middle
        return found
