"""Lists of jobs, without reading what nobody asked for.

A bucket may hold a hundred thousand finished jobs, and each costs requests to look at. So the candidates come from
listings alone: a job is created once and never changed, so the `last_modified` of its key is its age, and the indexes
(queue, claims, `open/`) name every job that is not over. A row then costs a GET of the job and, for a one-task job,
its ends; for an array its final, or else one listing of its status, from which running tasks are counted without
reading any end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from stado_like.bucket import awaited, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.finish import task_end
from stado_like.bucket.load import Listed
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.job import keys, labels, reasons, rollup
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Job, Tombstone
from stado_like.job.rollup import Rolled
from stado_like.job.states import TERMINAL_JOB, TaskState
from stado_like.job.terms import Terms
from stado_like.planning import awaited as awaited_rule
from stado_like.reading import waiting
from stado_like.reading.live import of_heartbeat
from stado_like.reading.shapes import JobRow
from stado_like.reading.surroundings import Surroundings
from stado_like.store.protocol import list_all

DAY_S = 86_400.0
AT_ONCE = 32
ENDED = "Ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which jobs. `every` False: unfinished ones and those submitted in the last day. States are compared without
    case.
    """

    workspace: str = ""
    states: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    limit: int = 0
    every: bool = False
    older_than_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows, newest first, and the records that could not be read, with the reason."""

    rows: tuple[JobRow, ...]
    set_aside: Mapping[str, str]


@dataclass(slots=True)
class _Look:
    bucket: Bucket
    around: Surroundings
    claimed: frozenset[JobId]
    now: float
    set_aside: dict[str, str]


def list_jobs(bucket: Bucket, wanted: Wanted) -> Listing:
    """Raises `StoreUnavailable`; a record that cannot be read is set aside and the rest goes on."""
    set_aside: dict[str, str] = {}
    unfinished, claimed, several = _indexed(bucket, set_aside)
    now, candidates = _candidates(bucket, wanted, unfinished, set_aside)
    look = _Look(bucket, Surroundings(bucket), claimed, now, set_aside)
    dying = _deletions(bucket, several)
    candidates = [j for j in candidates if j not in dying]
    rows: list[JobRow] = []
    for batch in _batches(candidates, AT_ONCE):
        for row in side_by_side(bucket, lambda j: _row(look, j, wanted), batch):
            if row is not None:
                rows.append(row)
        if wanted.limit and len(rows) >= wanted.limit:
            break
    set_aside.update(look.around.set_aside)
    return Listing(tuple(rows[: wanted.limit] if wanted.limit else rows), set_aside)


def _batches(every: list[JobId], size: int) -> Iterator[list[JobId]]:
    for at in range(0, len(every), size):
        yield every[at : at + size]


def _candidates(
    bucket: Bucket, wanted: Wanted, unfinished: set[JobId], set_aside: dict[str, str]
) -> tuple[float, list[JobId]]:
    """Ids by age, newest first. One listing of the workspace's jobs, or of all."""
    prefix = keys.jobs_of(wanted.workspace) if wanted.workspace else keys.JOBS
    aged: list[tuple[float, JobId]] = []
    for row in list_all(bucket.store, prefix):
        j = _parsed(keys.parse_job, row.key, set_aside)
        if j is not None:
            aged.append((row.last_modified, j))
    now = bucket.now()
    kept = [
        (at, j)
        for at, j in aged
        if (wanted.every or j in unfinished or now - at < DAY_S) and now - at >= wanted.older_than_s
    ]
    return now, [j for _, j in sorted(kept, reverse=True)]


def _parsed(parse: Callable[[str], JobId], key: str, set_aside: dict[str, str]) -> JobId | None:
    try:
        return parse(key)
    except BadRecord as bad:
        set_aside[key] = bad.message
        return None


def _indexed(bucket: Bucket, set_aside: dict[str, str]) -> tuple[set[JobId], frozenset[JobId], list[JobId]]:
    """Jobs that an index says are not over, those with a claim, and those in `open/`."""
    unfinished: set[JobId] = set()
    several: list[JobId] = []
    for prefix, parse in (
        (keys.QUEUED_OPEN, lambda key: keys.parse_entry(key).attempt.job),
        (keys.QUEUED_HELD, lambda key: keys.parse_entry(key).attempt.job),
        (keys.QUEUED_LATER, lambda key: keys.parse_later(key).attempt.job),
        (keys.OPEN, keys.parse_open_index),
    ):
        for row in list_all(bucket.store, prefix):
            j = _parsed(parse, row.key, set_aside)
            if j is not None:
                unfinished.add(j)
                if prefix == keys.OPEN:
                    several.append(j)
    claimed = set()
    for row in list_all(bucket.store, keys.RUNNING):
        j = _parsed(lambda key: keys.parse_running(key).job, row.key, set_aside)
        if j is not None:
            claimed.add(j)
    return unfinished | claimed, frozenset(claimed), several


def _deletions(bucket: Bucket, opened: list[JobId]) -> set[JobId]:
    """Jobs in `open/` that have a tombstone: what is left of them is on its way out."""
    present = bucket.present(*(keys.tombstone(j) for j in opened))
    return {j for j, buried in zip(opened, present, strict=True) if buried}


def _row(look: _Look, j: JobId, wanted: Wanted) -> JobRow | None:
    try:
        row = _read_row(look, j, wanted)
    except BadRecord as bad:
        look.set_aside[str(j)] = bad.message
        return None
    except KeyError as missing:
        look.set_aside[str(j)] = f"{keys.job(j)} has no {missing}"
        return None
    if row is None or (wanted.states and row.state.value.lower() not in {one.lower() for one in wanted.states}):
        return None
    return row


def _read_row(look: _Look, j: JobId, wanted: Wanted) -> JobRow | None:
    job = look.bucket.job(j)
    if job is None:
        return None
    terms = look.bucket.terms(job)
    if wanted.labels and not _carries(labels.of_job(terms, job.submitted_by), terms, wanted.labels):
        return None
    return _array_row(look, j, job, terms) if terms.several else _one_task_row(look, j, job, terms)


def _carries(found: Mapping[str, str], terms: Terms, wanted: Mapping[str, str]) -> bool:
    """Whether a job carries every one of these labels, or one of its tasks does."""
    return all(found.get(name) == value or labels.is_of_a_task(terms, name, value) for name, value in wanted.items())


def _one_task_row(look: _Look, j: JobId, job: Job, terms: Terms) -> JobRow:
    bucket = look.bucket
    task = load.task_now(bucket, j, 0, Listed())
    started = _first_start(bucket, j, task.last_n)
    if task.is_over and task.last is not None:
        rolled = rollup.over(terms, [task_end(terms, 0, task.last)])
        return _made(j, job, terms, rolled, Counter([task.last.state]), started, task.last.ended_at)
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
    return _made(j, job, terms, rolled, Counter([state]), started or beat_start, 0.0)


def _awaits(look: _Look, j: JobId, terms: Terms, fresh: bool) -> str:
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


def _array_row(look: _Look, j: JobId, job: Job, terms: Terms) -> JobRow:
    bucket = look.bucket
    final = bucket.final(j)
    if final is not None:
        counts = Counter({TaskState(name): count for name, count in final.counts.items()})
        counts[TaskState.CANCELLED] += terms.tasks - sum(counts.values())
        rolled = Rolled(final.state, final.reason)
        return _made(j, job, terms, rolled, +counts, final.started_at, final.finished_at)
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
    return JobRow(
        id=j,
        job=job,
        terms=terms,
        state=rolled.state,
        reason=rolled.reason,
        started_at=_array_start(bucket, j, newest_end, active, listed),
        finished_at=0.0,
        counts=shown,
    )


def _array_start(bucket: Bucket, j: JobId, ended: Mapping[int, int], active: list[int], listed: Listed) -> float:
    """When the first rank that is known to have started did: one record, of the lowest such rank."""
    if ended:
        end: End | None = bucket.end(keys.AttemptId(j, min(ended), 1))
        return end.started_at if end is not None else 0.0
    if active:
        beat = bucket.heartbeat(keys.AttemptId(j, min(active), max(listed.beats[min(active)])))
        return beat.record.started_at if beat is not None else 0.0
    return 0.0


def _made(
    j: JobId, job: Job, terms: Terms, rolled: Rolled, counts: Counter[TaskState], started_at: float, finished_at: float
) -> JobRow:
    return JobRow(
        id=j,
        job=job,
        terms=terms,
        state=rolled.state,
        reason=rolled.reason,
        started_at=started_at,
        finished_at=finished_at if rolled.state in TERMINAL_JOB else 0.0,
        counts={state.value: count for state, count in sorted(counts.items())},
    )


def list_deleted(bucket: Bucket, workspace: str = "") -> tuple[list[tuple[JobId, Tombstone]], dict[str, str]]:
    """Tombstones, newest first, and those that could not be read."""
    set_aside: dict[str, str] = {}
    ids = []
    for row in list_all(bucket.store, f"{keys.DELETED}{workspace}." if workspace else keys.DELETED):
        j = _parsed(keys.parse_tombstone, row.key, set_aside)
        if j is not None:
            ids.append(j)

    def read(j: JobId) -> tuple[JobId, Tombstone] | None:
        try:
            found = bucket.tombstone(j)
        except BadRecord as bad:
            set_aside[str(j)] = bad.message
            return None
        return None if found is None else (j, found)

    found = [one for one in side_by_side(bucket, read, ids) if one is not None]
    return sorted(found, key=lambda one: -one[1].at), set_aside
