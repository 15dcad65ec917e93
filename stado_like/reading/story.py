"""Histories as a reader tells them: every change of a task and of a job, oldest first.

No record holds a whole history. A supervisor writes what it did into its heartbeats and its end; that a task was
created, and that it went back to waiting, nobody writes down: they follow from the job's creation and from an end
that decided a retry. A job's own history follows from when its tasks ran.
"""

from __future__ import annotations

from stado_like.job import reasons
from stado_like.job.records import Change, End, History, Job
from stado_like.job.rollup import Rolled
from stado_like.job.states import TERMINAL_JOB, Decision, JobState, TaskState
from stado_like.job.terms import Terms
from stado_like.reading.shapes import TaskView
from stado_like.reading.waiting import restart_reason


def task_story(job: Job, ends: list[End], live: History | None) -> History:
    """Created, then each attempt as its end tells it, then the one that runs."""
    told = History().add(Change(state=TaskState.PENDING.value, reason=reasons.RUN_CREATED, at=job.created_ms / 1000))
    for n, end in enumerate(ends, 1):
        told = _append(told, end.history)
        if end.decision is Decision.RETRY:
            details = {"restart": {**end.restart, "attempt": n + 1}} if end.restart else {}
            again = Change(
                state=TaskState.PENDING.value,
                reason=restart_reason(end),
                at=end.ended_at,
                cause=end.cause.value,
                details=details,
            )
            told = told.add(again)
    return _append(told, live) if live is not None else told


def _append(told: History, more: History) -> History:
    for change in more.changes:
        told = told.add(change)
    return History(changes=told.changes, dropped=told.dropped + more.dropped)


def job_story(job: Job, terms: Terms, tasks: list[TaskView], rolled: Rolled, finished_at: float) -> History:
    """Pending, Running whenever at least one task ran, and the end."""
    told = History().add(Change(state=JobState.PENDING.value, reason=reasons.RUN_CREATED, at=job.created_ms / 1000))
    over = rolled.state in TERMINAL_JOB
    moments = sorted(
        moment
        for task in tasks
        for one in task.attempts
        if one.running_at
        for moment in ((one.running_at, 1), (one.ended_at, -1))
        if moment[0]
    )
    count = 0
    for at, step in moments:
        count += step
        if step > 0 and count == 1:
            reason = reasons.running(1, terms.tasks, serving=terms.service)
            told = told.add(Change(state=JobState.RUNNING.value, reason=reason, at=at))
        elif step < 0 and count == 0 and not (over and at >= moments[-1][0]):
            told = told.add(Change(state=JobState.PENDING.value, reason=reasons.WAITING_TO_START, at=at))
    if over:
        told = told.add(Change(state=rolled.state.value, reason=rolled.reason, at=finished_at))
    return told
