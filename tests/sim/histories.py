"""What readers tell of a job that is over: a history that could have happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from stado_like.bucket.bucket import Bucket
from stado_like.errors import NotFound
from stado_like.job import reasons
from stado_like.job.states import TABLE, TERMINAL_TASK, TaskState
from stado_like.reading.events import events_of
from stado_like.reading.view import read_job
from tests.sim.seen import Seen

ARROWS = {(before.value, arrow.to.value) for (before, _), arrow in TABLE.items()}


def impossible_steps(states: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every step is an arrow of the table, or other words for the same state; the last may say what the task became of
    its attempt's end."""
    for at, (before, after) in enumerate(pairwise(states), 2):
        became = at == len(states) and {TaskState(before), TaskState(after)} <= TERMINAL_TASK
        if (before, after) not in ARROWS and before != after and not became:
            yield before, after


def histories_could_have_happened(seen: Seen) -> Iterator[str]:
    """Each task's steps are arrows, from its creation to how it ended; each event is told once, the job's end last."""
    bucket = Bucket(seen.shared.store, ambient=seen.shared.clock)
    for j in sorted(seen.acknowledged - set(seen.buried)):
        try:
            view = read_job(bucket, j)
        except NotFound:
            continue  # another rule says so
        for task in view.tasks:
            told = [one.change.state for one in task.story]
            wrong = list(impossible_steps(told))
            if wrong and not task.history.dropped:
                yield f"task {task.rank} of {j}: {wrong} in {told}"
            if task.story[0].change.reason != reasons.RUN_CREATED or told[-1] != task.state:
                yield f"task {task.rank} of {j} is {task.state}, and its history goes from {told[0]} to {told[-1]}"
        events = events_of(view)
        last = events[-1]
        if view.is_over and (last.rank, last.change.state) != (None, view.state):
            yield f"{j} is {view.state}, and its events end with {last.task or 'the job'} {last.change.state}"
