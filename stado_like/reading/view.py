"""Reading a job: the records of the bucket -> one `JobView`. Nothing is written here.

Both records of a transition may exist for a moment, the new before the old. So a reader resolves terminal first:
final › last end › `running` › `queued`. What is found in that order can only be older than the truth, never ahead of
it, and a job that was once reported over is reported over for ever: final records and ends do not go away but with
their job.

    final.json / last end     over
    heartbeat.<n>             what its supervisor says; Stale when older than TTL + 15 s
    running/<a>               claimed, no heartbeat yet: Preparing
    none of them              Pending: why is in `reading/waiting`

A finished one-task job costs a LIST of its status, a GET of the job, a HEAD of its tombstone and a GET per end; a
running one a GET of its heartbeat and a look for its end instead of the last two.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from stado_like.bucket import load
from stado_like.bucket.bucket import Bucket, Found
from stado_like.bucket.finish import task_end
from stado_like.bucket.load import Listed, TaskNow
from stado_like.bucket.settle import verdict_reason
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord, NotFound
from stado_like.job import blocks, keys, labels, reasons, rollup
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, Change, Final, Heartbeat, Job, Verdict
from stado_like.job.rollup import Rolled
from stado_like.job.states import ACTIVE_TASK, Cause, JobState, TaskState
from stado_like.job.terms import Terms, display_name
from stado_like.job.waits import Waiting
from stado_like.planning import lanes
from stado_like.reading import waiting
from stado_like.reading.attempts import attempt_of_end, attempt_of_live
from stado_like.reading.live import Live, of_claim, of_heartbeat
from stado_like.reading.resolve import Meant, no_such_job
from stado_like.reading.shapes import AttemptView, JobView, TaskView, job_json
from stado_like.reading.story import job_story, never_released, task_story
from stado_like.reading.surroundings import Surroundings
from stado_like.store.protocol import list_all

__all__ = ["AttemptView", "JobView", "TaskView", "job_json", "read_job", "read_task"]


@dataclass(slots=True)
class Reading:
    """One look at one job: what was read so far, and asked for again only through it."""

    bucket: Bucket
    j: JobId
    job: Job
    terms: Terms
    listed: Listed
    final: Final | None
    verdict: Verdict | None
    around: Surroundings
    claims: frozenset[int]
    """Ranks of a several-task job whose open attempt may be claimed, by one listing."""
    lives: dict[AttemptId, Live | None] = field(default_factory=dict)
    """What the holders of blocks say, each asked once."""
    hint: Found[Waiting] | None = None
    """Why it waits, as a tick noted it."""
    groups: dict[str, str] = field(default_factory=dict)
    """What each group that was not released waits for, once somebody asked; empty: for a tick. Under no name: what the
    job waits for."""


def read_job(bucket: Bucket, j: JobId, *, around: Surroundings | None = None, listed: Listed | None = None) -> JobView:
    """The job as it is now. `listed`: the rows of its status, if somebody has just listed them. Raises `NotFound`,
    `StoreUnavailable`, `BadRecord`."""
    reading = _open(bucket, j, around, listed)
    now = bucket.now()
    tasks = [_labelled(reading, one) for one in _tasks(reading, now)]
    rolled = _job_state(reading, tasks)
    started = min((one.started_at for task in tasks for one in task.attempts if one.started_at), default=0.0)
    finished = _finished_at(reading, tasks, rolled)
    waits = reading.hint.record.history.changes if reading.hint is not None else ()
    told = job_story(reading.job, reading.terms, tasks, rolled, finished, verdict=_early_verdict(reading), waits=waits)
    return JobView(
        id=j,
        job=reading.job,
        terms=reading.terms,
        state=rolled.state,
        reason=rolled.reason,
        started_at=started,
        finished_at=finished,
        updated_at=max(one.change.at for changes in (told.changes, *(one.story for one in tasks)) for one in changes),
        history=told.history,
        story=told.changes,
        tasks=tuple(tasks),
        now=now,
        nodes=reading.around.nodes(reading.terms, _first_waiting(tasks)) if "workers" in vars(reading.around) else (),
    )


def _first_waiting(tasks: list[TaskView]) -> int:
    return next((one.rank for one in tasks if one.state is TaskState.PENDING and one.released), 0)


def read_task(bucket: Bucket, j: JobId, rank: int) -> TaskView:
    """One task of a job, without reading the others. Raises as `read_job` does."""
    reading = _open(bucket, j, None)
    if not 0 <= rank < reading.terms.tasks:
        raise no_such_task(reading.job, reading.terms, rank)
    now = bucket.now()
    if reading.final is not None and rank not in reading.listed.ends:
        return _labelled(reading, _never_ran(reading, rank))
    task = load.one_now(bucket, j, reading.job, reading.terms, rank, reading.listed)
    alone = task.last is None and not reading.terms.block
    if alone and not _traced(reading, rank) and waiting.is_unreleased(reading, rank):
        task = TaskNow(rank, None, 0, None, released=False)
    return _labelled(reading, _task(reading, task, now, first_waiting=True))


def _labelled(reading: Reading, task: TaskView) -> TaskView:
    return replace(task, labels=labels.of_task(reading.terms, reading.job.submitted_by, task.rank))


def no_such_task(job: Job, terms: Terms, rank: int) -> NotFound:
    last = terms.tasks - 1
    return NotFound(
        f"the job {job.name} has no task {rank}: it has {terms.tasks}, " + (f"0 to {last}" if last else "number 0"),
        f"`stado task list {job.name}` shows them.",
    )


def _open(bucket: Bucket, j: JobId, around: Surroundings | None, listed: Listed | None = None) -> Reading:
    listed = load.list_status(bucket, j) if listed is None else listed
    job = bucket.job(j)
    # The object of a deleted job is back for a moment when its name is used again, or a request comes late: only the
    # tombstone tells. But for a job with an attempt that goes on: nobody deletes a job before it is over.
    if job is None or (not listed.goes_on and any(bucket.present(keys.tombstone(j)))):
        raise no_such_job(bucket, Meant(j.workspace, j.name, j.k))
    terms = bucket.terms(job)
    if terms.block:
        load.open_blocks(bucket, j, terms, listed)
    final = bucket.final(j) if terms.several else None
    over = final is not None
    verdict = bucket.verdict(j) if "verdict" in listed.own and not over else None
    claims: frozenset[int] = frozenset()
    if terms.several and not over:
        claims = frozenset(a.rank for a in claimed(bucket, keys.running_of(j)))
    hint = _hint(bucket, j) if "waiting" in listed.own else None
    return Reading(bucket, j, job, terms, listed, final, verdict, around or Surroundings(bucket), claims, hint=hint)


def _hint(bucket: Bucket, j: JobId) -> Found[Waiting] | None:
    try:
        return bucket.read(Waiting, keys.waiting(j))
    except BadRecord:
        return None  # a hint that cannot be read is none


def claimed(bucket: Bucket, prefix: str) -> list[AttemptId]:
    """Attempts that have a claim. A key that is none is passed over: `storage ls` shows it, and a look at a job goes
    on.
    """
    found = []
    for row in list_all(bucket.store, prefix):
        try:
            found.append(keys.parse_running(row.key))
        except BadRecord:
            continue
    return found


# ---- tasks


def _tasks(reading: Reading, now: float) -> list[TaskView]:
    bucket, j, terms, listed = reading.bucket, reading.j, reading.terms, reading.listed
    every = [keys.AttemptId(j, rank, n) for rank, ends in sorted(listed.ends.items()) for n in sorted(ends)]
    side_by_side(bucket, bucket.end, every)  # now they are remembered
    if reading.final is not None:
        found = [load.task_now(bucket, j, rank, listed) if rank in listed.ends else None for rank in range(terms.tasks)]
        return [_never_ran(reading, at) if one is None else _task(reading, one, now) for at, one in enumerate(found)]
    tasks = load.tasks_now(bucket, j, reading.job, terms, listed)
    open_beats = [one.open for one in tasks if one.open is not None and one.open.n in listed.beats.get(one.rank, ())]
    beats = dict(zip(open_beats, side_by_side(bucket, bucket.heartbeat, open_beats), strict=True))
    told: list[TaskView] = []
    asked = False
    for task in tasks:
        view = _task(reading, task, now, beats.get(task.open) if task.open else None, first_waiting=not asked)
        asked = asked or (view.state is TaskState.PENDING and view.released)
        told.append(view)
    return told


def _traced(reading: Reading, rank: int) -> bool:
    return rank in reading.listed.ends or rank in reading.listed.beats or lanes.is_first(reading.terms, rank)


def _never_ran(reading: Reading, rank: int) -> TaskView:
    """A rank that its lane never released before the job was over."""
    final = reading.final
    reason = verdict_reason(Verdict(nonce="", state=final.state, reason=final.reason)) if final else ""
    name = display_name(reading.terms, rank)
    told = never_released(reading.job, reason, final.finished_at if final else 0.0)
    return TaskView(
        rank=rank,
        name=name,
        state=TaskState.CANCELLED,
        reason=reason,
        attempt=0,
        released=False,
        history=told.history,
        story=told.changes,
    )


def _task(
    reading: Reading, task: TaskNow, now: float, beat: Found[Heartbeat] | None = None, *, first_waiting: bool = False
) -> TaskView:
    bucket, j, rank, listed = reading.bucket, reading.j, task.rank, reading.listed
    ends = [(n, bucket.end(keys.AttemptId(j, rank, n))) for n in range(1, task.last_n + 1)]
    ended = [attempt_of_end(n, end) for n, end in ends if end is not None]
    lasts = [end for _, end in ends if end is not None]
    budgets = task.last.budgets if task.last else Budgets()
    if task.last is not None and lasts:
        lasts[-1] = task.last  # as it stands: what became of a gang's member is not in its own record
    if listed.standing is not None and listed.standing[0].g:
        budgets = listed.standing[0].spent
    failure = next((end.last_failure for end in reversed(lasts) if end.last_failure is not None), None)
    name = display_name(reading.terms, rank)
    done = task.undecided and task.last is not None and task.last.state is TaskState.COMPLETED
    if (task.is_over or done) and task.last is not None and task.released:
        last = task.last
        told = task_story(reading.job, lasts, None)
        return TaskView(
            rank=rank,
            name=name,
            state=last.state,
            reason=last.reason,
            worker=last.worker,
            attempt=task.last_n,
            restarts=budgets,
            previous=ended[-2] if len(ended) > 1 else None,
            exit_code=last.exit_code,
            signal=last.signal,
            last_failure=failure,
            history=told.history,
            story=told.changes,
            attempts=tuple(ended),
            progress=last.progress,
            outputs=last.outputs,
            answer=last.answer,
            collected=last.collected,
        )
    live = _live(reading, rank, task.open, beat) if task.open is not None else None
    if live is None:
        live_view = waiting.why(reading, task, first=first_waiting, now=now)
        state, reason, restart_at = TaskState.PENDING, live_view.reason, live_view.restart_at
    else:
        state, reason, restart_at = live.state, live.reason, 0.0
        ended = [*ended, attempt_of_live(task.open.n if task.open else 1, live)]
    before = ended[-2:-1] if live is not None else ended[-1:]
    goes_on = task.open is not None and task.open.n > task.last_n
    told = task_story(reading.job, lasts, live.going if live else None, goes_on=goes_on)
    return TaskView(
        rank=rank,
        name=name,
        state=state,
        reason=reason,
        worker=live.worker if live else "",
        attempt=task.open.n if task.open is not None else 1,
        restarts=budgets,
        previous=before[0] if before else None,
        restart_at=restart_at,
        last_failure=failure,
        history=told.history,
        story=told.changes,
        attempts=tuple(ended),
        released=task.released,
        heard_s=live.heard_s if live else None,
        **_said(live),
    )


def _said(live: Live | None) -> dict[str, Any]:
    """What the running task says of itself, and its supervisor of its silence."""
    if live is None or live.beat is None:
        return {}
    beat = live.beat
    return {"progress": beat.progress, "progress_at": beat.progress_at, "steps": beat.steps, "stall": beat.stall}


# ---- what is held now


def _live(reading: Reading, rank: int, a: AttemptId, beat: Found[Heartbeat] | None) -> Live | None:
    """What the holder of a rank's open attempt, or of its block, says; None when nobody holds it."""
    if not blocks.is_unit(reading.terms, a.rank):
        live = _said_live(reading, a, beat)
    else:
        if a not in reading.lives:
            reading.lives[a] = _said_live(reading, a, beat)
        live = reading.lives[a]
    return under_stop(reading, rank, live) if live is not None else None


def _said_live(reading: Reading, a: AttemptId, beat: Found[Heartbeat] | None) -> Live | None:
    bucket, listed = reading.bucket, reading.listed
    if beat is None and (a.n in listed.beats.get(a.rank, ()) or a.rank in listed.units):
        beat = bucket.heartbeat(a)
    if beat is not None:
        return of_heartbeat(beat)
    if reading.terms.several and a.rank not in reading.claims:
        return None
    claim = bucket.claim(a)
    return None if claim is None else of_claim(claim, reading.terms.for_rank(a.rank).ttl_s)


def under_stop(reading: Reading, rank: int, live: Live) -> Live:
    """A verdict or a person's stop stands: the task is stopping, whether or not its supervisor has said so yet."""
    if live.state not in ACTIVE_TASK or live.state is TaskState.STALE:
        return live
    if live.state is TaskState.STOPPING and live.reason:
        return live
    if reading.verdict is not None:
        reason, at = verdict_reason(reading.verdict), reading.verdict.at
    elif rank in reading.listed.stops:
        stop = reading.bucket.stop(reading.j, rank)
        reason, at = (stop.reason, stop.at) if stop is not None else (reasons.STOPPED_ON_REQUEST, 0.0)
    else:
        return live
    asked = Change(state=TaskState.STOPPING.value, reason=reason, at=at, cause=Cause.REQUESTED.value)
    return replace(live, state=TaskState.STOPPING, reason=reason, stop=asked)


# ---- the job


def _job_state(reading: Reading, tasks: list[TaskView]) -> Rolled:
    terms = reading.terms
    if reading.final is not None:
        return Rolled(reading.final.state, reading.final.reason)
    if not terms.several and tasks[0].is_over:
        last = reading.bucket.end(keys.AttemptId(reading.j, 0, tasks[0].attempt))
        if last is not None:
            return rollup.over(terms, [task_end(terms, 0, last)])
    first = next((_as_job(one) for one in tasks if one.state is TaskState.PENDING), "")
    rolled = rollup.going(terms, Counter(_as_counted(one) for one in tasks), first)
    if reading.verdict is not None:
        return Rolled(rolled.state, reasons.stopping_workers(reading.verdict.reason))
    if all(one.is_over for one in tasks):
        return Rolled(JobState.RUNNING, reasons.ALL_ENDED)
    return rolled


def _as_counted(task: TaskView) -> TaskState:
    """A claim that is late is no task that was seen running."""
    never_ran = task.state is TaskState.STALE and not task.attempts[-1].running_at
    return TaskState.PREPARING if never_ran else task.state


def _as_job(task: TaskView) -> str:
    """What a job says for its first waiting task."""
    last = task.story[-1]
    return last.as_job if last.as_job and last.change.reason == task.reason else task.reason


def _early_verdict(reading: Reading) -> Verdict | None:
    """A verdict that came before its tasks ended, also once the job is over: for its history."""
    if reading.verdict is None and "verdict" in reading.listed.own:
        return reading.bucket.verdict(reading.j)
    return reading.verdict


def _finished_at(reading: Reading, tasks: list[TaskView], rolled: Rolled) -> float:
    if reading.final is not None:
        return reading.final.finished_at
    if reading.terms.several or not tasks[0].is_over:
        return 0.0
    return tasks[0].attempts[-1].ended_at
