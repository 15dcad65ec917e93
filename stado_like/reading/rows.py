"""One row of a list of jobs, from the records of its job.

Not obvious is what may be left unread. Of a job that waits on the queue nothing but its record, where a listing of
`status/` showed no end of it: absence in a listing is a hint, and what it can do here is to show a job as waiting that
was over a moment ago. Of one that is claimed the end is asked for by its key, so that nothing is shown as running that
has ended. Of an array no end is read but one, for its start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.bucket import awaited, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.finish import task_end
from stado_like.bucket.load import Listed, TaskNow
from stado_like.job import keys, labels, reasons, rollup
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Job
from stado_like.job.rollup import Rolled
from stado_like.job.states import TERMINAL_JOB, TaskState
from stado_like.job.terms import Terms
from stado_like.planning import awaited as awaited_rule
from stado_like.reading import waiting
from stado_like.reading.live import of_heartbeat
from stado_like.reading.shapes import JobRow
from stado_like.reading.surroundings import Surroundings

ENDED = "Ended"


@dataclass(slots=True)
class Look:
    """What one look at many jobs knows of all of them."""

    bucket: Bucket
    around: Surroundings
    claimed: frozenset[JobId]
    now: float
    labels: Mapping[str, str] = field(default_factory=dict)
    fresh: frozenset[JobId] = frozenset()
    """Jobs of one task whose first attempt lies on the queue, and of which no end is listed."""


def read_row(look: Look, j: JobId, job: Job) -> JobRow | None:
    """None: it does not carry the labels that are wanted. Raises `StoreUnavailable`, `BadRecord`, `KeyError`."""
    terms = look.bucket.terms(job)
    if look.labels and not _carries(labels.of_job(terms, job.submitted_by), terms, look.labels):
        return None
    return _array_row(look, j, job, terms) if terms.several else _one_task_row(look, j, job, terms)


def _carries(found: Mapping[str, str], terms: Terms, wanted: Mapping[str, str]) -> bool:
    """Whether a job carries every one of these labels, or one of its tasks does."""
    return all(found.get(name) == value or labels.is_of_a_task(terms, name, value) for name, value in wanted.items())


def read_over(bucket: Bucket, j: JobId, job: Job) -> JobRow | None:
    """The row of a job that is over: by a one-task job's final end, or by the final of any other. None: it is not.
    Raises `StoreUnavailable`, `BadRecord`, `KeyError`."""
    terms = bucket.terms(job)
    if terms.several:
        return _array_over(bucket, j, job, terms)
    task = load.task_now(bucket, j, 0, Listed())
    return _one_task_over(j, job, terms, task, _first_start(bucket, j, task.last_n))


def _one_task_over(j: JobId, job: Job, terms: Terms, task: TaskNow, started: float) -> JobRow | None:
    if not task.is_over or task.last is None:  # guard: only what is over is told for good
        return None
    rolled = rollup.over(terms, [task_end(terms, 0, task.last)])
    return _made(j, job, terms, rolled, _counted(Counter([task.last.state])), started, task.last.ended_at)


def _array_over(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> JobRow | None:
    final = bucket.final(j)
    if final is None:
        return None
    counts = Counter({TaskState(name): count for name, count in final.counts.items()})
    counts[TaskState.CANCELLED] += terms.tasks - sum(counts.values())
    rolled = Rolled(final.state, final.reason)
    return _made(j, job, terms, rolled, _counted(+counts), final.started_at, final.finished_at)


def _one_task_row(look: Look, j: JobId, job: Job, terms: Terms) -> JobRow:
    bucket = look.bucket
    fresh = TaskNow(0, None, 0, AttemptId(j, 0, 1))
    task = fresh if j in look.fresh else load.task_now(bucket, j, 0, Listed())
    started = _first_start(bucket, j, task.last_n)
    over = _one_task_over(j, job, terms, task, started)
    if over is not None:
        return over
    state, reason, beat_start = TaskState.PENDING, "", 0.0
    held = j in look.claimed and task.open is not None
    if held and task.open is not None:
        state, reason, beat_start = _held(bucket, task.open)
    if state is TaskState.PENDING:
        if task.last is not None and task.last.due_ms / 1000 > look.now:
            reason = waiting.restart_reason(task.last)
        else:
            reason = _awaits(look, j, terms, task.last is None) or waiting.no_room(look.around, terms)
    rolled = rollup.going(terms, Counter([state]), reason)
    return _made(j, job, terms, rolled, _counted(Counter([state])), started or beat_start, 0.0)


def _awaits(look: Look, j: JobId, terms: Terms, fresh: bool) -> str:
    """The other jobs that a job waits for; empty: none, or it was released."""
    if not terms.after or not fresh:
        return ""
    waiter = awaited.look_at(look.bucket, j, terms, {})
    if waiter.released:
        return ""
    return awaited_rule.why_waits(j, waiter.awaited) or waiting.awaits_a_tick(look.around)


def _first_start(bucket: Bucket, j: JobId, last_n: int) -> float:
    ends = (bucket.end(keys.AttemptId(j, 0, n)) for n in range(1, last_n + 1))
    return min((end.started_at for end in ends if end is not None and end.started_at), default=0.0)


def _held(bucket: Bucket, a: AttemptId) -> tuple[TaskState, str, float]:
    beat = bucket.heartbeat(a)
    if beat is None:
        return TaskState.PREPARING, reasons.PREPARING, 0.0
    live = of_heartbeat(beat)
    return live.state, live.reason, live.started_at


def _array_row(look: Look, j: JobId, job: Job, terms: Terms) -> JobRow:
    bucket = look.bucket
    over = _array_over(bucket, j, job, terms)
    if over is not None:
        return over
    listed = load.list_status(bucket, j)
    newest_end = {rank: max(ns) for rank, ns in listed.ends.items() if ns}
    active = [rank for rank, ns in listed.beats.items() if ns and max(ns) > newest_end.get(rank, 0)]
    ended = len(newest_end) - sum(rank in newest_end for rank in active)
    known = Counter({TaskState.RUNNING: len(active)})
    reason = reasons.WAITING_TO_START
    if not active and j not in look.claimed:
        reason = _awaits(look, j, terms, not newest_end) or waiting.no_room(look.around, terms)
    rolled = rollup.going(terms, known, reason)
    verdict = bucket.verdict(j) if "verdict" in listed.own else None
    if verdict is not None:
        rolled = Rolled(rolled.state, reasons.stopping_workers(verdict.reason))
    counts_shown = {TaskState.RUNNING.value: len(active), ENDED: ended}
    counts_shown[TaskState.PENDING.value] = terms.tasks - len(active) - ended
    shown = {name: count for name, count in counts_shown.items() if count}
    return _made(j, job, terms, rolled, shown, _array_start(bucket, j, newest_end, active, listed), 0.0)


def _array_start(bucket: Bucket, j: JobId, ended: Mapping[int, int], active: list[int], listed: Listed) -> float:
    """When the first rank that is known to have started did: one record, of the lowest such rank."""
    if ended:
        end: End | None = bucket.end(keys.AttemptId(j, min(ended), 1))
        return end.started_at if end is not None else 0.0
    if active:
        beat = bucket.heartbeat(keys.AttemptId(j, min(active), max(listed.beats[min(active)])))
        return beat.record.started_at if beat is not None else 0.0
    return 0.0


def _counted(counts: Counter[TaskState]) -> dict[str, int]:
    return {state.value: count for state, count in sorted(counts.items())}


def _made(
    j: JobId,
    job: Job,
    terms: Terms,
    rolled: Rolled,
    counts: Mapping[str, int],
    started_at: float,
    finished_at: float,
) -> JobRow:
    return JobRow(
        id=j,
        state=rolled.state,
        reason=rolled.reason,
        priority=terms.priority,
        tasks=terms.tasks,
        shaped=terms.shaped,
        created_at=job.created_ms / 1000,
        started_at=started_at,
        finished_at=finished_at if rolled.state in TERMINAL_JOB else 0.0,
        counts=counts,
        labels=labels.of_job(terms, job.submitted_by),
    )
