"""Who has waited too long to start.

Two limits. `scheduling_timeout_seconds` counts from each time that a task comes to wait for a machine: from the submit,
from when a retry is due, from when its lane, its group or the jobs it waits for (`after`) let it go: what the job
itself asked to wait for is no lack of machines. `deadline` is a moment, however the task spent the time before.

Both concern only what waits. A task that was claimed is left alone, and so is one that runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.job import reasons
from stado_like.job.keys import AttemptId
from stado_like.job.terms import Terms


@dataclass(frozen=True, slots=True)
class Late:
    """An attempt that waits in the queue under `key` and should have started by now."""

    attempt: AttemptId
    key: str
    reason: str


def why(terms: Terms, since_s: float | None, now_s: float) -> str:
    """Why an attempt that waits now is too late; empty: it is not. `since_s`: since when it waits for a machine; None:
    it does not yet, or nobody knows."""
    timeout_s = terms.scheduling_timeout_s
    if timeout_s is not None and since_s is not None and now_s - since_s >= timeout_s:
        return reasons.waited_too_long(timeout_s)
    if terms.deadline_s is not None and now_s >= terms.deadline_s:
        return reasons.deadline_passed(terms.deadline_s)
    return ""


def earliest_s(terms: Terms, created_s: float) -> float:
    """Before this no attempt of a job can be late."""
    limits = [terms.deadline_s] if terms.deadline_s is not None else []
    if terms.scheduling_timeout_s is not None:
        limits.append(created_s + terms.scheduling_timeout_s)
    return min(limits, default=float("inf"))
