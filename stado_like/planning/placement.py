"""Who runs where, who is next, what is kept for it, and why the rest waits: one board, one answer.

Units are looked at in the order of the queue. What its workspace's quota forbids is passed over. What fits is placed,
or, where workers claim by themselves, its room is left alone for the rest of this plan. The first that does not fit and
could is a head: room is held for it, or made by preemption, and from then on others may use that room only as `holds`
lets them. What no machine could ever take blocks nobody.

Not obvious: the plan is a function of the board alone and keeps no memory, so what must not waver between ticks stands
on the board. A head without a known start keeps the machines that are held for it already, and so does one that waits
for what it preempted. And nobody is preempted before the workers concerned have said that they obey the hold: else a
third could take the room of the first victim, and a second victim would have to go. A unit that could start now and
waits for a tighter network instead (`patience`) does so at its own risk: it holds nothing and blocks nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.ids import AttemptId
from stado_like.planning import shaping
from stado_like.planning.board import Board, Member, Running, Unit
from stado_like.planning.fit import fits, settled
from stado_like.planning.gang_room import GangRooms
from stado_like.planning.heads import Head, Heads
from stado_like.planning.holds import in_one_order
from stado_like.planning.placing import Evict, PlaceUnit, Placing, Shaped, Unsplit, Waiting
from stado_like.planning.queue_order import in_order
from stado_like.planning.quota import Ledger, Refusal
from stado_like.planning.rooms import NOWHERE, Kind, Rooms
from stado_like.planning.topology import Unassigned
from stado_like.planning.why_waits import Told

__all__ = ["Evict", "PlaceUnit", "Placing", "Shaped", "Waiting", "place"]


def place(board: Board) -> Placing:
    """What to do about the board, and what to say about what is left."""
    if board.queue_paused:
        why = reasons.queue_paused(board.queue_paused)
        return Placing(waiting={unit.job: Waiting(why) for unit in in_order(board.units)})
    return _Pass(board).run()


class _Pass:
    """One pass over the queue."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.rooms = Rooms(board.spots)
        self.gangs = GangRooms(board, self.rooms)
        self.heads = Heads(board, self.rooms, self.gangs)
        self.ledger = Ledger(board)
        self.told = Told(board, self.gangs.nodes)
        self.placed: list[PlaceUnit] = []
        self.taken: list[PlaceUnit] = []
        self.shapes: list[Shaped] = []
        self.unsplit: list[Unsplit] = []

    def run(self) -> Placing:
        for unit in in_order(self.board.units):
            if unit.shape:
                self._shape(unit)
            else:
                self._look_at(unit)
        return Placing(
            placed=tuple(self.placed),
            holds=in_one_order(hold for head in self.heads.all for hold in head.holds),
            evictions=tuple(evict for head in self.heads.all for evict in self._evictions(head)),
            waiting=self.told.waiting,
            shapes=tuple(self._whole_splits()),
            unsplit=tuple(self.unsplit),
            taken=tuple(self.taken),
            quota=self.told.quota,
        )

    # ---- one unit

    def _look_at(self, unit: Unit) -> None:
        together, refusal = self._within_quota(unit)
        if together is None:
            assert refusal is not None
            self._over_quota(unit, refusal)
            return
        where = self._where_now(together)
        if isinstance(where, Unassigned):
            self.told.say(unit, where.reason)
        elif where is None:
            self._waits(together, unit)
        elif (over := self._beyond_quota(together, where)) is not None:
            self._over_quota(unit, over)
        else:
            self._take(unit, where)
            for member in unit.members:
                if member.attempt not in where:  # the rest of one that starts with its least joins one by one
                    self._look_at(replace(unit, members=(member,), least=0))

    def _within_quota(self, unit: Unit) -> tuple[Unit | None, Refusal | None]:
        """The unit, or as much of it as must start together, where its workspace may start that now."""
        if not self.ledger.limits(unit.job):
            return unit, None
        gang = len(unit.members) > 1
        refusal = self.ledger.refuses(unit.job, [one.ask for one in unit.members], gang=gang)
        if refusal is None:
            return unit, None
        if 0 < unit.least < len(unit.members):
            fewest = replace(unit, members=unit.members[: unit.least], least=0)
            refusal = self.ledger.refuses(unit.job, [one.ask for one in fewest.members], gang=gang)
            if refusal is None:
                return fewest, None
        return None, refusal

    def _beyond_quota(self, unit: Unit, where: Mapping[AttemptId, str]) -> Refusal | None:
        """What takes every free GPU has asked for the fewest; where it goes, it may take more than its quota has."""
        if not self.ledger.limits(unit.job) or not any(one.ask.gpu_kind.every for one in unit.members):
            return None
        machines, index = self.rooms.machines, self.rooms.index
        at = [(machines[index[where[one.attempt]]], one.ask) for one in unit.members if one.attempt in where]
        return self.ledger.refuses(unit.job, [settled(*each) for each in at], gang=len(unit.members) > 1)

    def _over_quota(self, unit: Unit, refusal: Refusal) -> None:
        if not refusal.reserved:
            self.told.on_quota(unit, refusal)
            return
        mine = (head for head in self.heads.all if head.unit.job.workspace == unit.job.workspace)
        self.told.behind(unit, next(mine))

    # ---- now

    def _where_now(self, unit: Unit) -> Mapping[AttemptId, str] | Unassigned | None:
        bits = self.heads.bits(unit)
        if self.gangs.is_plain(unit, unit.members):
            member = unit.members[0]
            i = self._first_fit(unit, self.rooms.kind(member.ask), bits)
            return None if i == NOWHERE else {member.attempt: self.rooms.machines[i].worker}
        found = self.gangs.fit(unit, self.heads.kept(bits), bits)
        return found if found is None or isinstance(found, Unassigned) else found.where

    def _first_fit(self, unit: Unit, kind: Kind, bits: int) -> int:
        ask, machines, lets, avoid = kind.ask, self.rooms.machines, self.heads.lets, unit.avoid

        def may(i: int) -> bool:
            return fits(machines[i], ask) and lets(i, ask, bits) and machines[i].worker not in avoid

        start = kind.cursors.get(bits, 0)
        i = self.rooms.find(kind, start, may)
        if not avoid:  # what this unit may not use, others of its kind may
            kind.cursors[bits] = len(machines) if i == NOWHERE else i
        return i

    def _take(self, unit: Unit, where: Mapping[AttemptId, str]) -> None:
        devices = self._occupy(unit, where)
        (self.placed if unit.placed_by_tick else self.taken).append(PlaceUnit(unit.job, where, devices))

    def _occupy(self, unit: Unit, where: Mapping[AttemptId, str]) -> Mapping[AttemptId, tuple[str, ...]]:
        """Returns the GPUs of those members that take every free one."""
        devices = {}
        ends_by = None if unit.time_limit_s is None else self.board.now + unit.time_limit_s
        gang = len(unit.members) > 1
        for member in unit.members:
            worker = where.get(member.attempt)
            if worker is not None:
                i = self.rooms.index[worker]
                task = Running(member.attempt, member.ask, unit.priority, ends_by=ends_by, gang=gang)
                ask = self.rooms.take(i, task)
                self.gangs.took(i, unit.job, member.ask.apart)
                self.heads.took(i)
                self.ledger.charge(unit.job, (ask,))
                if member.ask.gpu_kind.every:
                    devices[member.attempt] = ask.devices
        return devices

    # ---- later, or never

    def _waits(self, unit: Unit, whole: Unit) -> None:
        fewest = 0 < unit.least < len(unit.members)
        members: Sequence[Member] = unit.members[: unit.least] if fewest else unit.members
        kinds = list({id(kind): kind for kind in (self.rooms.kind(one.ask) for one in members)}.values())
        plain = self.gangs.is_plain(unit, members)
        head = self.heads.over(kinds)
        if head is not None and (self.told.knows(unit) or plain):
            self.told.behind(unit, head)
            return
        if self._never(unit, members, kinds):
            self.told.no_machine(unit, whole)
            return
        if head is not None:
            self.told.behind(unit, head)
            return
        could_use = self.gangs.could_use(kinds, unit.avoid)
        made = self.heads.make(replace(unit, members=tuple(members), least=0), members, could_use)
        if made is None:
            self._behind_or_never(unit, whole, could_use)
            return
        self.ledger.set_aside(unit.job, [one.ask for one in members])
        self.told.head(made.unit, made)

    def _behind_or_never(self, unit: Unit, whole: Unit, could_use: Sequence[int]) -> None:
        ahead = self.heads.ahead(could_use)
        if ahead is not None:
            self.told.behind(unit, ahead)
        else:
            self.told.no_machine(unit, whole)

    def _never(self, unit: Unit, members: Sequence[Member], kinds: Sequence[Kind]) -> bool:
        """Whether no machines could ever take it."""
        if unit.avoid:
            nowhere = not self.gangs.could_use(kinds, unit.avoid)
        else:
            nowhere = all(self.rooms.first_ever(kind) == NOWHERE for kind in kinds)
        return nowhere or (not self.gangs.is_plain(unit, members) and self.gangs.never(unit, members, kinds))

    def _shape(self, unit: Unit) -> None:
        """A total that is not split yet. It is split by the room there is; then its room is left alone, since it comes
        before whatever follows. Where there is none, it waits in the line like any other, as it would be split if
        nothing ran; it is tried again when a minute is over, and meanwhile keeps its place and what is held for it."""
        asks = [one.ask for one in unit.members]
        refusal = self.ledger.refuses(unit.job, asks, gang=False) if self.ledger.limits(unit.job) else None
        if refusal is not None:
            self._over_quota(unit, refusal)
            return
        why = unit.unsplit
        if not why:
            kept = self.heads.kept(self.heads.bits(unit))
            found = shaping.choose(unit, self.gangs.spots, self.board.now, kept=kept)
            if isinstance(found, Shaped):
                self.shapes.append(found)
                ready = shaping.shaped(unit, found.tasks, found.gpus_each)
                where = self._where_now(ready)
                if where is not None and not isinstance(where, Unassigned):
                    self._occupy(ready, where)
                return
            why = found.reason
            if self.told.ready:  # where no machine speaks there was nothing to choose from
                self.unsplit.append(Unsplit(unit.job, unit.group, why))
        self.told.say(unit, why)
        later = shaping.choose(unit, self.gangs.empty, self.board.now)
        if isinstance(later, Shaped):
            split = shaping.shaped(unit, later.tasks, later.gpus_each)
            self._waits(split, split)

    def _whole_splits(self) -> Iterator[Shaped]:
        """Those of jobs of which every total found its split: one record says them all, and it is written once."""
        wanted = Counter(unit.job for unit in self.board.units if unit.shape)
        found = Counter(one.job for one in self.shapes)
        return (one for one in self.shapes if found[one.job] == wanted[one.job])

    # ---- preemption

    def _evictions(self, head: Head) -> list[Evict]:
        if not head.evicts:
            return []
        found = []
        for one in head.victims:
            mine = one.job.workspace == head.unit.job.workspace
            why = reasons.preempted(head.unit.job.name if mine else says.ELSEWHERE)
            found.append(Evict(one.attempt, self.heads.worker_of(one), head.unit.members[0].attempt, why))
        return found
