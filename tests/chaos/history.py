"""Everything that was seen of one campaign, as data: what people asked for, what ran, was decided, and was struck.

The checker reads only this. So each of its rules can be shown a history that breaks it.
Times are this machine's, seconds since 1970: every process of a campaign runs here, and so does its store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum

from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End
from stado_like.job.states import JobState


@dataclass(slots=True)
class Sent:
    """One submission. `may_end`: the states in which it may end when nobody stops it. `asked_at`: when somebody first
    asked for something that may end it otherwise (the answer may have been lost)."""

    name: str
    kind: str
    request_id: str
    tasks: int
    may_end: frozenset[JobState]
    submitted_at: float
    max_parallel: int = 0
    id: JobId | None = None
    acknowledged_at: float = 0.0
    asked_at: float = 0.0
    cancelled_at: float = 0.0
    stopped_at: dict[int, float] = field(default_factory=dict)
    delete_asked_at: float = 0.0
    deleted_at: float = 0.0
    state: JobState | None = None
    several: bool = False
    after: JobId | None = None
    parent: JobId | None = None
    needs: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Which ranks must have started before one may."""
    requeued: set[int] = field(default_factory=set)
    """Ranks that somebody asked to be put back."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the effect log."""

    attempt: AttemptId
    pid: int
    what: str
    at: float


@dataclass(slots=True)
class EndSeen:
    """An end record as it was first seen, and every other body that ever stood under its key."""

    end: End
    body: bytes
    seen_at: float
    others: list[bytes] = field(default_factory=list)


class Harm(StrEnum):
    """What was done to a process or a machine."""

    AGENT_KILLED = "agent killed"
    AGENT_TOLD_TO_STOP = "agent told to stop (SIGTERM)"
    NURSERY_KILLED = "nursery killed"
    SUPERVISOR_KILLED = "supervisor killed"
    TASK_KILLED = "task's process killed"
    COORDINATOR_KILLED = "coordinator killed"
    TICK_KILLED = "cron tick killed"
    AGENT_STOPPED = "agent stopped for 2 TTL"
    SUPERVISOR_STOPPED = "supervisor stopped for 2 TTL"
    SUPERVISOR_DEAF = "supervisor stopped for 20 TTL"
    COORDINATOR_STOPPED = "coordinator stopped"
    MACHINE_PAUSED = "machine paused for 9 TTL"
    MACHINE_LOST = "machine lost, back after 9 TTL"
    DISK_FULL = "disk full"
    SERVER_KILLED = "server killed and started"
    SERVER_STOPPED = "server stopped for 10 to 20 s"
    WEATHER = "lossy network"
    MACHINE_DRAINED = "machine drained"
    MACHINE_CORDONED = "machine cordoned"
    QUEUE_PAUSED = "queue paused"


SILENCING = {Harm.MACHINE_PAUSED, Harm.MACHINE_LOST}
DEAFENING = {Harm.SERVER_KILLED, Harm.SERVER_STOPPED, Harm.WEATHER}
OF_AN_ATTEMPT = {Harm.SUPERVISOR_KILLED, Harm.SUPERVISOR_STOPPED, Harm.SUPERVISOR_DEAF}
OF_A_LAUNCH = {Harm.AGENT_KILLED, Harm.AGENT_TOLD_TO_STOP, Harm.AGENT_STOPPED, Harm.NURSERY_KILLED, Harm.DISK_FULL}


@dataclass(slots=True)
class Strike:
    """One fault. `attempts`: those that ran under it. `until`: when it was taken back (0: not yet)."""

    harm: Harm
    at: float
    worker: str = ""
    attempts: frozenset[str] = frozenset()
    until: float = 0.0

    def covers(self, begun: float, ended: float, slack_s: float) -> bool:
        """Whether the interval from `begun` to `ended` meets the time in which it was felt."""
        return self.at <= ended and begun <= (self.until or ended) + slack_s


@dataclass(slots=True)
class History:
    sent: list[Sent] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    ends: dict[AttemptId, EndSeen] = field(default_factory=dict)
    finals: dict[JobId, JobState] = field(default_factory=dict)
    jobs_seen: set[JobId] = field(default_factory=set)
    standing: set[JobId] = field(default_factory=set)
    """Jobs whose object is there at the end."""
    rewritten: list[str] = field(default_factory=list)
    """Keys decided once whose bytes changed, other than ends. (The job of a name that is used again comes back for a
    moment, until its tombstone is seen: that is no change.)"""
    buried_at: dict[JobId, float] = field(default_factory=dict)
    strikes: list[Strike] = field(default_factory=list)
    refused: list[AttemptId] = field(default_factory=list)
    """Attempts whose supervisor sent an end and found another one standing."""
    ended_by_themselves: list[str] = field(default_factory=list)
    fsck: list[str] = field(default_factory=list)
    network: Counter[str] = field(default_factory=Counter)
    drained_s: float = 0.0
    ran_s: float = 0.0

    @property
    def acknowledged(self) -> list[Sent]:
        return [one for one in self.sent if one.id is not None]

    def by_attempt(self) -> dict[AttemptId, list[Line]]:
        found: dict[AttemptId, list[Line]] = defaultdict(list)
        for line in sorted(self.lines, key=lambda one: one.at):
            found[line.attempt].append(line)
        return found

    def by_task(self) -> dict[tuple[JobId, int], list[AttemptId]]:
        """Every attempt of a task that ended or ran, in order."""
        found: dict[tuple[JobId, int], set[AttemptId]] = defaultdict(set)
        for a in [*self.ends, *(line.attempt for line in self.lines)]:
            found[a.job, a.rank].add(a)
        return {task: sorted(attempts) for task, attempts in found.items()}

    def final_end(self, j: JobId, rank: int) -> AttemptId | None:
        found = [a for a, seen in self.ends.items() if (a.job, a.rank) == (j, rank) and seen.end.is_final]
        return max(found, default=None)
