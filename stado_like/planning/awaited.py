"""When a job may start that waits for other jobs (`after`), and when it never can.

Each of them must have come to what was asked: Completed, Failed (which an Unschedulable one has as well), or Ended in
whatever way. Only a final record counts, for nothing else is for ever. A job that was deleted comes to nothing any
more, also where its tombstone remembers how it had ended: whoever deleted it meant it to be gone.

Not obvious is that nobody needs to look again. A job that ended stays so, and one that waits exists later than those
it waits for: so what held once is kept as `released.json`, a cycle cannot arise, and a job that was released goes on
whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stado_like.job import reasons
from stado_like.job.keys import JobId
from stado_like.job.states import TERMINAL_JOB, JobState
from stado_like.job.terms import After

ENOUGH: Mapping[str, frozenset[JobState]] = {
    "Completed": frozenset({JobState.COMPLETED}),
    "Failed": frozenset({JobState.FAILED, JobState.UNSCHEDULABLE}),
    "Ended": TERMINAL_JOB,
}


@dataclass(frozen=True, slots=True)
class Came:
    """What a job came to: nothing yet (`state` None), the end of its life, or `gone`: it was deleted."""

    state: JobState | None = None
    reason: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Waiter:
    """A job that waits for others, and what each of them came to. `released`, `never`: what was decided before. Of one
    that was released some entries may not be moved yet; `never` is why one can never start, and its verdict follows."""

    job: JobId
    awaited: tuple[tuple[After, Came], ...] = ()
    released: bool = False
    never: str = ""


def may_go(waiter: Waiter) -> bool:
    if waiter.released or waiter.never:
        return waiter.released
    return all(is_met(wanted, came) for wanted, came in waiter.awaited)  # guard: awaited jobs ended


def is_met(wanted: After, came: Came) -> bool:
    return not came.gone and came.state in ENOUGH.get(wanted.state, frozenset())


def why_never(waiter: Waiter) -> str:
    """Why a waiter can never start; empty: it may yet, or was released."""
    if waiter.released or waiter.never:
        return waiter.never
    for wanted, came in waiter.awaited:
        if came.gone:
            return reasons.awaited_is_gone(_shown(waiter.job, wanted), wanted.state)
        if came.state is not None and not is_met(wanted, came):
            return reasons.awaited_came_to(_shown(waiter.job, wanted), wanted.state, came.state.value, came.reason)
    return ""


def why_waits(j: JobId, awaited: Sequence[tuple[After, Came]]) -> str:
    """What a waiter says; empty where it waits only for a tick, which lets it go or gives it up."""
    for wanted, came in awaited:
        if came.state is None and not came.gone:
            return reasons.waits_for_job(_shown(j, wanted), wanted.state)
    return ""


def _shown(j: JobId, wanted: After) -> str:
    """The awaited job as people of its workspace call it, where that names it alone."""
    other = JobId.parse(wanted.job)
    if other.workspace != j.workspace or other.k > 1:
        return wanted.job
    return other.name
