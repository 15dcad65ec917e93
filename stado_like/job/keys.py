"""Every bucket key is built and parsed here, nowhere else. (The queue has its own file, `queue_keys`,
and so have what attempts leave, `data_keys`, and gangs, `gang_keys`.)

    jobs/<ws>/<job>.<k>.json                what was submitted; never changed
    deleted/<j>.json                        tombstone
    open/<j>.json                           index: jobs that a tick looks after until they are over; deletions under way
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
    status/<J>/released.json                whether a job that waits for others may go, or why it never can (`after`)
    status/<J>/{shape,waiting}.json
    cancels/<j>[.<rank>].json               index of verdicts and stops not yet settled
    logs/<J>/<rank>/<n>/<offset>.log        a piece of output
    outputs/<J>/<rank>/<n>/…                what was collected
    checkpoints/<J>/<rank>/<n>/…            what was saved for the next attempt: see `checkpoint_keys`
    bundles/<sha256>                        a folder that jobs were submitted with, named by its own digest
    capacity/<worker>.json  workers/<worker>.json
    config/workspaces/<ws>.json             what a workspace may have
    config/cluster.json                     defaults and ceilings for everybody
    config/…  queue/pause.json  state/…

`<j>` = `default.train.1`, `<J>` = `default/train.1`, `<a>` = `default.train.1.00003.000002`. Segments are
`[A-Za-z0-9_.-]`, the depth is fixed, and no key is the folder of another, so that a store that keeps keys as a
directory tree can hold them all. What the dotted ids are made of is in `ids`.

A queue entry sorts by scheduling order: `<pppp>` is 1000 - priority in four digits (higher priority first),
`<created>` the job's creation in store time, milliseconds in 13 digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stado_like.job.data_keys import checkpoints_of as checkpoints_of
from stado_like.job.data_keys import collected as collected
from stado_like.job.data_keys import collected_file as collected_file
from stado_like.job.data_keys import data_of as data_of
from stado_like.job.data_keys import log_chunk as log_chunk
from stado_like.job.data_keys import logs_of as logs_of
from stado_like.job.data_keys import outputs_of as outputs_of
from stado_like.job.data_keys import parse_log_chunk as parse_log_chunk
from stado_like.job.ids import AttemptId as AttemptId
from stado_like.job.ids import JobId as JobId
from stado_like.job.ids import bad, check_workspace, is_number, is_workspace
from stado_like.job.queue_keys import MIB as MIB
from stado_like.job.queue_keys import QUEUED as QUEUED
from stado_like.job.queue_keys import QUEUED_HELD as QUEUED_HELD
from stado_like.job.queue_keys import QUEUED_LATER as QUEUED_LATER
from stado_like.job.queue_keys import QUEUED_OPEN as QUEUED_OPEN
from stado_like.job.queue_keys import Entry as Entry
from stado_like.job.queue_keys import Envelope as Envelope
from stado_like.job.queue_keys import LaterEntry as LaterEntry
from stado_like.job.queue_keys import attempt_of_entry as attempt_of_entry
from stado_like.job.queue_keys import entries_of as entries_of
from stado_like.job.queue_keys import entry as entry
from stado_like.job.queue_keys import envelope as envelope
from stado_like.job.queue_keys import later as later
from stado_like.job.queue_keys import parse_entry as parse_entry
from stado_like.job.queue_keys import parse_later as parse_later

JOBS = "jobs/"
DELETED = "deleted/"
OPEN = "open/"
RUNNING = "running/"
STATUS = "status/"
CANCELS = "cancels/"
BUNDLES = "bundles/"
CAPACITY = "capacity/"
WANTED = "workers/"
INBOX = "inbox/"
DOORBELL = "state/doorbell.json"
STORE_VERDICT = "state/store.json"
TICK_LOCK = "state/coordinator/tick-lock.json"
TICK_REPORT = "state/coordinator/report.json"
OBSERVED = "state/coordinator/observed.json"
SWEEP_CURSOR = "state/coordinator/sweep.json"
PAUSE = "queue/pause.json"
WORKSPACES = "config/workspaces/"
CLUSTER = "config/cluster.json"
HOLDS = "state/holds.json"

_DIGEST = re.compile(r"[0-9a-f]{64}\Z", re.ASCII)


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
        raise bad(key, "a job's key")
    found = JobId.parse(f"{parts[1]}.{parts[2][: -len('.json')]}")
    if found.workspace != parts[1]:  # jobs/a.b/1.json is nobody's
        raise bad(key, "a job's key")
    return found


is_job = re.compile(r"jobs/[A-Za-z0-9_-]+/[A-Za-z0-9_-]+\.[1-9][0-9]*\.json\Z", re.ASCII).match
"""Truthy for what `parse_job` reads, at a fraction of the cost: a list asks of a million keys."""


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
        raise bad(key, f"a key of {prefix}")
    return key[len(prefix) : -len(".json")]


# ---- orders, claims


def inbox(worker: str) -> str:
    return f"{INBOX}{worker}/"


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
    if len(pieces) != 8 or pieces[0] not in ("place", "stop") or pieces[7] != "json" or not is_number(pieces[6]):
        raise bad(key, "an order in an inbox")
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


def statuses_of_name(workspace: str, name: str) -> str:
    """The prefix under which the status of every incarnation of a name lies."""
    return f"{STATUS}{workspace}/{name}."


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


def released(j: JobId) -> str:
    return f"{STATUS}{j.folder}/released.json"


def shape(j: JobId) -> str:
    """How the scheduler split the job's total."""
    return f"{STATUS}{j.folder}/shape.json"


def waiting(j: JobId) -> str:
    return f"{STATUS}{j.folder}/waiting.json"


@dataclass(frozen=True, slots=True)
class StatusKey:
    """What lies under a job's status: `kind` is heartbeat | end | stop, or the job's own verdict | final |
    released | shape | waiting (then `rank` is -1). `n` is 0 where there is no attempt."""

    kind: str
    rank: int = -1
    n: int = 0


def parse_status(j: JobId, key: str) -> StatusKey:
    rest = key[len(status_of(j)) :] if key.startswith(status_of(j)) else ""
    parts = rest.split("/")
    name = parts[-1].removesuffix(".json")
    if len(parts) == 1 and name in ("verdict", "final", "released", "shape", "waiting"):
        return StatusKey(name)
    if len(parts) == 2 and is_number(parts[0], 5):
        kind, _, n = name.partition(".")
        if kind in ("heartbeat", "end") and is_number(n, 6):
            return StatusKey(kind, int(parts[0]), int(n))
        if kind == "stop" and not n:
            return StatusKey(kind, int(parts[0]))
    raise bad(key, f"a status key of {j}")


def cancel_index(j: JobId, rank: int | None = None) -> str:
    return f"{CANCELS}{j}.json" if rank is None else f"{CANCELS}{j}.{rank:05d}.json"


def parse_cancel_index(key: str) -> tuple[JobId, int | None]:
    parts = _stem(key, CANCELS).split(".")
    if len(parts) == 4 and is_number(parts[3], 5):
        return JobId.parse(".".join(parts[:3])), int(parts[3])
    return JobId.parse(".".join(parts)), None


def capacity(worker: str) -> str:
    return f"{CAPACITY}{worker}.json"


def parse_capacity(key: str) -> str:
    return _stem(key, CAPACITY)


def wanted(worker: str) -> str:
    """What a person wants of a machine: cordon, drain, labels."""
    return f"{WANTED}{worker}.json"


def parse_wanted(key: str) -> str:
    return _stem(key, WANTED)


# ---- workspaces


def workspace(name: str) -> str:
    """Raises `UsageError` for what cannot name a workspace."""
    check_workspace(name)
    return f"{WORKSPACES}{name}.json"


def parse_workspace(key: str) -> str:
    name = _stem(key, WORKSPACES)
    if not is_workspace(name):
        raise bad(key, "the key of a workspace")
    return name


# ---- what jobs were submitted with


def bundle(digest: str) -> str:
    """`digest`: the SHA-256 of the archive that lies there, 64 hexadecimal digits. The name is the content: a second
    writer writes the same bytes, and a reader can tell whether they are."""
    key = f"{BUNDLES}{digest}"
    parse_bundle(key)
    return key


def parse_bundle(key: str) -> str:
    digest = key.removeprefix(BUNDLES)
    if not key.startswith(BUNDLES) or _DIGEST.match(digest) is None:
        raise bad(key, "a bundle's key: bundles/ and 64 hexadecimal digits")
    return digest
