"""Rules about jobs that wait for others, belong to others, save what they reached, and are moved or put back."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause
from tests.chaos.history import Harm, History, Sent

TTL_S = 10.0
STARTS_WITHIN_S = 2 * TTL_S
"""From a gate that was passed to the process: half a TTL at most, unless a machine was stopped meanwhile."""


def _started(history: History) -> dict[tuple[JobId, int], float]:
    """When each task was first started."""
    found: dict[tuple[JobId, int], float] = {}
    for line in history.lines:
        task = (line.attempt.job, line.attempt.rank)
        if line.what == "start" and line.at < found.get(task, float("inf")):
            found[task] = line.at
    return found


def _over_at(history: History, j: JobId) -> float | None:
    """When a job of one task was over. None: nobody saw it."""
    last = history.final_end(j, 0)
    return history.ends[last].end.ended_at if last is not None else None


def waiters_wait(history: History) -> Iterator[str]:
    """A job with `after` starts nothing before the awaited job has ended; nor does a group before the one it needs."""
    started = _started(history)
    for one in history.acknowledged:
        if one.id is None:
            continue
        begun = started.get((one.id, 0))
        if one.after is not None and begun is not None:
            over = _over_at(history, one.after)
            if over is not None and begun < over - 0.1:
                yield f"{one.id} started {over - begun:.1f} s before {one.after}, which it waits for, had ended"
        yield from _groups_wait(one, started)


def _groups_wait(one: Sent, started: dict[tuple[JobId, int], float]) -> Iterator[str]:
    assert one.id is not None
    for rank, needed in one.needs.items():
        begun = started.get((one.id, rank))
        missing = [other for other in needed if started.get((one.id, other), float("inf")) > (begun or 0.0)]
        if begun is not None and missing:
            yield f"task {rank} of {one.id} started before {missing}, which it depends on"


def children_go_with_their_parents(history: History) -> Iterator[str]:
    """No child is started long after its parent was over."""
    for one in history.acknowledged:
        over = _over_at(history, one.parent) if one.parent is not None else None
        if over is None:
            continue
        for line in history.lines:
            late = line.attempt.job == one.id and line.what == "start" and line.at > over + STARTS_WITHIN_S
            if late and not _was_stopped(history, line.attempt, over, line.at):
                yield f"{line.attempt} started {line.at - over:.1f} s after its parent {one.parent} was over"


def _was_stopped(history: History, a: AttemptId, begun: float, ended: float) -> bool:
    """Whether something stood still that was past its gate."""
    worker = history.ends[a].end.worker if a in history.ends else ""
    return any(one.worker == worker and one.covers(begun, ended, 0.0) and one.until > one.at for one in history.strikes)


def nobody_is_stopped_unasked(history: History) -> Iterator[str]:
    """An attempt is moved only off a machine that was drained, and put back only where somebody asked for that."""
    asked = {(one.id, rank) for one in history.acknowledged for rank in one.requeued}
    for a, seen in sorted(history.ends.items()):
        end = seen.end
        if end.cause is Cause.REQUEUED and (a.job, a.rank) not in asked:
            yield f"{a} was put back into the queue, and nobody had asked for that"
        drained = any(
            strike.harm is Harm.MACHINE_DRAINED
            and strike.worker == end.worker
            and strike.covers(end.claimed_at, seen.seen_at, TTL_S)
            for strike in history.strikes
        )
        if end.cause is Cause.MOVED and not drained:
            yield f"{a} was moved off {end.worker}, which nobody had drained"


def orders_spend_nothing(history: History) -> Iterator[str]:
    """Whoever is moved or put back has spent neither failures nor machine losses by that, and goes on."""
    for a, seen in sorted(history.ends.items()):
        if seen.end.cause not in (Cause.MOVED, Cause.REQUEUED):
            continue
        before = history.ends.get(a.previous) if a.previous is not None else None
        spent = (before.end.budgets.failures, before.end.budgets.machine) if before is not None else (0, 0)
        if (before is not None or a.n == 1) and (seen.end.budgets.failures, seen.end.budgets.machine) != spent:
            yield f"{a} was {seen.end.cause.value}, which spent {seen.end.budgets}"


def checkpoints_were_reached(history: History) -> Iterator[str]:
    """What an attempt finds in its checkpoint directory is what an earlier attempt of its task had reached."""
    lines = history.by_attempt()
    for attempts in history.by_task().values():
        reached = 0
        for a in attempts:
            said = [line.what.partition(" ") for line in lines.get(a, [])]
            for found in (int(number) for what, _, number in said if what == "resumed"):
                if found > reached + 1:  # the last one may have died between its file and its line
                    yield f"{a} found {found} in its checkpoint, and nobody before it had come further than {reached}"
            reached = max([reached, *(int(number) for what, _, number in said if what == "kept")])


def resumed(history: History) -> int:
    """How many attempts went on from a checkpoint."""
    return sum(1 for line in history.lines if line.what.startswith("resumed ") and line.what != "resumed 0")


COMPANY = {
    "waiters that did not wait": waiters_wait,
    "children after their parents": children_go_with_their_parents,
    "attempts stopped unasked": nobody_is_stopped_unasked,
    "orders that spent something": orders_spend_nothing,
    "checkpoints of nobody": checkpoints_were_reached,
}
