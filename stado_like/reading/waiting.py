"""Why a task waits, as far as a reader can tell without planning.

The order of the questions: is the job being stopped; does it wait for other jobs; has its lane come to it, are the
groups up that its own waits for; does a retry wait for its time; is it on the queue at all; may only a placement start
it; is there a worker. A tick is named as missing only where only a tick can help: a retry that is due and was not
moved, a job whose entries were never written or that only a placement may start, a group or a job whose time has
come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stado_like.bucket import awaited, entries, groups, lanes
from stado_like.bucket.load import TaskNow
from stado_like.bucket.settle import verdict_reason
from stado_like.job import keys, reasons
from stado_like.job.records import End
from stado_like.job.states import Cause, Decision
from stado_like.job.terms import Terms
from stado_like.planning import awaited as awaited_rule
from stado_like.planning import groups as group_rule
from stado_like.reading.shapes import iso
from stado_like.reading.surroundings import TICK_QUIET_S, Surroundings

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
    if terms.after and task.last is None and "released" not in reading.listed.own:
        return Waits(_awaited(reading))
    if task.last is not None and task.last.decision is Decision.GANG:
        return _of_gang(reading, task, first=first, now=now)
    if task.open is None or not task.released:
        return Waits(_unreleased(reading, task.rank))
    due_at = _restart_at(task.last)
    if task.last is not None and due_at > now:
        return Waits(restart_reason(task.last), due_at)
    if not first:
        return Waits(no_room(reading.around, terms, task.rank), due_at)
    return Waits(_first(reading, task, due_at, now), due_at)


def _of_gang(reading: Reading, task: TaskNow, *, first: bool, now: float) -> Waits:
    """A member that ended and starts again with the others, or will, once all of them have ended."""
    if reading.listed.standing is None or task.last is None:
        return Waits(reasons.WAITING_TO_START)
    standing, _ = reading.listed.standing
    placed = standing.placement is not None and standing.placement.attempts[task.rank] > task.last_n
    told = "" if placed else standing.told
    due_at = 0.0 if placed else standing.not_before
    if due_at <= now and first and not placed and task.open is not None:
        return Waits(_hinted(reading, task.open) or told or held(reading.around, reading.terms))
    return Waits(told or reasons.WAITING_TO_START, due_at if due_at > now else 0.0)


def _awaited(reading: Reading) -> str:
    if "" not in reading.groups:
        came = awaited.awaited(reading.bucket, reading.terms, {})
        reading.groups[""] = awaited_rule.why_waits(reading.j, came)
    return reading.groups[""] or awaits_a_tick(reading.around)


def awaits_a_tick(around: Surroundings) -> str:
    return reasons.WAITING_TO_START if around.ticks else no_tick(around)


def _unreleased(reading: Reading, rank: int) -> str:
    terms = reading.terms
    if terms.release_by_end:
        return reasons.array_full(terms.lane_width)
    group = terms.group_of(rank)
    if not group.depends_on:
        return reasons.WAITING_TO_START
    if group.name not in reading.groups:
        members = groups.members(
            reading.bucket, reading.j, terms, group_rule.awaited(terms, (group.name,)), reading.listed
        )
        reading.groups[group.name] = group_rule.wait_reason(terms, group, members)
    return reading.groups[group.name] or created_by_a_tick(reading.around)


def created_by_a_tick(around: Surroundings) -> str:
    """It waits for nothing but the next tick."""
    return reasons.WAITING_TO_BE_CREATED if around.ticks else no_tick(around)


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
        return created_by_a_tick(reading.around)
    if terms.held:
        return _hinted(reading, a) or held(reading.around, terms)
    if _is_held_back(possible, here) and not reading.around.ticks:
        return no_tick(reading.around)  # its workspace has a quota
    if reading.around.pause is not None:
        return reasons.queue_paused(reading.around.pause.why)
    if task.last is not None and not reading.around.workers:
        return no_room(reading.around, terms, task.rank)
    hinted = _hinted(reading, a)
    if hinted:
        return hinted
    if task.last is not None and task.last.restart:
        return restart_reason(task.last)
    return no_room(reading.around, terms, task.rank)


def _is_held_back(possible: tuple[str, ...], here: list[bool]) -> bool:
    return any(there and key.startswith(keys.QUEUED_HELD) for key, there in zip(possible, here, strict=True))


def _hinted(reading: Reading, a: keys.AttemptId) -> str:
    """What a tick noted of this attempt, while ticks come and it is young. Not of the machines: those are asked here,
    later than the tick did."""
    found = reading.hint
    if found is None or found.record.attempt != str(a) or found.age_s > TICK_QUIET_S:
        return ""
    said = found.record.reason
    if said == reasons.WAITING_TO_START or said.startswith(_NO_MACHINE) or not reading.around.ticks:
        return ""
    return said


_NO_MACHINE = reasons.no_machine_fits(0, 0).partition(":")[0]


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
    preemptor = _preemptor(last)
    if preemptor:
        return reasons.queued_again(preemptor)
    if last.cause is Cause.GANG:
        return last.reason
    count, limit = last.restart.get("count") or 0, last.restart.get("limit")
    if limit is None:
        return reasons.waiting_again(last.reason)
    match last.cause:
        case Cause.STALLED:
            return reasons.restarted_after_stall(count, limit)
        case Cause.GPU_FAULT:
            return reasons.restarted_after_gpu_fault(count, limit)
        case Cause.FAILURE | Cause.MACHINE_LOST:
            return reasons.restarted(last.cause is Cause.FAILURE, count, limit)
        case _:
            return reasons.waiting_again(last.reason)


def waits_as_job(last: End) -> str:
    """What a job says for a task that waits to run again, where that is not what the task says; else empty."""
    return reasons.waiting_again(last.reason) if _preemptor(last) else ""


def _preemptor(last: End) -> str:
    """The run for which an attempt was preempted, as its reason names it."""
    before, _, after = reasons.preempted("\0").partition("\0")
    named = last.cause is Cause.PREEMPTED and last.reason.startswith(before) and last.reason.endswith(after)
    return last.reason[len(before) : -len(after)] if named else ""


def no_room(around: Surroundings, terms: Terms, rank: int = 0) -> str:
    """Why an entry is not claimed yet: only a placement may start it, the queue is paused, or no machine fits."""
    if terms.held:
        return held(around, terms)
    if around.pause is not None:
        return reasons.queue_paused(around.pause.why)
    nodes = around.nodes(terms, rank)
    if not any(node.fits for node in nodes):
        return reasons.no_machine_fits(sum(one.is_ready for one in around.workers), len(nodes))
    return reasons.WAITING_TO_START


def held(around: Surroundings, terms: Terms) -> str:
    """Of a job that only a placement may start: why, or that nobody places."""
    waits_for_a_tick = terms.held in (reasons.WAITING_TO_START, reasons.WAITING_TO_BE_CREATED)
    return no_tick(around) if waits_for_a_tick and not around.ticks else terms.held


def no_tick(around: Surroundings) -> str:
    at, _ = around.last_tick
    return reasons.no_tick(iso(at) or "it was made")
