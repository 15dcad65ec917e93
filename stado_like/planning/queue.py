"""The part of a world that placement is about: the board, and what of the queue's records is to be set right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.keys import Order
from stado_like.planning.board import Board, Hold
from stado_like.planning.holds import in_one_order

SAME_START_S = 1.0
RENEWED_AFTER_S = 300.0


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An entry in the wrong index, and the index where it belongs. Empty: it says what its job asked for before its
    total was split, and another one takes its place."""

    key: str
    attempt: AttemptId
    to: str


@dataclass(frozen=True, slots=True)
class Queue:
    """`late`: orders to start that were refused, or not claimed in time. `keys`: where the entries of waiting attempts
    lie, or are moved to. `first`: of each job that waits, the attempt that its reason is about, and since when it
    waits; `said`: its reason, where it is on no board now. `gangs`: the generation that a placement of a gang begins,
    or adds to; `tended`: gangs that a tick looks after."""

    board: Board
    held_at: float = 0.0
    """When the holds that stand were written."""
    misplaced: tuple[Misplaced, ...] = ()
    late: tuple[Order, ...] = ()
    keys: Mapping[AttemptId, str] = field(default_factory=dict)
    first: Mapping[JobId, tuple[AttemptId, float]] = field(default_factory=dict)
    said: Mapping[JobId, str] = field(default_factory=dict)
    gangs: Mapping[JobId, int] = field(default_factory=dict)
    tended: tuple[JobId, ...] = ()

    def holds_stand(self, holds: Iterable[Hold]) -> bool:
        """Whether this is what is held already: a write would tell nobody anything. A start that moved by less than a
        second is none."""
        mine, theirs = in_one_order(self.board.holds), in_one_order(holds)
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))

    @property
    def holds_fade(self) -> bool:
        """Whether workers will soon take them for those of a tick that is no more."""
        return bool(self.board.holds) and self.board.now - self.held_at > RENEWED_AFTER_S


def _same(one: Hold, other: Hold) -> bool:
    if bool(one.starts_at) != bool(other.starts_at) or abs(one.starts_at - other.starts_at) >= SAME_START_S:
        return False
    return _but_start(one) == _but_start(other)


def _but_start(one: Hold) -> tuple[object, ...]:
    return one.job, one.worker, one.cpu_millis, one.memory_bytes, one.gpus, one.priority, one.whole, one.created_ms
