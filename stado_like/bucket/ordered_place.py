"""Orders to start an attempt: a tick gives it to one worker, which claims it or says why it will not.

    create inbox/<worker>/place.<a>.<k>.json  →  ring  →  its worker claims it  →  gate  →  entry, order deleted
                                    or it writes `refused` over the order, and a tick gives the attempt to another

The entry stays where it lies until the claim stands: an order is no more than a word to one worker, and two of them for
one attempt are settled by the claim. One that was written long after it was decided is deleted unread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stado_like.bucket import doorbell
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.order import MOST_NUMBERED, is_in_time
from stado_like.errors import BadRecord, StoreUnavailable
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Order
from stado_like.store.conditional import Won
from stado_like.store.protocol import list_all

PLACE = "place"
CLAIMED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class ToStart:
    """An order that holds: `attempt` is this worker's to claim; its entry lies under `queue_key`."""

    key: str
    attempt: AttemptId
    queue_key: str
    generation: int
    order: Order


def give(
    bucket: Bucket,
    worker: str,
    a: AttemptId,
    queue_key: str,
    *,
    generation: int = 0,
    devices: tuple[str, ...] = (),
    ring: bool = True,
) -> str:
    """Have a worker claim an attempt. Returns the key of the order that stands; one that holds is not given again.
    `devices`: the only GPUs it may take, of an attempt that takes every free one. Raises `StoreUnavailable`."""
    for k in range(1, MOST_NUMBERED + 1):
        key = keys.order(worker, PLACE, a, k)
        order = Order(
            nonce=bucket.token(),
            attempt=str(a),
            kind=PLACE,
            decided_at=bucket.now(),
            queue_key=queue_key,
            generation=generation,
            devices=devices,
        )
        if isinstance(bucket.decide(key, order), Won):
            if ring:
                doorbell.ring(bucket, ("order", worker))
            return key
        if _holds(bucket, key, generation):
            return key
    raise StoreUnavailable(
        f"{MOST_NUMBERED} orders for {a} lie in the inbox of {worker}, and none of them holds",
        f"`stado storage ls {keys.inbox(worker)}` shows them; the worker deletes them when it sweeps.",
    )


def _holds(bucket: Bucket, key: str, generation: int) -> bool:
    try:
        found = bucket.read(Order, key)
    except BadRecord:
        return False
    return (
        found is not None and is_in_time(found) and found.record.generation == generation and not found.record.refused
    )


def to_start(bucket: Bucket, worker: str, parsed: keys.Order) -> ToStart | None:
    """Read one order of an inbox. None: it is no order to start, does not hold (then it is deleted), was refused, or
    cannot be read. Raises `StoreUnavailable`."""
    try:
        found = bucket.read(Order, parsed.key)
    except BadRecord:
        return None  # `storage fsck` names it
    if found is None or found.record.refused:
        return None
    if not is_in_time(found):  # guard: order in time
        bucket.drop(parsed.key)
        return None
    return ToStart(parsed.key, parsed.attempt, found.record.queue_key, found.record.generation, found.record)


def refuse(bucket: Bucket, asked: ToStart, why: str) -> None:
    """Say that this worker will not. The tick reads it, and gives the attempt elsewhere."""
    bucket.put(asked.key, replace(asked.order, refused=why[:500] or "it would not"))


def withdraw(bucket: Bucket, worker: str, a: AttemptId) -> None:
    """Take back what a worker was ordered about an attempt that nobody is to start any more."""
    bucket.drop(*(row.key for row in list_all(bucket.store, _orders_of(worker, a))))


def was_refused(bucket: Bucket, worker: str, a: AttemptId) -> bool:
    """Whether a worker said of an attempt that it will not start it. Raises `StoreUnavailable`."""
    for row in list_all(bucket.store, _orders_of(worker, a)):
        try:
            found = bucket.read(Order, row.key)
        except BadRecord:
            continue  # `storage fsck` names it
        if found is not None and found.record.refused:
            return True
    return False


def _orders_of(worker: str, a: AttemptId) -> str:
    return keys.order(worker, PLACE, a, 1).removesuffix("1.json")
