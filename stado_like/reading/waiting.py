"""Why a task waits, as far as a reader can tell without planning.

The order of the questions: is the job being stopped; has its lane come to it; does a retry wait for its time; is it
on the queue at all; is there a worker. A tick is named as missing only where only a tick can help: a retry that is
due and was not moved, a job whose entries were never written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stado_like.bucket import entries, lanes
from stado_like.bucket.load import TaskNow
from stado_like.bucket.settle import verdict_reason
from stado_like.job import keys, reasons
from stado_like.job.records import End
from stado_like.job.terms import Terms
from stado_like.reading.shapes import iso
from stado_like.reading.surroundings import Surroundings

if TYPE_CHECKING:
    from stado_like.reading.view import Reading

OVERDUE_S = 60.0
"""A worker that is there moves a due retry at its next sweep, a minute later at most."""


@dataclass(frozen=True, slots=True)
class Waits:
    reason: str
    restart_at: float = 0.0


def why(reading: Reading, task: TaskNow, *, first: bool, now: float) -> Waits:
    """`first`: the first waiting task of its job, for which the store is asked a little more."""
    terms = reading.terms
    if reading.verdict is not None:
        return Waits(verdict_reason(reading.verdict))
    if task.open is None or not task.released:
        return Waits(reasons.array_full(terms.lane_width) if terms.release_by_end else reasons.WAITING_TO_START)
    due_at = _restart_at(task.last)
    if task.last is not None and due_at > now:
        return Waits(restart_reason(task.last), due_at)
    if not first:
        return Waits(no_room(reading.around, terms), due_at)
    return Waits(_first(reading, task, due_at, now), due_at)


def _first(reading: Reading, task: TaskNow, due_at: float, now: float) -> str:
    """Is it on the queue at all? The claim and the end are asked after the entry: one that moves on is met further
    on.
    """
    bucket, a, terms = reading.bucket, task.open, reading.terms
    assert a is not None
    possible = entries.all_keys(reading.job, terms, a, task.last)
    here = bucket.present(*possible)
    if due_at and here[-1] and len(here) > 1 and now - due_at > OVERDUE_S and not reading.around.ticks:
        return no_tick(reading.around)
    if not any(here) and not any(bucket.present(keys.running(a))) and not any(bucket.present(keys.end(a))):
        return reasons.WAITING_TO_BE_CREATED if reading.around.ticks else no_tick(reading.around)
    if task.last is not None and not reading.around.workers:
        return no_room(reading.around, terms)
    if task.last is not None and task.last.restart:
        return restart_reason(task.last)
    return no_room(reading.around, terms)


def is_unreleased(reading: Reading, rank: int) -> bool:
    """Whether nothing of a rank was ever written: its lane has not come to it."""
    return not any(lanes.seen(reading.bucket, reading.job, reading.terms, keys.AttemptId(reading.j, rank, 1)))


def _restart_at(last: End | None) -> float:
    """When a retry may start, where that is later than the end before it."""
    if last is None or last.due_ms <= last.ended_at * 1000 + entries.MOVE_AT_ONCE_MS:
        return 0.0
    return last.due_ms / 1000


def restart_reason(last: End) -> str:
    """The words for a task that waits to run again."""
    budget, count, limit = last.restart.get("budget"), last.restart.get("count") or 0, last.restart.get("limit")
    if budget in ("failures", "machine") and limit is not None:
        return reasons.restarted(budget == "failures", count, limit)
    return reasons.waiting_again(last.reason)


def no_room(around: Surroundings, terms: Terms) -> str:
    """Why an entry that anybody may claim is not claimed yet."""
    nodes = around.nodes(terms.ask)
    if not any(node.fits for node in nodes):
        return reasons.no_machine_fits(sum(one.is_ready for one in around.workers), len(nodes))
    return reasons.WAITING_TO_START


def no_tick(around: Surroundings) -> str:
    at, _ = around.last_tick
    return reasons.no_tick(iso(at) or "it was made")
