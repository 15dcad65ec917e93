"""What a reader knows of a job, as frozen values, and the one JSON form in which it leaves the system.

The JSON is a contract (fields are added, never renamed), so it is built here by name and not derived from the
dataclasses, whose fields may move. Times are ISO 8601 UTC with milliseconds, durations seconds. An absent fact is
null, not 0 and not "".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job import labels, rollup
from stado_like.job.keys import JobId
from stado_like.job.records import Budgets, Change, History, Job, LastFailure, LogTail
from stado_like.job.states import IRIS_VIEW, TERMINAL_JOB, TERMINAL_TASK, JobState, TaskState
from stado_like.job.straggler import Straggler, straggler
from stado_like.job.terms import Terms, display_name
from stado_like.reading.job_row import JobRow as JobRow
from stado_like.reading.job_row import iso as iso
from stado_like.reading.job_row import row_json as row_json


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt of a task. `state` is its outcome once it ended (`ended_at` is set then), else what its supervisor
    last said.
    """

    n: int
    state: str
    reason: str
    cause: str = ""
    worker: str = ""
    decision: str = ""
    exit_code: int | None = None
    signal: str | None = None
    claimed_at: float = 0.0
    started_at: float = 0.0
    running_at: float = 0.0
    ended_at: float = 0.0
    due_at: float = 0.0
    notes: tuple[str, ...] = ()
    restart: Mapping[str, Any] | None = None
    requests: Mapping[str, Any] | None = None
    log: LogTail | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A change with the attempt it belongs to (0: none) and who held that. `as_job`: how the job says it, if in other
    words."""

    attempt: int
    worker: str
    change: Change
    as_job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """One rank. `attempt` is the open attempt, or the last one. `restart_at`: a retry waits until then (0: it does
    not).
    """

    rank: int
    name: str
    state: TaskState
    reason: str
    worker: str = ""
    attempt: int = 1
    restarts: Budgets = Budgets()  # noqa: RUF009 - frozen: one shared zero
    previous: AttemptView | None = None
    restart_at: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    last_failure: LastFailure | None = None
    history: History = History()  # noqa: RUF009 - frozen: one shared empty history
    story: tuple[Told, ...] = ()
    """Every change that is known, of which `history` keeps the first and the last."""
    attempts: tuple[AttemptView, ...] = ()
    released: bool = True
    heard_s: float | None = None
    """Age of the last heartbeat, or of the claim before the first one; None when nobody holds the task."""
    labels: Mapping[str, str] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    """What the open attempt says of itself, or the last one said; `steps`: `(store time, step)` of it."""
    progress_at: float = 0.0
    steps: tuple[tuple[float, ...], ...] = ()
    stall: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    answer: str | None = None
    collected: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL_TASK


@dataclass(frozen=True, slots=True)
class Node:
    """A machine, and what keeps the job's tasks off it."""

    name: str
    reasons: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job at one instant of store time, `now`."""

    id: JobId
    job: Job
    terms: Terms
    state: JobState
    reason: str
    started_at: float
    finished_at: float
    updated_at: float
    history: History
    tasks: tuple[TaskView, ...]
    now: float
    story: tuple[Told, ...] = ()
    """The job's own changes, every one."""
    nodes: tuple[Node, ...] = ()
    """While a task waits for a machine: every machine."""

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL_JOB

    @property
    def created_at(self) -> float:
        return self.job.created_ms / 1000

    @property
    def counts(self) -> Counter[TaskState]:
        return Counter(one.state for one in self.tasks)


def job_json(view: JobView) -> dict[str, Any]:
    """The shape of `job show --json`."""
    document = view.job.document
    last = view.tasks[0].attempts[-1] if view.tasks and view.tasks[0].attempts else None
    return {
        "metadata": dict(document["metadata"]),
        "spec": dict(document["spec"]),
        "incarnation": view.id.k,
        "id": str(view.id),
        "status": {
            "state": view.state.value,
            "reason": view.reason,
            "created_at": iso(view.created_at),
            "started_at": iso(view.started_at),
            "finished_at": iso(view.finished_at),
            "updated_at": iso(view.updated_at),
        },
        "history": _history(view.history),
        "history_dropped": view.history.dropped,
        "task_names": [one.name for one in view.tasks],
        "task_counts": {state.value: count for state, count in sorted(view.counts.items())},
        "labels": labels.of_job(view.terms, view.job.submitted_by),
        "leader_task": display_name(view.terms, view.terms.leader),
        "expected_task_count": view.terms.tasks if view.terms.shaped else None,
        "shape": None,
        "placement": {"nodes": [{"name": one.name, "reasons": list(one.reasons)} for one in view.nodes]},
        "cost": None,
        "requests": dict(last.requests) if last is not None and last.requests and not view.terms.several else None,
        "submitted_by": view.job.submitted_by or None,
        "submitted_from": view.job.submitted_from or None,
        "request_id": view.job.request_id,
        "straggler": straggler_json(view),
        "tasks": [task_json(one) for one in view.tasks],
        "iris": {
            "state": rollup.iris_job_state(view.terms, view.counts),
            "task_state_counts": dict(Counter(IRIS_VIEW[one.state].shown for one in view.tasks)),
        },
    }


def task_json(task: TaskView) -> dict[str, Any]:
    """One of `tasks` in `job show --json`; `task show --json` alone."""
    iris = IRIS_VIEW[task.state]
    return {
        "name": task.name,
        "rank": task.rank,
        "state": task.state.value,
        "reason": task.reason,
        "worker": task.worker or None,
        "attempt": task.attempt,
        "restarts": restarts_json(task.restarts),
        "previous": previous_json(task.previous),
        "restart_at": iso(task.restart_at),
        "exit_code": task.exit_code,
        "signal": task.signal,
        "last_failure": _failure(task.last_failure),
        "labels": dict(task.labels),
        "stall": stall_json(task.stall),
        "progress": dict(task.progress) or None,
        "progress_at": iso(task.progress_at),
        "outputs": dict(task.outputs) or None,
        "answer": task.answer,
        "collected": dict(task.collected) or None,
        "heartbeat_age_s": None if task.heard_s is None else round(task.heard_s, 3),
        "history": _history(task.history),
        "history_dropped": task.history.dropped,
        "attempts": [attempt_json(one) for one in task.attempts],
        "iris": {"state": iris.name, "number": iris.number, "shown": iris.shown, "colour": iris.colour},
    }


def attempt_json(attempt: AttemptView) -> dict[str, Any]:
    return {
        "attempt": attempt.n,
        "state": attempt.state,
        "reason": attempt.reason,
        "cause": attempt.cause or None,
        "decision": attempt.decision or None,
        "worker": attempt.worker or None,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "claimed_at": iso(attempt.claimed_at),
        "started_at": iso(attempt.started_at),
        "running_at": iso(attempt.running_at),
        "ended_at": iso(attempt.ended_at),
        "restart_at": iso(attempt.due_at),
        "restart": dict(attempt.restart) if attempt.restart else None,
        "notes": list(attempt.notes),
    }


def restarts_json(budgets: Budgets) -> dict[str, int]:
    return {"failures": budgets.failures, "machine": budgets.machine, "preemptions": budgets.preemptions}


def previous_json(previous: AttemptView | None) -> dict[str, Any] | None:
    if previous is None:
        return None
    return {
        "cause": previous.cause or None,
        "reason": previous.reason,
        "machine": previous.worker or None,
        "ended_at": iso(previous.ended_at),
    }


def progress_json(view: JobView) -> dict[str, Any]:
    """`job progress --json`: each worker's attempt, restarts, previous end, and what later versions watch for."""
    return {
        "name": view.id.name,
        "state": view.state.value,
        "straggler": straggler_json(view),
        "workers": [
            {
                "rank": one.rank,
                "name": one.name,
                "state": one.state.value,
                "reason": one.reason,
                "machine": one.worker or None,
                "attempt": one.attempt,
                "restarts": restarts_json(one.restarts),
                "previous": previous_json(one.previous),
                "restart_at": iso(one.restart_at),
                "stall": stall_json(one.stall),
                "progress": dict(one.progress) or None,
                "progress_at": iso(one.progress_at),
            }
            for one in view.tasks
        ],
    }


def stall_json(stall: Mapping[str, Any]) -> dict[str, Any] | None:
    return {"since": iso(stall.get("since")), "after_seconds": stall.get("after_seconds")} if stall else None


def straggler_of(view: JobView) -> Straggler | None:
    """The task that lags its group the most, where the run compares them."""
    found = []
    for group in view.terms.groups:
        wanted = view.terms.for_rank(group.first).straggling
        if wanted is None:
            continue
        steps = {one.rank: one.steps for one in view.tasks if one.rank in group.ranks}
        found.append(straggler(steps, behind_steps=wanted.behind_steps, after_s=wanted.after_s, now=view.now))
    return max((one for one in found if one is not None), key=lambda one: one.behind, default=None)


def straggler_json(view: JobView) -> dict[str, Any] | None:
    found = straggler_of(view)
    if found is None:
        return None
    task = view.tasks[found.rank]
    return {
        "rank": found.rank,
        "name": task.name,
        "machine": task.worker or None,
        "step": found.step,
        "median": found.median,
        "behind": found.behind,
        "since": iso(found.since),
    }


def _failure(failure: LastFailure | None) -> dict[str, Any] | None:
    if failure is None:
        return None
    return {"exit_code": failure.exit_code, "reason": failure.reason, "log": failure.log}


def _history(history: History) -> list[dict[str, Any]]:
    return [change_json(one) for one in history.changes]


def change_json(change: Change) -> dict[str, Any]:
    return {
        "state": change.state,
        "reason": change.reason,
        "at": iso(change.at),
        "cause": change.cause or None,
        "details": dict(change.details),
    }
