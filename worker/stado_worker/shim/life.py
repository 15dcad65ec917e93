"""What the two threads of a supervisor share: where the attempt stands, and what each wants of the other.

*Control* starts, signals, kills and reaps, and never asks the store, whose calls can hang for a minute. *I/O* asks
the store and never touches a process. They meet only here, under one lock, held for moments. Times are store time,
carried forward from the claim by the boot clock, so that control knows the time without asking.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from stado_like.ambient import Ambient
from stado_like.job import reasons
from stado_like.job.records import Change, History
from stado_like.job.states import Cause, Event, TaskState, after
from stado_worker.shim.exit_status import Exit

RANK_OF_STOP = {
    Cause.REQUESTED: 0,
    Cause.TIME_LIMIT: 1,
    Cause.STALLED: 2,
    Cause.GANG: 3,
    Cause.BARRIER: 3,
    Cause.REQUEUED: 4,
    Cause.MOVED: 5,
    Cause.PREEMPTED: 6,
    Cause.MACHINE_LOST: 7,
}
"""Which stop prevails when several are asked of one attempt: the lowest."""


@dataclass(frozen=True, slots=True)
class StopAsked:
    cause: Cause
    reason: str


@dataclass(frozen=True, slots=True)
class Over:
    """The process and its whole tree are gone. `cause` NONE: it ended by itself, with `exit`. `stuck`: what would
    not die."""

    cause: Cause
    reason: str
    exit: Exit | None
    ended_at: float
    notes: tuple[str, ...] = ()
    stuck: tuple[int, ...] = ()


class Gate(Enum):
    """Whether the attempt may (still) run, asked again after a long sleep."""

    SURE = auto()
    ASKED = auto()
    PASSED = auto()


@dataclass(slots=True)
class Life:
    """All fields are read and written under `lock`; the methods take it themselves."""

    ambient: Ambient
    claimed_at: float
    claimed_boot_s: float
    wake_io: Callable[[], None] = lambda: None
    wake_control: Callable[[], None] = lambda: None
    lock: threading.Lock = field(default_factory=threading.Lock)
    state: TaskState = TaskState.PREPARING
    reason: str = reasons.PREPARING
    history: History = field(default_factory=History)
    started_at: float = 0.0
    running_at: float = 0.0
    stop: StopAsked | None = None
    stalled: Mapping[str, float] | None = None
    """Since when it shows no sign of work, and after how many seconds that counts: `{since, after_seconds}`."""
    saved_at: float = 0.0
    """When what the newest checkpoint of this attempt holds was written, store time; 0: there is none."""
    over: Over | None = None
    fenced: bool = False
    killed: bool = False
    """Fenced, and nothing of the tree is left: only then may anybody note that this attempt is done with."""
    gate: Gate = Gate.SURE
    beat_now: bool = False
    look_now: bool = False
    accepted_boot_s: float = 0.0
    looked_boot_s: float = 0.0
    """When the last look began that found the attempt still ours; the claim counts as one."""

    def __post_init__(self) -> None:
        self.accepted_boot_s = self.looked_boot_s = self.claimed_boot_s
        self.history = self.history.add(Change(state=self.state.value, reason=self.reason, at=self.now()))

    def now(self) -> float:
        """Store time as this machine carries it forward."""
        return self.claimed_at + (self.ambient.boot_s() - self.claimed_boot_s)

    def move(self, event: Event, reason: str, *, cause: str = "", beat: bool = True) -> None:
        """Follow an arrow of the table, and let the next heartbeat tell."""
        with self.lock:
            self.state = after(self.state, event)
            self.reason = reason
            self.history = self.history.add(Change(state=self.state.value, reason=reason, at=self.now(), cause=cause))
            self.beat_now = self.beat_now or beat
        if beat:
            self.wake_io()

    def heard_again(self, late_at: float) -> None:
        """Its heartbeat was late since then, as every reader could see, and comes again."""
        with self.lock:
            if self.state is not TaskState.RUNNING or self.over is not None:
                return
            self.reason = reasons.HEARTBEAT_RECEIVED
            for state, reason, at in (
                (TaskState.STALE, reasons.LEASE_EXPIRED, late_at),
                (TaskState.RUNNING, self.reason, self.now()),
            ):
                self.history = self.history.add(Change(state=state.value, reason=reason, at=at))

    def say(self, reason: str) -> None:
        """Why it still stands where it stands, for people; the next heartbeat tells, where it is another reason."""
        with self.lock:
            if reason == self.reason or self.over is not None:
                return
            self.reason = reason
            self.history = self.history.add(Change(state=self.state.value, reason=reason, at=self.now()))
            self.beat_now = True
        self.wake_io()

    def mark_stalled(self, since: float, after_s: int, reason: str) -> None:
        """It runs, and shows no sign of work."""
        with self.lock:
            self.stalled = {"since": since, "after_seconds": after_s}
        self._still(reason, cause=Cause.STALLED.value)

    def unmark_stalled(self, reason: str) -> None:
        with self.lock:
            self.stalled = None
        self._still(reason)

    def _still(self, reason: str, cause: str = "") -> None:
        """The same state for another reason, unless that state has ended meanwhile."""
        with self.lock:
            if self.over is not None or self.state is not TaskState.RUNNING:
                return
            self.reason = reason
            self.history = self.history.add(Change(state=self.state.value, reason=reason, at=self.now(), cause=cause))
            self.beat_now = True
        self.wake_io()

    def kill_follows(self, reason: str, cause: Cause) -> None:
        """A stop's grace is over: it is killed now, and then over, so no heartbeat has to tell."""
        with self.lock:
            self.reason = reason
            self.history = self.history.add(
                Change(state=self.state.value, reason=reason, at=self.now(), cause=cause.value)
            )

    def note(self, reason: str, *, cause: Cause) -> None:
        """Something was done to it, and it runs on."""
        self._still(reason, cause.value)

    def tell(self, reason: str) -> None:
        """What is done for it after its process ended; in the heartbeat alone: the history has its end already."""
        with self.lock:
            self.reason = reason
            self.beat_now = True

    def looked(self, began_boot_s: float) -> None:
        """A look that began then found the attempt still ours."""
        with self.lock:
            self.looked_boot_s = max(self.looked_boot_s, began_boot_s)

    def ask_stop(self, cause: Cause, reason: str) -> None:
        """A stop of a graver cause replaces one that is under way; the same or a lesser one changes nothing."""
        with self.lock:
            if self.stop is not None and RANK_OF_STOP[self.stop.cause] <= RANK_OF_STOP[cause]:
                return
            self.stop = StopAsked(cause, reason)
        self.wake_control()

    def fence(self) -> None:
        """Another has ended this attempt, or its job is gone: kill, write nothing."""
        with self.lock:
            self.fenced = True
        self.wake_control()

    def all_killed(self) -> None:
        with self.lock:
            self.killed = True
        self.wake_io()

    def nudge(self) -> None:
        """Somebody says that there is news: look now."""
        with self.lock:
            self.look_now = True
        self.wake_io()

    def end(self, over: Over) -> None:
        with self.lock:
            self.over = over
        self.wake_io()

    def accepted(self) -> None:
        """The store accepted a request."""
        with self.lock:
            self.accepted_boot_s = self.ambient.boot_s()
