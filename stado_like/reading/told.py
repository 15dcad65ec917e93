"""What a list told of a job that is over, as plain values and back: for whoever keeps it, on a disk or in a day file.

Whenever the values change their order, their number or their meaning, `day_keys.FORMAT` counts up: what was kept in
another form is then not read, and asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stado_like.job.ids import JobId
from stado_like.job.states import JobState
from stado_like.reading.job_row import JobRow


def plain(row: JobRow) -> tuple[Any, ...]:
    return (
        row.state.value,
        row.reason,
        row.priority,
        row.tasks,
        row.shaped,
        row.created_at,
        row.started_at,
        row.finished_at,
        dict(row.counts),
        dict(row.labels),
    )


_STATES = {state.value: state for state in JobState}


def row_of(key: str, said: Sequence[Any]) -> JobRow:
    """`key`: of the job's record. Raises ValueError or TypeError for what is no such row."""
    state, reason, priority, tasks, shaped, created_at, started_at, finished_at, counts, labels = said
    found = _STATES.get(state)
    if found is None:
        raise ValueError(f"{state!r} is no state of a job")
    _, workspace, rest = key.split("/")
    name, k, _ = rest.split(".")
    return JobRow(
        id=JobId(workspace, name, int(k)),
        state=found,
        reason=reason,
        priority=priority,
        tasks=tasks,
        shaped=shaped,
        created_at=created_at,
        started_at=started_at,
        finished_at=finished_at,
        counts=counts,
        labels=labels,
    )
