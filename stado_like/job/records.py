"""What is stored: one frozen dataclass per record of the bucket. `codec` turns them into bytes and back.

A record that decides something carries a random `nonce`: equal bytes then mean "I wrote this". Queue entries carry
none, on purpose: every actor that creates the entry of one attempt writes the same bytes, so creating it again is
harmless. Times are store time, seconds since 1970 UTC, unless a name ends in `_ms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job.broadcast import Capacity as Capacity
from stado_like.job.broadcast import Held as Held
from stado_like.job.broadcast import Room as Room
from stado_like.job.hardware import ANY_GPU, NO_PORT, GpuKind, PortAsk
from stado_like.job.states import Cause, Decision, JobState, Outcome, TaskState

MOST_BYTES = 64 * 1024
HISTORY_FIRST = 5
HISTORY_LAST = 50
LOG_IN_END_BYTES = 16 * 1024
LAST_FAILURE_LINES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """What a task has spent so far. `preemptions` are never reset; failures, machine faults and `completions` (restarts
    after exit 0, which only lengthen the wait) are after ten minutes of running. `supervisor_deaths`: the worker, for
    each supervisor that died under the task on a machine that lived on; gone after a day of running."""

    failures: int = 0
    machine: int = 0
    preemptions: int = 0
    completions: int = 0
    supervisor_deaths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of a history."""

    state: str
    reason: str
    at: float
    cause: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The first 5 and the last 50 changes; `dropped` counts those between."""

    changes: tuple[Change, ...] = ()
    dropped: int = 0

    def add(self, change: Change) -> History:
        changes = (*self.changes, change)
        if len(changes) <= HISTORY_FIRST + HISTORY_LAST:
            return History(changes=changes, dropped=self.dropped)
        return History(changes=changes[:HISTORY_FIRST] + changes[-HISTORY_LAST:], dropped=self.dropped + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """jobs/…: what was submitted, defaults applied. Never changed."""

    nonce: str
    request_id: str
    workspace: str
    name: str
    incarnation: int
    created_ms: int
    document: Mapping[str, Any]
    submitted_by: str = ""
    submitted_from: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """queued/…: a hint that an attempt may be claimed. All of it follows from the job and the attempt's number."""

    attempt: str
    cpu_millis: int
    memory_bytes: int
    gpus: int = 0
    exclusive: bool = False
    pinned_host: str = ""
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    apart: str = ""
    needs: Mapping[str, str] = field(default_factory=dict)
    gpu_kind: GpuKind = ANY_GPU
    ports: PortAsk = NO_PORT
    node_share: int = 0
    time_limit_s: int | None = None
    becomes: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """running/…: who holds the attempt. `overdue`: why a tick took it, where it had waited too long to start.
    `order`: the key of the order it was claimed by, and the `generation` of its gang which that named. `devices`: the
    ids of the GPUs that its worker chose for it."""

    nonce: str
    attempt: str
    worker: str
    machine_id: str = ""
    boot_id: str = ""
    instance_id: str = ""
    since: float = 0.0
    queue_key: str = ""
    overdue: str = ""
    order: str = ""
    generation: int = 0
    devices: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """status/…/heartbeat.<n>: proof of life and live state, put by the task's own supervisor. `progress`: what the task
    says of itself; `steps`: a few `(store time, step)` of it; `stall`: since when it shows no sign of work; `saved_at`:
    when what its newest checkpoint holds was written."""

    seq: int
    nonce: str
    worker: str
    state: TaskState
    reason: str = ""
    started_at: float = 0.0
    running_at: float = 0.0
    at: float = 0.0
    ttl_s: int = 60
    log_bytes: int = 0
    stop_cause: str = ""
    progress: Mapping[str, Any] = field(default_factory=dict)
    progress_at: float = 0.0
    steps: tuple[tuple[float, ...], ...] = ()
    stall: Mapping[str, Any] = field(default_factory=dict)
    saved_at: float = 0.0
    history: History = field(default_factory=History)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The end of an attempt's output: `size` bytes in all, the last of them here from `offset` on, as text or
    base64."""

    offset: int = 0
    size: int = 0
    text: str | None = None
    base64: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFailure:
    exit_code: int | None = None
    reason: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """status/…/end.<n>.json: the one record by which an attempt ends; it decides what follows."""

    nonce: str
    attempt: str
    outcome: Outcome
    decision: Decision
    state: TaskState
    reason: str
    cause: Cause = Cause.NONE
    exit_code: int | None = None
    signal: str | None = None
    due_ms: int = 0
    budgets: Budgets = field(default_factory=Budgets)
    restart: Mapping[str, Any] = field(default_factory=dict)
    worker: str = ""
    claimed_at: float = 0.0
    started_at: float = 0.0
    running_at: float = 0.0
    ended_at: float = 0.0
    by: str = ""
    history: History = field(default_factory=History)
    last_failure: LastFailure | None = None
    log: LogTail | None = None
    notes: tuple[str, ...] = ()
    requests: Mapping[str, Any] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    answer: str | None = None
    collected: Mapping[str, Any] = field(default_factory=dict)
    carried: Mapping[str, Any] = field(default_factory=dict)
    """Of a block, by rank: how the first attempts ended that its claim carried; `blocks.unpacked` reads one."""
    given_back: tuple[int, ...] = ()
    """Of a block: the ranks whose first attempts it did not begin, or that `goes_on`: they are open by themselves."""
    goes_on: int | None = None
    """Of a block: the rank that runs on under a claim of its own, which stood before this record."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        return self.decision is Decision.FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedFile:
    """One file of an attempt. `name`: the last segment of its key; `path`: as the task knew it, relative to where it
    ran or absolute; `digest`: SHA-256."""

    name: str
    path: str
    size_bytes: int
    digest: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What was asked for and not collected. `missing`: there was no such file."""

    path: str
    why: str
    missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """outputs/…/manifest.json: what an attempt left, written when all of it is there."""

    attempt: str
    files: tuple[CollectedFile, ...] = ()
    size_bytes: int = 0
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """status/…/verdict.json: what becomes of a job; early (a person, too many failures) or computed when all ended.
    `stops`: what the tasks say that it stops, where that is not simply what became of the job."""

    nonce: str
    state: JobState
    reason: str
    by: str = ""
    at: float = 0.0
    early: bool = False
    stops: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """status/…/<rank>/stop.json: a person stops this one task."""

    nonce: str
    reason: str
    by: str = ""
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """status/…/final.json: a several-task job is over and settled. Its state is the verdict's, its counts are the
    ends'."""

    nonce: str
    state: JobState
    reason: str
    counts: Mapping[str, int] = field(default_factory=dict)
    started_at: float = 0.0
    finished_at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """deleted/…: this incarnation is over for ever."""

    nonce: str
    request_id: str = ""
    by: str = ""
    at: float = 0.0
    state: str = ""
    created_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """open/…, cancels/…: an index entry. The key says it all; `what` is for people."""

    what: str = ""
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """inbox/…: a decision of the tick for one worker. Ignored when its last_modified is over 2 minutes after
    `decided_at`. To start an attempt (`place`): where its entry lies, and the `generation` of its gang (0: it has
    none); `devices`: the only GPUs it may take, where it takes every free one; `refused`: why its worker would not, as
    that wrote over it."""

    nonce: str
    attempt: str
    kind: str
    cause: Cause = Cause.NONE
    reason: str = ""
    decided_at: float = 0.0
    queue_key: str = ""
    generation: int = 0
    devices: tuple[str, ...] = ()
    refused: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Armed:
    """An attempt that a tick saw Stale: a second tick, a TTL later, may decide its death if nothing moved."""

    etag: str
    last_modified: float
    first_seen: float
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """state/coordinator/observed.json. `brake_since`: when the brake was first pulled (0: it is not); `braked_at`: when
    a tick last found it so."""

    armed: Mapping[str, Armed] = field(default_factory=dict)
    brake_since: float = 0.0
    braked_at: float = 0.0
    reaped_at: tuple[float, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TickLock:
    nonce: str
    pid: int
    host: str
    boot_id: str
    started_at: float
    since: float
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BellEvent:
    """One ring: `what` names whom it concerns; `kind` is entry | queue (many entries: list them) | cancel | stop |
    order | follow | drain | pause | held (a placement may be due) | holds."""

    nonce: str
    kind: str
    what: str
    at: float = 0.0
    until: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doorbell:
    """state/doorbell.json: the newest events, oldest first. A hint: whoever misses one finds out by sweeping."""

    events: tuple[BellEvent, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
