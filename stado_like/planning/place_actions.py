"""What a placement has a tick do, as data; `bucket/place` carries it out. And in which order, which is not obvious.

    entries that lie wrong are moved       a quota was set, or taken away
    orders that nobody claimed are taken back; gangs are looked after
    shapes                                 ranks exist only after them
    holds                                  before anybody is told to stop for them
    evictions
    orders, in the order of the queue

Any of it may be lost, or done twice by two ticks: the next one sees the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.keys import Order
from stado_like.planning.board import Hold
from stado_like.planning.placing import Placing, Shaped, Unsplit
from stado_like.planning.queue import Queue


@dataclass(frozen=True, slots=True)
class MoveEntry:
    """An entry that lies in the wrong index of the queue. `to`: the index where it belongs; empty: as `Misplaced`."""

    key: str
    attempt: AttemptId
    to: str


@dataclass(frozen=True, slots=True)
class TakeBack:
    """An order to start that its worker refused, or has not claimed in time."""

    order: Order


@dataclass(frozen=True, slots=True)
class DecideShape:
    """How a job's total is split into tasks, from now on; of several groups, each that left its number open."""

    shaped: tuple[Shaped, ...]

    @property
    def why(self) -> str:
        """`2 machines × 8 GPUs on Ethernet`, with groups `trainer: 2 machines × 8 GPUs on Ethernet; …`"""
        return "; ".join(f"{one.group}: {one.why}" if one.group else one.why for one in self.shaped)


@dataclass(frozen=True, slots=True)
class PutOff:
    """A total that cannot be split now: it is looked at again in a minute."""

    unsplit: Unsplit


@dataclass(frozen=True, slots=True)
class KeepRoom:
    """The room that is held from now on, in place of `before`. `nonce`: of what stands, where it only stands longer."""

    holds: tuple[Hold, ...]
    before: tuple[Hold, ...]
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class EvictOne:
    """A running task is told to stop for more urgent work, of which `head` is the first task."""

    attempt: AttemptId
    worker: str
    head: AttemptId
    reason: str


@dataclass(frozen=True, slots=True)
class PlaceOne:
    """A task is given to a worker. `key`: where its entry lies. `devices`: the GPUs it may take, of one that takes
    every free one."""

    attempt: AttemptId
    worker: str
    key: str
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaceGang:
    """Members of a gang are given to workers: a new generation whole, or such as join the one that stands. `devices`:
    as in `PlaceOne`."""

    job: JobId
    generation: int
    where: Mapping[AttemptId, str]
    devices: Mapping[AttemptId, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TendGang:
    """What is due about a gang's generation: orders, an abort, ends of what nobody holds, the next entries."""

    job: JobId


Action = MoveEntry | TakeBack | TendGang | DecideShape | PutOff | KeepRoom | EvictOne | PlaceOne | PlaceGang


def actions_of(queue: Queue, placing: Placing) -> Iterator[Action]:
    for one in queue.misplaced:
        yield MoveEntry(one.key, one.attempt, one.to)
    for order in queue.late:
        yield TakeBack(order)
    for job in queue.tended:
        yield TendGang(job)
    for job in dict.fromkeys(one.job for one in placing.shapes):
        yield DecideShape(tuple(one for one in placing.shapes if one.job == job))
    for unsplit in placing.unsplit:
        yield PutOff(unsplit)
    if not queue.holds_stand(placing.holds):
        yield KeepRoom(placing.holds, queue.board.holds)
    elif queue.holds_fade:
        yield KeepRoom(queue.board.holds, queue.board.holds, queue.board.holds_nonce)
    for evict in placing.evictions:
        yield EvictOne(evict.attempt, evict.worker, evict.head, evict.reason)
    yield from _orders(queue, placing)


def _orders(queue: Queue, placing: Placing) -> Iterator[Action]:
    """Of a gang all that is placed now at once, where its first member stands in the queue."""
    whole: defaultdict[JobId, dict[AttemptId, str]] = defaultdict(dict)
    devices: dict[AttemptId, tuple[str, ...]] = {}
    for placed in placing.placed:
        devices.update(placed.devices)
        if placed.job in queue.gangs:
            whole[placed.job].update(placed.where)
    for placed in placing.placed:
        if placed.job not in queue.gangs:
            for attempt, worker in placed.where.items():
                yield PlaceOne(attempt, worker, queue.keys[attempt], devices.get(attempt, ()))
        elif placed.job in whole:
            where = whole.pop(placed.job)
            chosen = {attempt: devices[attempt] for attempt in where if attempt in devices}
            yield PlaceGang(placed.job, queue.gangs[placed.job], where, chosen)


def describe(action: Action) -> str:
    """In a few words, for the report and `scheduler plan`."""
    match action:
        case MoveEntry():
            return f"move the entry of {action.attempt} to {action.to or 'where its shape says'}"
        case TakeBack():
            return f"take {action.order.attempt} back from {action.order.worker}, which did not claim it"
        case TendGang():
            return f"look after the gang {action.job}"
        case DecideShape():
            tasks = sum(one.tasks for one in action.shaped)
            return f"split {action.shaped[0].job} into {tasks} tasks: {action.why}"
        case PutOff():
            return f"look again in a minute how to split {action.unsplit.job}"
        case KeepRoom():
            if not action.holds:
                return "hold no room any more"
            return "hold room for " + ", ".join(dict.fromkeys(str(one.job) for one in action.holds))
        case EvictOne():
            return f"stop {action.attempt} on {action.worker} for {action.head.job}"
        case PlaceOne():
            return f"place {action.attempt} on {action.worker}"
        case PlaceGang():
            workers = ", ".join(dict.fromkeys(action.where.values()))
            return f"place {len(action.where)} of {action.job} on {workers}"
