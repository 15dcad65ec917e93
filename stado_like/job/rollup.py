"""Tasks' states -> the job's state and reason. A pure function, evaluated by whoever looks.

Ours is the order of the run states: a job is over when every task is; before that an early verdict already says
what becomes of it, and the reader shows the job as it still is. Iris's own rule is kept beside it, for tools that
read that view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stado_like.job import reasons
from stado_like.job.states import ACTIVE_TASK, IRIS_VIEW, TERMINAL_TASK, JobState, TaskState
from stado_like.job.terms import Terms

_LOST = (TaskState.DOWN, TaskState.PREEMPTED)
_GRAVEST_FIRST = (TaskState.DOWN, TaskState.PREEMPTED, TaskState.FAILED)
_SEEN_RUNNING = (TaskState.RUNNING, TaskState.STALE, TaskState.STOPPING)


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """A task that is over: enough of its final end to say why the job is."""

    rank: int
    name: str
    state: TaskState
    reason: str
    machine: str = ""
    overran: bool = False
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Rolled:
    """`stops`: what the tasks say that it stops, where that is more than `Run failed` and its like."""

    state: JobState
    reason: str
    stops: str = ""


def over(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled:
    """The verdict when every task has ended. `ends` in rank order, one per task."""
    if terms.gang:
        return _gang_over(terms, ends)
    decided = _by_completion(terms, ends) or _too_many_failed(terms, ends)
    return Rolled(decided.state, decided.reason) if decided is not None else _when_all_ended(terms, ends)


def _gang_over(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled:
    """A gang does not run without one of its members: the gravest of them says why, and of equals the first."""
    bad = [one for one in ends if one.state in (TaskState.FAILED, *_LOST)]
    if bad:
        first = min(bad, key=lambda one: (_GRAVEST_FIRST.index(one.state), one.at, one.rank))
        return Rolled(JobState.FAILED, reasons.gang_needs_it(why_ended(first)[1]))
    return _completed(terms, ends) or _when_all_ended(terms, ends)


def _completed(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled | None:
    """With `complete_with`: every member of that group has exited 0."""
    group = terms.group(terms.complete_with) if terms.complete_with else None
    if group is None:
        return None
    done = sum(1 for one in ends if one.rank in group.ranks and one.state is TaskState.COMPLETED)
    return Rolled(JobState.COMPLETED, reasons.group_completed(group.name)) if done == group.tasks else None


def early(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled | None:
    """The verdict that the final ends of some tasks make due, whatever becomes of the others. None: there is none."""
    decided = (
        _completed(terms, ends) if terms.gang else _by_completion(terms, ends) or _too_many_failed(terms, ends)
    )
    late = next((one for one in ends if one.state is TaskState.UNSCHEDULABLE), None)
    return decided or (Rolled(JobState.UNSCHEDULABLE, late.reason) if late is not None else None)


def needs_all_ends(terms: Terms, end: TaskEnd) -> bool:
    """Whether this end may make a verdict due together with others that came before it."""
    group = terms.group(terms.complete_with) if terms.complete_with else None
    return end.state is TaskState.FAILED or (group is not None and end.rank in group.ranks)


def _too_many_failed(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled | None:
    failed = [one for one in ends if one.state is TaskState.FAILED]
    if len(failed) <= terms.max_task_failures:
        return None
    stops = reasons.WORKER_OVERRAN if failed[-1].overran else ""
    if terms.on_failure == "FailJob":
        stops = stops or reasons.FAILS_ON_A_FAILURE
    return Rolled(JobState.FAILED, why_failed(terms, failed), stops)


def _by_completion(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled | None:
    """With `complete_with`: the run is over with that group, and cannot do without the others until then."""
    group = terms.group(terms.complete_with) if terms.complete_with else None
    if group is None:
        return None
    for one in ends:
        if one.rank not in group.ranks and one.state in (TaskState.FAILED, *_LOST):
            return Rolled(JobState.FAILED, reasons.cannot_finish_without(why_ended(one)[1], group.name))
    own = [one for one in ends if one.rank in group.ranks]
    if len(own) < group.tasks:
        return None
    rolled = _too_many_failed(terms, own) or _when_all_ended(terms, own)
    return Rolled(rolled.state, reasons.group_completed(group.name)) if rolled.state is JobState.COMPLETED else rolled


def _when_all_ended(terms: Terms, ends: Sequence[TaskEnd]) -> Rolled:
    lost = [one for one in ends if one.state in _LOST]
    if lost:
        return Rolled(JobState.FAILED, _why_lost(terms, lost))
    if any(one.state is TaskState.UNSCHEDULABLE for one in ends):
        return Rolled(JobState.UNSCHEDULABLE, next(one.reason for one in ends if one.state is TaskState.UNSCHEDULABLE))
    if any(one.state is TaskState.CANCELLED for one in ends):
        return Rolled(JobState.CANCELLED, _why_cancelled(terms, ends))
    return Rolled(JobState.COMPLETED, reasons.ALL_COMPLETED)


def why_failed(terms: Terms, failed: Sequence[TaskEnd]) -> str:
    """The job's reason, from the tasks that failed for good, first first."""
    _, worded = why_ended(failed[0])
    return worded if len(failed) == 1 else reasons.several_failed(len(failed), terms.tasks, worded)


def why_ended(end: TaskEnd) -> tuple[JobState, str]:
    """What one task that ended for good, and not Completed, makes of its job, and how that is worded."""
    if end.state is TaskState.CANCELLED:
        return JobState.CANCELLED, reasons.worker_stopped(end.name, end.reason)
    if end.state in _LOST:
        return JobState.FAILED, reasons.worker_lost(end.name, end.machine, end.reason)
    if end.overran:
        return JobState.FAILED, reasons.worker_overran(end.name, end.reason)
    return JobState.FAILED, reasons.worker_failed(end.name, end.machine, end.reason)


def _why_lost(terms: Terms, lost: Sequence[TaskEnd]) -> str:
    _, worded = why_ended(lost[0])
    return worded if len(lost) == 1 else reasons.several_failed(len(lost), terms.tasks, worded)


def _why_cancelled(terms: Terms, ends: Sequence[TaskEnd]) -> str:
    return ends[0].reason if terms.tasks == 1 else reasons.SOME_CANCELLED


def going(terms: Terms, counts: Counter[TaskState], waiting_reason: str) -> Rolled:
    """The state of a job that is not over. `waiting_reason`: why its first waiting task waits."""
    seen_running = sum(counts[state] for state in _SEEN_RUNNING)
    if terms.barrier and any(counts[state] for state in _GATHERING):
        total = terms.least or terms.tasks
        if seen_running < total:
            return Rolled(JobState.STARTING, reasons.starting_together(min(total, _at_barrier(counts)), total))
    if seen_running:
        return Rolled(JobState.RUNNING, reasons.running(seen_running, terms.tasks, serving=terms.service))
    if any(counts[state] for state in ACTIVE_TASK):
        return Rolled(JobState.PENDING, reasons.WAITING_TO_START)
    return Rolled(JobState.PENDING, waiting_reason or reasons.WAITING_TO_START)


_GATHERING = (TaskState.PREPARING, TaskState.PULLING, TaskState.READY_TO_START, TaskState.STARTING)


def _at_barrier(counts: Counter[TaskState]) -> int:
    """How many members of a gang wait at its barrier, or are beyond."""
    return sum(counts[state] for state in (TaskState.READY_TO_START, TaskState.STARTING, *_SEEN_RUNNING))


def iris_job_state(terms: Terms, counts: Counter[TaskState]) -> str:
    """Iris's `_compute_job_state`, in its order, over its own task states."""
    iris: Counter[str] = Counter()
    for state, count in counts.items():
        iris[IRIS_VIEW[state].shown] += count
    total = sum(counts.values())
    if total and iris["succeeded"] == total:
        return "JOB_STATE_SUCCEEDED"
    if iris["failed"] > terms.max_task_failures:
        return "JOB_STATE_FAILED"
    if iris["unschedulable"]:
        return "JOB_STATE_UNSCHEDULABLE"
    if iris["killed"]:
        return "JOB_STATE_KILLED"
    if (
        sum(counts[state] for state in TERMINAL_TASK) == total
        and iris["worker_failed"] + iris["preempted"] + iris["cosched_failed"]
    ):
        return "JOB_STATE_WORKER_FAILED"
    if iris["assigned"] or iris["building"] or iris["running"]:
        return "JOB_STATE_RUNNING"
    return "JOB_STATE_PENDING"
