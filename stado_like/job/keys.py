"""Every bucket key is built and parsed here, nowhere else.

    jobs/<ws>/<job>.<k>.json                what was submitted; never changed
    deleted/<j>.json                        tombstone
    open/<j>.json                           index: several-task jobs not yet settled, deletions under way
    queued/open/<pppp>.<created>.<a>.<ask>.json    index: any worker it fits may claim it
    queued/held/<pppp>.<created>.<a>.<ask>.json    index: only a placement may start it
    queued/later/<due>.<a>.<ask>.json       index: a retry not yet due
    inbox/<worker>/place.<a>.<k>.json       order: this attempt was given to this worker
    inbox/<worker>/stop.<a>.<k>.json        order: a stop made by the machinery
    running/<a>.json                        THE CLAIM
    status/<J>/<rank>/heartbeat.<n>         proof of life
    status/<J>/<rank>/end.<n>.json          THE END
    status/<J>/<rank>/stop.json             a person stops this one task
    status/<J>/verdict.json                 THE VERDICT on a job
    status/<J>/final.json                   a several-task job is over and settled
    status/<J>/{shape,waiting}.json
    cancels/<j>[.<rank>].json               index of verdicts and stops not yet settled
    logs/<J>/<rank>/<n>/<offset>.log        outputs/, checkpoints/ likewise
    capacity/<worker>.json  workers/<worker>.json
    config/…  queue/pause.json  state/…

`<j>` = `default.train.1`, `<J>` = `default/train.1`, `<a>` = `default.train.1.00003.000002`. Segments are
`[A-Za-z0-9_.-]`, the depth is fixed, and no key is the folder of another, so that a store that keeps keys as a
directory tree can hold them all. No part of a name may hold a dot, so a dotted key splits in one way only.

A queue entry sorts by scheduling order: `<pppp>` is 1000 - priority in four digits (higher priority first),
`<created>` the job's creation in store time, milliseconds in 13 digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stado_like.errors import BadRecord
from stado_like.job.terms import Ask

JOBS = "jobs/"
DELETED = "deleted/"
OPEN = "open/"
QUEUED_OPEN = "queued/open/"
QUEUED_HELD = "queued/held/"
QUEUED_LATER = "queued/later/"
RUNNING = "running/"
STATUS = "status/"
CANCELS = "cancels/"
CAPACITY = "capacity/"
DOORBELL = "state/doorbell.json"
STORE_VERDICT = "state/store.json"
TICK_LOCK = "state/coordinator/tick-lock.json"
TICK_REPORT = "state/coordinator/report.json"
OBSERVED = "state/coordinator/observed.json"
SWEEP_CURSOR = "state/coordinator/sweep.json"
PAUSE = "queue/pause.json"

MIB = 1024 * 1024
_JOB = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([1-9][0-9]*)\Z", re.ASCII)
_ASK = re.compile(r"c(\d+)m(\d+)g(\d+)(x?)\Z")


def _bad(key: str, what: str) -> BadRecord:
    return BadRecord(
        f"{key!r} is not {what}", "It is left alone; `stado storage rm` removes what does not belong here."
    )


@dataclass(frozen=True, slots=True, order=True)
class JobId:
    """One incarnation of a job's name in a workspace."""

    workspace: str
    name: str
    k: int

    def __str__(self) -> str:
        return f"{self.workspace}.{self.name}.{self.k}"

    @property
    def folder(self) -> str:
        """`default/train.1`: where its status, logs and outputs live."""
        return f"{self.workspace}/{self.name}.{self.k}"

    @classmethod
    def parse(cls, dotted: str) -> JobId:
        found = _JOB.match(dotted)
        if found is None:
            raise _bad(dotted, "the id of a job: <workspace>.<name>.<incarnation>")
        return cls(found[1], found[2], int(found[3]))


@dataclass(frozen=True, slots=True, order=True)
class AttemptId:
    """Attempt `n` (from 1) of rank `rank` (from 0) of a job."""

    job: JobId
    rank: int
    n: int

    def __str__(self) -> str:
        return f"{self.job}.{self.rank:05d}.{self.n:06d}"

    @property
    def next(self) -> AttemptId:
        return AttemptId(self.job, self.rank, self.n + 1)

    @property
    def previous(self) -> AttemptId | None:
        return AttemptId(self.job, self.rank, self.n - 1) if self.n > 1 else None

    @classmethod
    def parse(cls, dotted: str) -> AttemptId:
        parts = dotted.split(".")
        if len(parts) != 5 or not _number(parts[3], 5) or not _number(parts[4], 6) or int(parts[4]) == 0:
            raise _bad(dotted, "the id of an attempt: <workspace>.<name>.<incarnation>.<rank>.<attempt>")
        return cls(JobId.parse(".".join(parts[:3])), int(parts[3]), int(parts[4]))


def _number(text: str, width: int = 1) -> bool:
    """A number spelt as it is here: what is done about another spelling would go to the true one, for ever in vain."""
    return text.isascii() and text.isdigit() and len(text) >= width and (len(text) == width or text[0] != "0")


# ---- the job


def job(j: JobId) -> str:
    return f"{JOBS}{j.folder}.json"


def jobs_of_name(workspace: str, name: str) -> str:
    """The prefix under which every incarnation of a name lies."""
    return f"{JOBS}{workspace}/{name}."


def jobs_of(workspace: str) -> str:
    return f"{JOBS}{workspace}/"


def parse_job(key: str) -> JobId:
    parts = key.split("/")
    if len(parts) != 3 or f"{parts[0]}/" != JOBS or not parts[2].endswith(".json"):
        raise _bad(key, "a job's key")
    return JobId.parse(f"{parts[1]}.{parts[2][: -len('.json')]}")


def tombstone(j: JobId) -> str:
    return f"{DELETED}{j}.json"


def open_index(j: JobId) -> str:
    return f"{OPEN}{j}.json"


def parse_open_index(key: str) -> JobId:
    return JobId.parse(_stem(key, OPEN))


def parse_tombstone(key: str) -> JobId:
    return JobId.parse(_stem(key, DELETED))


def _stem(key: str, prefix: str) -> str:
    if not key.startswith(prefix) or not key.endswith(".json"):
        raise _bad(key, f"a key of {prefix}")
    return key[len(prefix) : -len(".json")]


# ---- the queue


@dataclass(frozen=True, slots=True)
class Envelope:
    """The coarse ask in an entry's name: whole cores and MiB, rounded down so that nothing that fits is passed over.
    `picky`: the entry itself must be read before it is admitted (pinned, exclusive, fractions)."""

    cores: int
    mib: int
    gpus: int
    picky: bool

    def __str__(self) -> str:
        return f"c{self.cores}m{self.mib}g{self.gpus}{'x' if self.picky else ''}"


def envelope(ask: Ask) -> Envelope:
    exact = ask.cpu_millis % 1000 == 0 and ask.memory_bytes % MIB == 0
    picky = ask.exclusive or bool(ask.pinned_host) or not exact
    return Envelope(ask.cpu_millis // 1000, ask.memory_bytes // MIB, ask.gpus, picky)


@dataclass(frozen=True, slots=True)
class Entry:
    """A queue entry as its key tells it. `order` sorts entries in scheduling order across the indexes."""

    key: str
    attempt: AttemptId
    priority: int
    created_ms: int
    envelope: Envelope

    @property
    def order(self) -> tuple[int, int, str]:
        return (-self.priority, self.created_ms, str(self.attempt))


def entry(index: str, attempt: AttemptId, priority: int, created_ms: int, ask: Ask) -> str:
    """`index` is QUEUED_OPEN or QUEUED_HELD."""
    return f"{index}{1000 - priority:04d}.{created_ms:013d}.{attempt}.{envelope(ask)}.json"


def parse_entry(key: str) -> Entry:
    index = QUEUED_OPEN if key.startswith(QUEUED_OPEN) else QUEUED_HELD
    parts = _stem(key, index).split(".")
    if len(parts) != 8 or not _number(parts[0], 4) or int(parts[0]) > 2000 or not _number(parts[1], 13):
        raise _bad(key, "a queue entry")
    attempt = AttemptId.parse(".".join(parts[2:7]))
    return Entry(key, attempt, 1000 - int(parts[0]), int(parts[1]), _parse_envelope(key, parts[7]))


def _parse_envelope(key: str, text: str) -> Envelope:
    found = _ASK.match(text)
    envelope = Envelope(int(found[1]), int(found[2]), int(found[3]), bool(found[4])) if found else None
    if envelope is None or str(envelope) != text:
        raise _bad(key, "an entry with an ask like c1m1024g0")
    return envelope


@dataclass(frozen=True, slots=True)
class LaterEntry:
    key: str
    attempt: AttemptId
    due_ms: int


def later(due_ms: int, attempt: AttemptId, ask: Ask) -> str:
    return f"{QUEUED_LATER}{due_ms:013d}.{attempt}.{envelope(ask)}.json"


def parse_later(key: str) -> LaterEntry:
    parts = _stem(key, QUEUED_LATER).split(".")
    if len(parts) != 7 or not _number(parts[0], 13):
        raise _bad(key, "an entry of queued/later")
    _parse_envelope(key, parts[6])
    return LaterEntry(key, AttemptId.parse(".".join(parts[1:6])), int(parts[0]))


# ---- orders, claims


def inbox(worker: str) -> str:
    return f"inbox/{worker}/"


def order(worker: str, kind: str, attempt: AttemptId, k: int) -> str:
    """`kind` is `place` or `stop`; `k` numbers the orders of one attempt, so a burnt one protects nobody."""
    return f"{inbox(worker)}{kind}.{attempt}.{k}.json"


@dataclass(frozen=True, slots=True)
class Order:
    key: str
    worker: str
    kind: str
    attempt: AttemptId
    k: int


def parse_order(key: str) -> Order:
    parts = key.split("/")
    pieces = parts[2].split(".") if len(parts) == 3 and parts[0] == "inbox" else []
    if len(pieces) != 8 or pieces[0] not in ("place", "stop") or pieces[7] != "json" or not _number(pieces[6]):
        raise _bad(key, "an order in an inbox")
    return Order(key, parts[1], pieces[0], AttemptId.parse(".".join(pieces[1:6])), int(pieces[6]))


def running(a: AttemptId) -> str:
    return f"{RUNNING}{a}.json"


def running_of(j: JobId) -> str:
    return f"{RUNNING}{j}."


def parse_running(key: str) -> AttemptId:
    return AttemptId.parse(_stem(key, RUNNING))


# ---- status


def status_of(j: JobId) -> str:
    return f"{STATUS}{j.folder}/"


def task_status(j: JobId, rank: int) -> str:
    return f"{STATUS}{j.folder}/{rank:05d}/"


def heartbeat(a: AttemptId) -> str:
    return f"{task_status(a.job, a.rank)}heartbeat.{a.n:06d}"


def end(a: AttemptId) -> str:
    return f"{task_status(a.job, a.rank)}end.{a.n:06d}.json"


def stop(j: JobId, rank: int) -> str:
    return f"{task_status(j, rank)}stop.json"


def verdict(j: JobId) -> str:
    return f"{STATUS}{j.folder}/verdict.json"


def final(j: JobId) -> str:
    return f"{STATUS}{j.folder}/final.json"


def waiting(j: JobId) -> str:
    return f"{STATUS}{j.folder}/waiting.json"


@dataclass(frozen=True, slots=True)
class StatusKey:
    """What lies under a job's status: `kind` is heartbeat | end | stop, or the job's own verdict | final | shape |
    waiting (then `rank` is -1). `n` is 0 where there is no attempt."""

    kind: str
    rank: int = -1
    n: int = 0


def parse_status(j: JobId, key: str) -> StatusKey:
    rest = key[len(status_of(j)) :] if key.startswith(status_of(j)) else ""
    parts = rest.split("/")
    name = parts[-1].removesuffix(".json")
    if len(parts) == 1 and name in ("verdict", "final", "shape", "waiting"):
        return StatusKey(name)
    if len(parts) == 2 and _number(parts[0], 5):
        kind, _, n = name.partition(".")
        if kind in ("heartbeat", "end") and _number(n, 6):
            return StatusKey(kind, int(parts[0]), int(n))
        if kind == "stop" and not n:
            return StatusKey(kind, int(parts[0]))
    raise _bad(key, f"a status key of {j}")


def cancel_index(j: JobId, rank: int | None = None) -> str:
    return f"{CANCELS}{j}.json" if rank is None else f"{CANCELS}{j}.{rank:05d}.json"


def parse_cancel_index(key: str) -> tuple[JobId, int | None]:
    parts = _stem(key, CANCELS).split(".")
    if len(parts) == 4 and _number(parts[3], 5):
        return JobId.parse(".".join(parts[:3])), int(parts[3])
    return JobId.parse(".".join(parts)), None


# ---- what an attempt leaves


def logs_of(a: AttemptId) -> str:
    return f"logs/{a.job.folder}/{a.rank:05d}/{a.n:06d}/"


def log_chunk(a: AttemptId, offset: int) -> str:
    """`<seq>` is the byte offset in 12 digits: an upload is idempotent, and whoever carries on lists and goes on."""
    return f"{logs_of(a)}{offset:012d}.log"


def parse_log_chunk(key: str) -> int:
    name = key.rsplit("/", 1)[-1].removesuffix(".log")
    if not _number(name, 12):
        raise _bad(key, "a piece of a log")
    return int(name)


def data_of(j: JobId) -> tuple[str, ...]:
    """Prefixes of everything a job left besides its status."""
    return tuple(f"{room}/{j.folder}/" for room in ("logs", "outputs", "checkpoints", "gangs"))


def checkpoints_of(a: AttemptId) -> str:
    return f"checkpoints/{a.job.folder}/{a.rank:05d}/{a.n:06d}/"


def capacity(worker: str) -> str:
    return f"{CAPACITY}{worker}.json"


def parse_capacity(key: str) -> str:
    return _stem(key, CAPACITY)


def wanted(worker: str) -> str:
    """What a person wants of a machine: cordon, drain, labels."""
    return f"workers/{worker}.json"
