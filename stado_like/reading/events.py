"""The events of a job: the changes of its own history and of its tasks', laid beside each other, oldest first.

Nothing stores events. Each look derives all of them again, so following means to tell only what was not told before.
That is not obvious in two places. What only a reader saw (`details.seen_by`) may be told later by whoever wrote it
down, at a slightly other time: it is the same event. And what is learned late may be older than what was told: a
follower tells it when it learns it, and each look's own order is by time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Any, Final

from stado_like.job import reasons
from stado_like.job.records import Change
from stado_like.reading.shapes import JobView, TaskView, Told, iso

_SAME_AS_BEFORE_S = 0.001


@dataclass(frozen=True, slots=True)
class Event:
    """One change. `rank` None: of the job itself. `attempt` 0: of none in particular."""

    job: str
    rank: int | None
    task: str
    attempt: int
    worker: str
    change: Change

    @property
    def code(self) -> str:
        """A stable word for what a program may want to tell apart; empty where the state says it."""
        return REASON_CODES.get(self.change.reason, "")

    @property
    def is_a_readers_view(self) -> bool:
        return "seen_by" in self.change.details

    @property
    def _what(self) -> tuple[int | None, int, str, str]:
        return self.rank, self.attempt, self.change.state, self.change.reason


REASON_CODES: Final[Mapping[str, str]] = {reasons.PARENT_TERMINATED: "ParentJobTerminated"}


def events_of(view: JobView) -> list[Event]:
    """Every event of a job, oldest first; of one instant, those of its tasks before its own, by rank. What follows in a
    task's own story follows here too, though two who wrote it had clocks that differ; a job's end is last."""
    found: list[tuple[float, int, int, Event]] = []
    for task in view.tasks:
        found += _in_order(task.rank, [_event(view, task, one) for one in task.story])
    own = _in_order(len(view.tasks), [_event(view, None, one) for one in view.story])
    if view.is_over and own:
        own[-1] = (inf, *own[-1][1:])
    created = [(at, -1, number, event) for at, _, number, event in own[:1]]
    return [event for *_, event in sorted([*created, *found, *own[1:]], key=lambda one: one[:3])]


def _in_order(rank: int, events: list[Event]) -> list[tuple[float, int, int, Event]]:
    latest = accumulate((event.change.at for event in events), max)
    return [(at, rank, number, event) for number, (at, event) in enumerate(zip(latest, events, strict=True))]


def _event(view: JobView, task: TaskView | None, one: Told) -> Event:
    return Event(
        job=str(view.id),
        rank=None if task is None else task.rank,
        task="" if task is None else task.name,
        attempt=0 if task is None else one.attempt,
        worker=one.worker,
        change=one.change,
    )


class Follower:
    """Tells each event once, over any number of looks."""

    def __init__(self) -> None:
        self._told: dict[tuple[int | None, int, str, str], list[float]] = {}
        self._seen_only: Counter[tuple[int | None, int, str, str]] = Counter()

    def news(self, view: JobView) -> list[Event]:
        """What this look shows and none before did."""
        return [event for event in events_of(view) if self._is_new(event)]

    def _is_new(self, event: Event) -> bool:
        what, at = event._what, event.change.at
        times = self._told.setdefault(what, [])
        if any(abs(at - one) < _SAME_AS_BEFORE_S for one in times):
            return False
        times.append(at)
        if event.is_a_readers_view:
            self._seen_only[what] += 1
            return True
        if self._seen_only[what]:
            self._seen_only[what] -= 1
            return False
        return True


def event_json(event: Event) -> dict[str, Any]:
    """One line of `job events --json`."""
    change = event.change
    return {
        "at": iso(change.at),
        "job": event.job,
        "task": event.task or None,
        "rank": event.rank,
        "attempt": event.attempt or None,
        "worker": event.worker or None,
        "state": change.state,
        "reason": change.reason,
        "reason_code": event.code or None,
        "cause": change.cause or None,
        "details": dict(change.details),
    }
