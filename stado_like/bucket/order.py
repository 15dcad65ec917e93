"""Orders: how the machinery stops an attempt that a worker holds, so that it runs again elsewhere or later.

    create inbox/<worker>/stop.<a>.<k>.json  →  ring  →  its worker tells the supervisor  →  end (retry, spends nothing)

A verdict or a person's stop is a fact about a task and is looked for at its own key by everybody. An order is about one
attempt on one machine: it lies in that machine's inbox, and dies with the attempt. It does not decide an end: the
supervisor does, which knows of graver stops. The worker deletes it when the attempt is settled; what is left in the
inbox of one that never comes back goes with a tick.

An order that was written long after it was decided (a request that the network kept for minutes, and that its sender
had given up on) stops nothing. Orders of one attempt are numbered, so that such a one keeps no later one from being
given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stado_like.bucket import doorbell, entries, load
from stado_like.bucket.bucket import Bucket, Found
from stado_like.bucket.end import is_over
from stado_like.errors import BadRecord, Conflict, NotFound, StoreUnavailable
from stado_like.job import keys, reasons
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Order
from stado_like.job.states import Cause
from stado_like.store.conditional import Won
from stado_like.store.protocol import list_all

HOLDS_S = 120.0
MOST_NUMBERED = 100
GRAVEST_FIRST = (Cause.GANG, Cause.BARRIER, Cause.REQUEUED, Cause.MOVED, Cause.PREEMPTED)
"""What an order may be for. A graver one is given beside one that stands; a lesser one is not."""


@dataclass(frozen=True, slots=True)
class Given:
    """An order that holds."""

    key: str
    attempt: AttemptId
    cause: Cause
    reason: str


def is_in_time(found: Found[Order]) -> bool:
    """Both times are the store's."""
    return found.last_modified - found.record.decided_at <= HOLDS_S


# ---- giving


def give_stop(bucket: Bucket, worker: str, a: AttemptId, cause: Cause, reason: str) -> str:
    """Have the holder of an attempt stop it. Returns the key of the order that stands, which may be an earlier one of
    the same or a graver cause. Raises `StoreUnavailable`."""
    for k in range(1, MOST_NUMBERED + 1):
        key = keys.order(worker, "stop", a, k)
        order = Order(
            nonce=bucket.token(),
            attempt=str(a),
            kind="stop",
            cause=cause,
            reason=reason,
            decided_at=bucket.now(),
        )
        if isinstance(bucket.decide(key, order), Won) or _says_as_much(bucket, key, cause):
            doorbell.ring(bucket, ("order", worker))
            return key
    raise StoreUnavailable(
        f"{MOST_NUMBERED} orders for {a} lie in the inbox of {worker}, and none of them holds",
        f"`stado storage ls {keys.inbox(worker)}` shows them; the worker deletes them when it sweeps.",
    )


def _says_as_much(bucket: Bucket, key: str, cause: Cause) -> bool:
    """Whether the order that stands there holds, and is of no lesser cause."""
    try:
        found = bucket.read(Order, key)
    except BadRecord:
        return False  # it says nothing to its worker either
    if found is None or not is_in_time(found):
        return False
    said = found.record.cause
    return said in GRAVEST_FIRST and GRAVEST_FIRST.index(said) <= GRAVEST_FIRST.index(cause)


# ---- obeying


def stops_for(
    bucket: Bucket, worker: str, known: Mapping[str, Given], others: list[keys.Order] | None = None
) -> list[Given]:
    """The stop orders in an inbox that hold. Those that came too late are deleted; what cannot be read is passed over.
    `known`: read before, and not read again. `others` gets the orders to start. Raises `StoreUnavailable`."""
    found = []
    for row in list_all(bucket.store, keys.inbox(worker)):
        try:
            parsed = keys.parse_order(row.key)
        except BadRecord:
            continue  # `storage fsck` names it
        if parsed.kind != "stop":
            if others is not None:
                others.append(parsed)
            continue
        given = known.get(row.key) or _read(bucket, parsed)
        if given is not None:
            found.append(given)
    return found


def _read(bucket: Bucket, parsed: keys.Order) -> Given | None:
    try:
        found = bucket.read(Order, parsed.key)
    except BadRecord:
        return None
    if found is None:
        return None
    if not is_in_time(found):  # guard: order in time
        bucket.drop(parsed.key)
        return None
    if found.record.cause not in GRAVEST_FIRST:
        return None
    return Given(parsed.key, parsed.attempt, found.record.cause, found.record.reason)


# ---- a person puts a task back


class Requeue(StrEnum):
    STOPPING = "stopping"
    QUEUED = "queued"
    WAITS = "waits"


@dataclass(frozen=True, slots=True)
class Requeued:
    """What became of it. STOPPING: its holder (`worker`) stops it, and it runs again; QUEUED: it waited for its time,
    which is now; WAITS: it is on the queue already, nothing was done."""

    attempt: AttemptId
    how: Requeue
    worker: str = ""


def requeue(bucket: Bucket, j: JobId, rank: int, *, reason: str = "", by: str = "") -> Requeued:
    """Put the open attempt of a task back into the queue. Raises `NotFound`, `Conflict` where the task is over or is
    being stopped, `StoreUnavailable`."""
    job = bucket.job(j)
    if job is None or any(bucket.present(keys.tombstone(j))):
        raise NotFound(f"there is no job {j}", "`stado job list --all` shows every job.")
    terms = bucket.terms(job)
    if not 0 <= rank < terms.tasks:
        raise NotFound(f"the job {j} has {terms.tasks} tasks, 0 to {terms.tasks - 1}; there is no {rank}")
    task = load.task_now(bucket, j, rank, load.list_status(bucket, j, keys.task_status(j, rank)))
    if task.undecided:
        return Requeued(keys.AttemptId(j, rank, task.last_n + 1), Requeue.WAITS)
    if task.open is None or (terms.several and bucket.final(j) is not None):
        raise Conflict(
            f"task {rank} of {j} has ended already", f"`stado job rerun {j.name}` runs it all again.", code="TASK_ENDED"
        )
    a = task.open
    if is_over(bucket, a):
        raise Conflict(
            f"task {rank} of {j} is being stopped for good: it does not run again",
            "`stado task show` tells why.",
            code="TASK_STOPPED",
        )
    claim = bucket.claim(a)
    if claim is not None:
        worker = claim.record.worker
        if not worker:  # a tick's claim, by which it ends what waited too long
            raise Conflict(
                f"task {rank} of {j} is being ended: {claim.record.overdue or 'nobody is to start it'}",
                f"`stado job rerun {j.name}` runs it all again.",
                code="TASK_STOPPED",
            )
        give_stop(bucket, worker, a, Cause.REQUEUED, reason or reasons.requeued(by))
        return Requeued(a, Requeue.STOPPING, worker)
    if task.last is not None and task.last.due_ms:
        later = keys.parse_later(entries.later_key(terms, a, task.last.due_ms))
        moved = entries.move_due(bucket, later)
        if moved is not None:
            doorbell.ring_entries(bucket, [moved])
            return Requeued(a, Requeue.QUEUED)
    return Requeued(a, Requeue.WAITS)
