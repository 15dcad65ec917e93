"""Histories as a reader tells them: every change of a task and of a job, oldest first.

No record holds a whole history. A supervisor writes what it did into its heartbeats and its end; that a task was
created, that it went back to waiting, and that its last end was the last, nobody writes down: they follow from the
job's creation and from what an end decided. A job's own history is its tasks' changes laid beside each other, and
rolled up after each.

What only a reader sees is marked (`details.seen_by: reader`): a heartbeat that is late, a claim before the first word
of its supervisor, a stop that its holder has not told of yet. Such a change may later be told by somebody who writes,
at a slightly other time, or turn out to have been a pause.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from stado_like.job import reasons, rollup
from stado_like.job.records import Change, End, History, Job, Verdict
from stado_like.job.rollup import Rolled
from stado_like.job.states import ACTIVE_TASK, TERMINAL_JOB, TERMINAL_TASK, Cause, Decision, JobState, TaskState
from stado_like.job.terms import Terms
from stado_like.reading.shapes import TaskView, Told, iso
from stado_like.reading.waiting import restart_reason, waits_as_job

CLAIMER: Final = "claimer"
"""As a claim's gate signs the end of an attempt that it finds decided."""
SEEN_BY_READER: Final[Mapping[str, Any]] = {"seen_by": "reader"}


@dataclass(frozen=True, slots=True)
class Going:
    """The attempt that somebody holds. `history`: as its supervisor tells it; before its first word there is only the
    claim, `claimed_at`. `late_at`: since when its heartbeat is late. `stop`: a stop that stands, whether or not it was
    heard of."""

    worker: str
    history: History
    claimed_at: float = 0.0
    late_at: float = 0.0
    stop: Change | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """Every change that is known; `dropped` counts those that their writers had no room for."""

    changes: tuple[Told, ...]
    dropped: int = 0

    @property
    def history(self) -> History:
        """As it is shown and counted: the first 5 and the last 50."""
        kept = History(dropped=self.dropped)
        for one in self.changes:
            kept = kept.add(one.change)
        return kept


# ---- a task


def task_story(job: Job, ends: Sequence[End], going: Going | None, *, goes_on: bool = False) -> Story:
    """Created, then each attempt as its end tells it, then the one that somebody holds. `goes_on`: another attempt
    follows the last end, which its gang may have decided."""
    told = [Told(1, "", Change(state=TaskState.PENDING.value, reason=reasons.RUN_CREATED, at=job.created_ms / 1000))]
    dropped = 0
    for n, end in enumerate(ends, 1):
        told += (Told(n, end.worker, change) for change in _of_end(end))
        dropped += end.history.dropped
        again = end.decision is Decision.GANG and (n < len(ends) or goes_on)
        if end.decision is Decision.RETRY or again:
            told.append(Told(n + 1, "", _again(n + 1, end), as_job=waits_as_job(end)))
    if going is not None:
        told += (Told(len(ends) + 1, going.worker, change) for change in _of_going(going))
        dropped += going.history.dropped
    return Story(tuple(told), dropped)


def _of_end(end: End) -> Iterator[Change]:
    """What its writer told, and what the task became of it, where that is more than the attempt's own outcome."""
    changes = end.history.changes
    began = end.worker and end.claimed_at and end.by != CLAIMER  # whose gate was shut: it never began
    if began and not any(one.state == TaskState.PREPARING.value for one in changes):
        yield _claimed(end.claimed_at)
    if end.cause is Cause.UNDELIVERED and not end.worker:
        changes = tuple(map(_never_claimed, changes))
    yield from changes
    last = changes[-1] if changes else None
    if end.is_final and (last is None or (last.state, last.reason) != (end.state.value, end.reason)):
        yield Change(state=end.state.value, reason=end.reason, at=end.ended_at, cause=end.cause.value)


def _never_claimed(change: Change) -> Change:
    """It was given to a worker that did not take it: nothing of it was lost."""
    return replace(change, state=TaskState.ASSIGNED.value) if change.state == TaskState.DOWN.value else change


def _claimed(at: float) -> Change:
    return Change(state=TaskState.PREPARING.value, reason=reasons.PREPARING, at=at)


def _again(n: int, end: End) -> Change:
    """Back to waiting, with what that cost, and until when."""
    details: dict[str, Any] = {"restart": {**end.restart, "attempt": n}} if end.restart else {}
    if end.due_ms > end.ended_at * 1000 + 1:
        details["restart_at"] = iso(end.due_ms / 1000)
    return Change(
        state=TaskState.PENDING.value,
        reason=restart_reason(end),
        at=end.ended_at,
        cause=end.cause.value,
        details=details,
    )


def _of_going(going: Going) -> Iterator[Change]:
    changes = going.history.changes
    if not changes and going.claimed_at:
        yield replace(_claimed(going.claimed_at), details=SEEN_BY_READER)
    yield from changes
    if going.late_at:
        yield Change(
            state=TaskState.STALE.value, reason=reasons.LEASE_EXPIRED, at=going.late_at, details=SEEN_BY_READER
        )
    if going.stop is not None and not any(one.state == TaskState.STOPPING.value for one in changes):
        yield replace(going.stop, details=SEEN_BY_READER)


def never_released(job: Job, reason: str, at: float) -> Story:
    """A rank that its lane had not come to when the job was over."""
    created = Change(state=TaskState.PENDING.value, reason=reasons.RUN_CREATED, at=job.created_ms / 1000)
    over = Change(state=TaskState.CANCELLED.value, reason=reason, at=at, cause=Cause.REQUESTED.value)
    return Story((Told(1, "", created), Told(0, "", over)))


# ---- a job


@dataclass(slots=True)
class _Tasks:
    """Where every task stands at one instant of the sweep."""

    terms: Terms
    states: list[TaskState]
    words: list[str]
    counts: Counter[TaskState]
    waiting: list[int]
    """A heap of ranks that wait; some of them do not any more."""

    def move(self, rank: int, told: Told) -> None:
        state = TaskState(told.change.state)
        if state is TaskState.STALE and self.states[rank] is not TaskState.RUNNING:
            return  # a claim that is late is no task that was seen running
        self.counts[self.states[rank]] -= 1
        self.counts[state] += 1
        if state is TaskState.PENDING:
            heapq.heappush(self.waiting, rank)
        self.states[rank] = state
        self.words[rank] = told.as_job or told.change.reason

    @property
    def all_over(self) -> bool:
        return sum(self.counts[one] for one in TERMINAL_TASK) == len(self.states)

    @property
    def any_held(self) -> bool:
        return any(self.counts[one] for one in ACTIVE_TASK)

    def why_waiting(self) -> str:
        while self.waiting and self.states[self.waiting[0]] is not TaskState.PENDING:
            heapq.heappop(self.waiting)
        said = self.words[self.waiting[0]] if self.waiting else ""
        return "" if said == reasons.RUN_CREATED else said


def job_story(
    job: Job,
    terms: Terms,
    tasks: Sequence[TaskView],
    rolled: Rolled,
    finished_at: float,
    *,
    verdict: Verdict | None = None,
    waits: Iterable[Change] = (),
) -> Story:
    """The job's states and reasons as they followed each other. `waits`: why it waited, as a tick noted it."""
    created = Change(state=JobState.PENDING.value, reason=reasons.RUN_CREATED, at=job.created_ms / 1000)
    told = [Told(0, "", created), *_between(terms, tasks, verdict, waits)]
    if rolled.state in TERMINAL_JOB:
        told = [one for one in told if one.change.at <= finished_at or one.change is created]
        cause = _deciding_cause(tasks, rolled.state)
        over = Change(state=rolled.state.value, reason=rolled.reason, at=finished_at, cause=cause)
        told.append(Told(0, "", over))
    return Story(tuple(told))


def _between(
    terms: Terms, tasks: Sequence[TaskView], verdict: Verdict | None, waits: Iterable[Change]
) -> Iterator[Told]:
    n = len(tasks)
    now = _Tasks(terms, [TaskState.PENDING] * n, [reasons.RUN_CREATED] * n, Counter({TaskState.PENDING: n}), [])
    now.waiting = list(range(n))
    noted, judged = "", False
    before = (JobState.PENDING.value, reasons.RUN_CREATED)
    for at, _, what in sorted(_moments(tasks, verdict, waits), key=lambda one: one[:2]):
        details: Mapping[str, Any] = {}
        if isinstance(what, tuple):
            rank, one = what
            now.move(rank, one)
            noted = noted if now.states[rank] is TaskState.PENDING else ""
            details = SEEN_BY_READER if "seen_by" in one.change.details else {}
        elif isinstance(what, Verdict):
            judged = True
        else:
            noted = what.reason
        if now.all_over or (judged and not now.any_held):
            continue
        found = rollup.going(terms, now.counts, noted or now.why_waiting())
        if judged and verdict is not None:
            found = Rolled(found.state, reasons.stopping_workers(verdict.reason))
        if (found.state.value, found.reason) != before:
            before = (found.state.value, found.reason)
            yield Told(0, "", Change(state=before[0], reason=before[1], at=at, details=details))


def _moments(
    tasks: Sequence[TaskView], verdict: Verdict | None, waits: Iterable[Change]
) -> Iterator[tuple[float, int, tuple[int, Told] | Verdict | Change]]:
    """What happened when; of one instant, in the order of a task's own story, and never against it."""
    number = 0
    for rank, task in enumerate(tasks):
        at = 0.0
        for one in task.story[1:]:
            number, at = number + 1, max(at, one.change.at)
            yield at, number, (rank, one)
    if verdict is not None and verdict.early:
        yield verdict.at, 0, verdict
    for change in waits:
        yield change.at, 0, change


_DECIDES: Mapping[JobState, tuple[TaskState, ...]] = {
    JobState.FAILED: (TaskState.FAILED, TaskState.DOWN, TaskState.PREEMPTED),
    JobState.CANCELLED: (TaskState.CANCELLED,),
    JobState.UNSCHEDULABLE: (TaskState.UNSCHEDULABLE,),
}


def _deciding_cause(tasks: Sequence[TaskView], state: JobState) -> str:
    """Of the first task that the job's state comes from."""
    for wanted in _DECIDES.get(state, ()):
        for task in tasks:
            if task.state is wanted and task.attempts:
                return task.attempts[-1].cause
    return Cause.REQUESTED.value if state is JobState.CANCELLED else ""
