"""A job in words, for a person: what `job show`, `job watch` and `job progress` print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stado_cli.output import Column, times
from stado_cli.output.human import aligned
from stado_like.job.states import JobState, TaskState

if TYPE_CHECKING:
    from stado_like.job.straggler import Straggler
    from stado_like.reading.shapes import JobRow, JobView, TaskView

SHOWN_TASKS = 20
SHOWN_HISTORY = 12
SHOWN_PAIRS = 8
SHOWN_ANSWER = 2_000

STYLES = {
    JobState.RUNNING: "cyan",
    JobState.COMPLETED: "green",
    JobState.FAILED: "red",
    JobState.CANCELLED: "yellow",
    JobState.UNSCHEDULABLE: "red",
}
_FIRST_SHOWN = (
    TaskState.FAILED,
    TaskState.DOWN,
    TaskState.STALE,
    TaskState.STOPPING,
    TaskState.RUNNING,
    TaskState.STARTING,
)


def counts(view: JobView) -> str:
    """`2 Running, 1 Pending`"""
    found: Counter[TaskState] = view.counts
    return ", ".join(f"{found[state]} {state.value}" for state in TaskState if found[state])


def row_counts(row: JobRow) -> str:
    """`3/10`: how many of its tasks completed."""
    done = row.counts.get(TaskState.COMPLETED.value, 0) + row.counts.get("Ended", 0)
    return f"{done}/{row.tasks}"


def picture(view: JobView, *, history: bool) -> str:
    """The whole of `job show`, without `history` the picture of `job watch`."""
    told = [f"{view.id.name}  {view.state.value}", *(f"  {name:<10} {value}" for name, value in _facts(view))]
    told += ["", *task_table(shown_tasks(view.tasks))]
    left = len(view.tasks) - SHOWN_TASKS
    if left > 0:
        told.append(f"… and {left} more: `stado task list {view.id.name}`")
    if history:
        told += _placement(view)
        told += _left(view) + _failure(view) + _history(view)
    return "\n".join(told)


def _facts(view: JobView) -> list[tuple[str, str]]:
    facts = [("reason", view.reason), ("id", str(view.id)), ("created", _when(view.created_at, view.now))]
    if view.started_at:
        facts.append(("started", _when(view.started_at, view.now)))
    if view.finished_at:
        took = times.duration(view.finished_at - view.started_at) if view.started_at else "-"
        facts.append(("finished", f"{_when(view.finished_at, view.now)}, ran {took}"))
    facts += [("command", " ".join(view.terms.command)), ("tasks", f"{len(view.tasks)}: {counts(view)}")]
    if view.terms.labels:
        facts.append(("labels", ", ".join(f"{key}={value}" for key, value in view.terms.labels.items())))
    return facts


def _when(at: float, now: float) -> str:
    return f"{times.iso(at)} ({times.duration(max(0.0, now - at))} ago)"


def shown_tasks(tasks: tuple[TaskView, ...]) -> list[TaskView]:
    """Those that need an eye first, when there are too many to show."""
    if len(tasks) <= SHOWN_TASKS:
        return list(tasks)
    order = {state: at for at, state in enumerate(_FIRST_SHOWN)}
    first = sorted(tasks, key=lambda one: (order.get(one.state, len(order)), one.rank))[:SHOWN_TASKS]
    return sorted(first, key=lambda one: one.rank)


def task_rows(tasks: list[TaskView]) -> list[dict[str, object]]:
    return [
        {
            "name": one.name,
            "state": one.state.value,
            "worker": one.worker or "-",
            "attempt": one.attempt or "-",
            "restarts": spent(one),
            "reason": one.reason,
        }
        for one in tasks
    ]


TASK_COLUMNS = (
    Column("TASK", lambda row: row["name"]),
    Column("STATE", lambda row: row["state"]),
    Column("WORKER", lambda row: row["worker"]),
    Column("ATTEMPT", lambda row: row["attempt"], right=True),
    Column("RESTARTS (F/M/P)", lambda row: row["restarts"]),
    Column("REASON", lambda row: row["reason"]),
)


def task_table(tasks: list[TaskView]) -> list[str]:
    return aligned(TASK_COLUMNS, task_rows(tasks))


def spent(task: TaskView) -> str:
    return f"{task.restarts.failures}/{task.restarts.machine}/{task.restarts.preemptions}"


def _placement(view: JobView) -> list[str]:
    if not view.nodes:
        return []
    return ["", "machines:", *(f"  {one.name:<20} {'; '.join(one.reasons) or 'it fits'}" for one in view.nodes)]


def _left(view: JobView) -> list[str]:
    """What tasks said and left."""
    told: list[str] = []
    for one in shown_tasks(view.tasks):
        mine = [f"progress: {progress_words(one.progress)}"] if one.progress else []
        mine += [f"output {key}={value}" for key, value in one.outputs.items()]
        if one.answer is not None:
            cut = "" if len(one.answer) <= SHOWN_ANSWER else " … (--json shows all)"
            mine.append(f"answer: {one.answer[:SHOWN_ANSWER].rstrip()}{cut}")
        if one.collected:
            count, size = one.collected.get("files", 0), one.collected.get("size_bytes", 0)
            mine.append(f"collected: {count} files, {size} bytes: `stado job fetch {view.id.name} DIR`")
        before = f"{one.name}: " if len(view.tasks) > 1 else ""
        told += [f"  {before}{line}" for line in mine]
    return ["", *told] if told else []


def _failure(view: JobView) -> list[str]:
    failed = next((one for one in view.tasks if one.last_failure is not None), None)
    if failed is None or failed.last_failure is None:
        return []
    told = ["", f"last failure of {failed.name}: {failed.last_failure.reason}"]
    return told + [f"  | {line}" for line in failed.last_failure.log.splitlines()]


def _history(view: JobView) -> list[str]:
    told = ["", "history:"]
    changes = view.tasks[0].history.changes if len(view.tasks) == 1 else view.history.changes
    if len(changes) > SHOWN_HISTORY:
        told.append(f"  … {len(changes) - SHOWN_HISTORY} earlier changes: --json shows them")
    return told + [f"  {times.iso(one.at)}  {one.state:<11} {one.reason}" for one in changes[-SHOWN_HISTORY:]]


def progress_words(progress: Mapping[str, Any]) -> str:
    """`step 120/1000 loss=0.31`"""
    left = dict(progress)
    words = []
    if "step" in left:
        step, total = left.pop("step"), left.pop("total", None)
        words.append(f"step {number(step)}" + (f"/{number(total)}" if total is not None else ""))
    words += [f"{key}={number(value)}" for key, value in list(left.items())[:SHOWN_PAIRS]]
    more = len(left) - SHOWN_PAIRS
    return " ".join(words) + (f" and {more} more" if more > 0 else "")


def number(value: Any) -> str:
    """Whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_PROGRESS = "{:<7}{:<27}{:<13}{:<19}{:>7}  {:<24}{}"


def progress(view: JobView) -> str:
    """Each worker's attempt, what it has spent, and how its previous attempt ended."""
    told = [_PROGRESS.format("RANK", "WORKER", "STATE", "MACHINE", "ATTEMPT", "RESTARTS (F/M/P)", "NOTE")]
    from stado_like.reading.shapes import straggler_of  # not for a list of jobs, which has no use for it

    lagging = straggler_of(view)
    for one in view.tasks:
        behind = lagging if lagging is not None and lagging.rank == one.rank else None
        cells = (one.rank, one.name, one.state.value, one.worker or "-", one.attempt, spent(one), note(one, behind))
        told.append(_PROGRESS.format(*cells).rstrip())
    return "\n".join(told)


def note(task: TaskView, lagging: Straggler | None = None) -> str:
    """`step 120/1000 loss=0.31; previous attempt: gpu-fault (GPU 3 on gpu-1: …)`, and what is the matter with it."""
    notes = []
    if task.stall:
        notes.append(f"stalled since {times.iso(task.stall['since'])}")
    if lagging is not None:
        notes.append(f"straggler: {number(lagging.behind)} steps behind the median of {number(lagging.median)}")
    if task.progress:
        notes.append(progress_words(task.progress))
    if task.previous is not None:
        notes.append(f"previous attempt: {task.previous.cause or 'completed'} ({task.previous.reason})")
    if task.restart_at:
        notes.append(f"restarts at {times.iso(task.restart_at)}")
    return "; ".join(notes)
