"""One line of a list of jobs, and the JSON form in which it leaves the system.

By itself, because a list loads nothing else of what readers know of a job: that takes longer than telling a thousand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from stado_like.job.ids import JobId
from stado_like.job.states import TERMINAL_JOB, JobState


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One line of a list of jobs. `counts` are by state where the records read say so; `Ended` counts tasks of an
    array whose last known attempt ended and was not read (some of them may wait to run again).
    """

    id: JobId
    state: JobState
    reason: str
    priority: int
    tasks: int
    shaped: bool
    """False: into how many tasks it is split is not decided yet."""
    created_at: float
    started_at: float
    finished_at: float
    counts: Mapping[str, int]
    labels: Mapping[str, str]

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL_JOB


_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - without a zone it is said without one, in a third of the time


def iso(seconds: float | None) -> str | None:
    """`2026-01-31T12:00:00.250Z`; None for a time that never came (0)."""
    if not seconds:
        return None
    return f"{(_EPOCH + timedelta(milliseconds=round(seconds * 1000))).isoformat(timespec='milliseconds')}Z"


def row_json(row: JobRow) -> dict[str, Any]:
    """One of the objects of `job list --json`."""
    return {
        "name": row.id.name,
        "workspace": row.id.workspace,
        "incarnation": row.id.k,
        "state": row.state.value,
        "reason": row.reason,
        "priority": row.priority,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at),
        "finished_at": iso(row.finished_at),
        "task_counts": dict(row.counts),
        "expected_task_count": row.tasks if row.shaped else None,
        "labels": dict(row.labels),
    }
