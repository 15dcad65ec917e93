"""Why a job waits, with all that a reader can know of it: its own words, what the next tick would do about it, every
machine's reasons, the last tick.

What the next tick would do is that tick's own plan, made now (`reading/planned`). `job show` tells the machines only
while a task waits for one. Who asks for an explanation gets them in any case, also for a job that runs: then they say
where one more of it would go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.job import reasons
from stado_like.job.keys import JobId
from stado_like.job.states import TaskState
from stado_like.reading import planned
from stado_like.reading.planned import NextTick
from stado_like.reading.shapes import JobView, Node, TaskView, iso
from stado_like.reading.surroundings import Surroundings
from stado_like.reading.view import read_job


@dataclass(frozen=True, slots=True)
class Explanation:
    """`ticked_at`: when a tick last left a trace, 0 for never; `ticks`: it was lately."""

    view: JobView
    waiting: tuple[TaskView, ...]
    nodes: tuple[Node, ...]
    ticked_at: float
    ticks: bool
    next: NextTick | None = None
    """None: nothing of it waits."""


def explain(bucket: Bucket, j: JobId) -> Explanation:
    """Raises `NotFound`, `StoreUnavailable`, `BadRecord`."""
    around = Surroundings(bucket)
    view = read_job(bucket, j, around=around)
    waiting = tuple(one for one in view.tasks if one.state is TaskState.PENDING)
    first = next((one.rank for one in waiting if one.released), 0)
    ticked_at, _ = around.last_tick
    if not waiting:
        return Explanation(view, waiting, around.nodes(view.terms, first), ticked_at, around.ticks)
    following = planned.of_job(planned.look(bucket), j, view.terms)
    nodes = following.nodes or around.nodes(view.terms, first)
    return Explanation(view, waiting, nodes, ticked_at, around.ticks, following)


def explain_json(found: Explanation) -> dict[str, Any]:
    """The shape of `job explain --json`."""
    return {
        "name": found.view.id.name,
        "id": str(found.view.id),
        "state": found.view.state.value,
        "reason": found.view.reason,
        "waiting": [{"name": one.name, "rank": one.rank, "reason": one.reason} for one in found.waiting],
        "next": planned.next_json(found.next, found.view.id.workspace) if found.next is not None else None,
        "machines": machines_json(found.nodes, found.next),
        "last_tick_at": iso(found.ticked_at),
        "tick": _tick(found.ticked_at, found.ticks),
    }


def machines_json(nodes: tuple[Node, ...], following: NextTick | None) -> list[dict[str, Any]]:
    free = following.free if following is not None else {}
    return [
        {"name": one.name, "fits": one.fits, "reasons": list(one.reasons), "free": free.get(one.name, "")}
        for one in nodes
    ]


def tick_sentence(around: Surroundings) -> str:
    """When a tick last left a trace, or that there is none."""
    at, _ = around.last_tick
    return _tick(at, around.ticks)


def _tick(at: float, ticks: bool) -> str:
    since = iso(at)
    return f"the last tick on this store was at {since}" if ticks else reasons.no_tick(since or _NEVER)


_NEVER = "it was made"
