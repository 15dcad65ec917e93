"""The life of a task and of a job.

A task's state is derived, never stored as a field: from its last end record, its claim, its heartbeat, its queue entry.

                 claimed                started       seen
    Pending ───▶ Preparing ───────────▶ Starting ───▶ Running ⇄ Stale
       ▲             │  └▶ ReadyToStart ──▲  │           │        │
       │             ▼      (gangs)          ▼           ▼        ▼
       │◀── retry ── Failed ◀────────────────┴───────────┤       Down ── retry ──▶ Pending
       │                                                 ├─▶ Completed
       └◀── retry ── Cancelled ◀──── Stopping ◀──────────┘

TABLE holds every arrow, with who makes it. An arrow that is not there raises `ImpossibleTransition`: late is normal
and is handled as a value by the caller; impossible is a bug.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TaskState(StrEnum):
    PENDING = "Pending"
    ASSIGNED = "Assigned"
    PREPARING = "Preparing"
    PULLING = "Pulling"
    READY_TO_START = "ReadyToStart"
    STARTING = "Starting"
    RUNNING = "Running"
    STALE = "Stale"
    STOPPING = "Stopping"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    DOWN = "Down"
    PREEMPTED = "Preempted"
    UNSCHEDULABLE = "Unschedulable"
    COSCHED_FAILED = "CoschedFailed"


class JobState(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    UNSCHEDULABLE = "Unschedulable"


class Outcome(StrEnum):
    """How one attempt ended. A task's state follows from its last attempt's outcome, cause and decision."""

    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"
    DOWN = "Down"


class Cause(StrEnum):
    """Why an attempt ended, where it was not simply exit 0 (then: NONE)."""

    NONE = ""
    FAILURE = "failure"
    STALLED = "stalled"
    MACHINE_LOST = "machine-lost"
    GPU_FAULT = "gpu-fault"
    UNDELIVERED = "undelivered"
    PREEMPTED = "preempted"
    MOVED = "moved"
    GANG = "gang"
    BARRIER = "barrier"
    REQUEUED = "requeued"
    TIME_LIMIT = "time-limit"
    REQUESTED = "requested"
    UNSCHEDULABLE = "unschedulable"


class Decision(StrEnum):
    """What follows an end. Decided in the end record itself, by whoever created it."""

    FINAL = "final"
    RETRY = "retry"
    GANG = "gang"


class Event(StrEnum):
    ASSIGN = "assign"
    CLAIM = "claim"
    PULL = "pull"
    REACH_BARRIER = "reach the barrier"
    START = "start"
    RUN = "run"
    BEAT_LATE = "heartbeat late"
    BEAT = "heartbeat"
    ASK_STOP = "ask to stop"
    SUCCEED = "exit 0"
    FAIL = "fail"
    STOP = "stopped"
    LOSE = "lost"
    WITHDRAW = "withdrawn"
    RETRY = "retry"
    EVICT_LAST = "preempted for the last time"
    GIVE_UP = "waited too long"
    GANG_OVER = "its gang ended for good"


class Who(StrEnum):
    """Who writes the record that makes an arrow true."""

    TICK = "tick"
    AGENT = "agent"
    SUPERVISOR = "supervisor"
    READER = "reader"
    ANY = "whoever ends the attempt"


@dataclass(frozen=True, slots=True)
class Arrow:
    to: TaskState
    who: Who


class ImpossibleTransition(Exception):
    """An arrow that does not exist: a bug, never a late message."""


S, E, W = TaskState, Event, Who
_SETTING_UP = (S.PREPARING, S.PULLING, S.READY_TO_START, S.STARTING)
_HELD = (*_SETTING_UP, S.RUNNING, S.STALE, S.STOPPING)


def _table() -> dict[tuple[TaskState, Event], Arrow]:
    arrows = {
        (S.PENDING, E.ASSIGN): Arrow(S.ASSIGNED, W.TICK),
        (S.ASSIGNED, E.WITHDRAW): Arrow(S.PENDING, W.TICK),
        (S.PENDING, E.CLAIM): Arrow(S.PREPARING, W.AGENT),
        (S.ASSIGNED, E.CLAIM): Arrow(S.PREPARING, W.AGENT),
        (S.PREPARING, E.PULL): Arrow(S.PULLING, W.SUPERVISOR),
        (S.PREPARING, E.REACH_BARRIER): Arrow(S.READY_TO_START, W.SUPERVISOR),
        (S.PULLING, E.REACH_BARRIER): Arrow(S.READY_TO_START, W.SUPERVISOR),
        (S.PREPARING, E.START): Arrow(S.STARTING, W.SUPERVISOR),
        (S.PULLING, E.START): Arrow(S.STARTING, W.SUPERVISOR),
        (S.READY_TO_START, E.START): Arrow(S.STARTING, W.SUPERVISOR),
        (S.STARTING, E.RUN): Arrow(S.RUNNING, W.SUPERVISOR),
        (S.RUNNING, E.BEAT_LATE): Arrow(S.STALE, W.READER),
        (S.STALE, E.BEAT): Arrow(S.RUNNING, W.SUPERVISOR),
        (S.RUNNING, E.BEAT): Arrow(S.RUNNING, W.SUPERVISOR),
        (S.RUNNING, E.SUCCEED): Arrow(S.COMPLETED, W.SUPERVISOR),
        (S.STALE, E.SUCCEED): Arrow(S.COMPLETED, W.SUPERVISOR),
        (S.STARTING, E.SUCCEED): Arrow(S.COMPLETED, W.SUPERVISOR),
        (S.RUNNING, E.FAIL): Arrow(S.FAILED, W.SUPERVISOR),
        (S.STALE, E.FAIL): Arrow(S.FAILED, W.SUPERVISOR),
        (S.PENDING, E.STOP): Arrow(S.CANCELLED, W.ANY),
        (S.ASSIGNED, E.STOP): Arrow(S.CANCELLED, W.ANY),
        (S.STOPPING, E.STOP): Arrow(S.CANCELLED, W.SUPERVISOR),
        (S.STOPPING, E.FAIL): Arrow(S.FAILED, W.SUPERVISOR),
        (S.STOPPING, E.SUCCEED): Arrow(S.COMPLETED, W.SUPERVISOR),
        (S.PENDING, E.GIVE_UP): Arrow(S.UNSCHEDULABLE, W.ANY),
        (S.CANCELLED, E.EVICT_LAST): Arrow(S.PREEMPTED, W.ANY),
        (S.CANCELLED, E.GANG_OVER): Arrow(S.COSCHED_FAILED, W.ANY),
        (S.FAILED, E.RETRY): Arrow(S.PENDING, W.ANY),
        (S.DOWN, E.RETRY): Arrow(S.PENDING, W.ANY),
        (S.CANCELLED, E.RETRY): Arrow(S.PENDING, W.ANY),
        (S.COMPLETED, E.RETRY): Arrow(S.PENDING, W.ANY),
    }
    for state in _SETTING_UP:
        arrows[state, E.FAIL] = Arrow(S.FAILED, W.SUPERVISOR)
    for state in (*_SETTING_UP, S.RUNNING, S.STALE):
        arrows[state, E.ASK_STOP] = Arrow(S.STOPPING, W.SUPERVISOR)
        arrows[state, E.STOP] = Arrow(S.CANCELLED, W.ANY)
    for state in _HELD:
        arrows[state, E.LOSE] = Arrow(S.DOWN, W.ANY)
    return arrows


TABLE: dict[tuple[TaskState, Event], Arrow] = _table()

TERMINAL_TASK = frozenset({S.COMPLETED, S.FAILED, S.CANCELLED, S.DOWN, S.PREEMPTED, S.UNSCHEDULABLE, S.COSCHED_FAILED})
TERMINAL_JOB = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.UNSCHEDULABLE})
ACTIVE_TASK = frozenset(_HELD)


def after(state: TaskState, event: Event) -> TaskState:
    """Where the arrow leads. Raises `ImpossibleTransition` where there is none."""
    arrow = TABLE.get((state, event))
    if arrow is None:
        raise ImpossibleTransition(f"a task that is {state} cannot {event}")
    return arrow.to


@dataclass(frozen=True, slots=True)
class IrisState:
    """Iris's name for a state, its wire number, and how its dashboard shows it."""

    name: str
    number: int
    shown: str
    colour: str


_IRIS = {
    "PENDING": (1, "#9a6700"),
    "BUILDING": (2, "#8250df"),
    "RUNNING": (3, "#0969da"),
    "SUCCEEDED": (4, "#1a7f37"),
    "FAILED": (5, "#cf222e"),
    "KILLED": (6, "#57606a"),
    "WORKER_FAILED": (7, "#8250df"),
    "UNSCHEDULABLE": (8, "#cf222e"),
    "ASSIGNED": (9, "#bc4c00"),
    "PREEMPTED": (10, "#bc4c00"),
    "COSCHED_FAILED": (11, "#cf222e"),
}


def _iris(name: str) -> IrisState:
    number, colour = _IRIS[name]
    return IrisState(f"TASK_STATE_{name}", number, name.lower(), colour)


IRIS_VIEW: dict[TaskState, IrisState] = {
    S.PENDING: _iris("PENDING"),
    S.ASSIGNED: _iris("ASSIGNED"),
    S.PREPARING: _iris("BUILDING"),
    S.PULLING: _iris("BUILDING"),
    S.READY_TO_START: _iris("BUILDING"),
    S.STARTING: _iris("BUILDING"),
    S.RUNNING: _iris("RUNNING"),
    S.STALE: _iris("RUNNING"),
    S.STOPPING: _iris("RUNNING"),
    S.COMPLETED: _iris("SUCCEEDED"),
    S.FAILED: _iris("FAILED"),
    S.CANCELLED: _iris("KILLED"),
    S.DOWN: _iris("WORKER_FAILED"),
    S.PREEMPTED: _iris("PREEMPTED"),
    S.UNSCHEDULABLE: _iris("UNSCHEDULABLE"),
    S.COSCHED_FAILED: _iris("COSCHED_FAILED"),
}
