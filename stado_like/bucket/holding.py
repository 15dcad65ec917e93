"""Room held for the head of the queue, between the record and the board.

    put state/holds.json (a new nonce)  →  ring for the workers named before and now  →  they read, obey, echo the nonce

A tick renews what it holds every few minutes; what nobody renewed for ten minutes holds nothing any more. Last writer
wins: two ticks that write different holds cost one of them its effect until the next tick sees the other's
and decides again. Nothing rests on a hold but the order in which work starts.
"""

from __future__ import annotations

from collections.abc import Iterable

from stado_like.bucket import doorbell
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.held_room import HeldRoom, Holds
from stado_like.job.ids import JobId
from stado_like.planning.board import Hold

BELL = "holds"
NAMED_MOST = 40
LEFT_WITHIN_S = 120.0
"""Whoever is stopped for held room has left it by then, as a rule; until then no tick need come to renew the hold."""
STANDS_S = 600.0
"""So long holds stand that nobody renewed: those of a tick that is no more must not keep machines idle for ever."""
EVERYBODY = "*"


def read(bucket: Bucket) -> Holds:
    """What is held now; nothing where nobody ever wrote. Raises `StoreUnavailable`, `BadRecord`."""
    found = bucket.read(Holds, keys.HOLDS)
    return found.record if found is not None else Holds(nonce="")


def stands(record: Holds, now: float) -> bool:
    return now - record.at < STANDS_S


def is_held_for(bucket: Bucket, j: JobId) -> bool:
    """Whether room is held for the job, and will be for as long as it may take others to leave it. Raises
    `StoreUnavailable`, `BadRecord`."""
    record = read(bucket)
    return stands(record, bucket.now() + LEFT_WITHIN_S) and any(one.job == str(j) for one in record.holds)


def on_board(record: Holds) -> tuple[Hold, ...]:
    """As a plan sees them. One whose job cannot be named is left out: it holds room for nobody."""
    found = []
    for one in record.holds:
        try:
            job = JobId.parse(one.job)
        except BadRecord:
            continue
        found.append(
            Hold(
                job=job,
                worker=one.worker,
                cpu_millis=one.cpu_millis,
                memory_bytes=one.memory_bytes,
                gpus=one.gpus,
                priority=one.priority,
                starts_at=one.starts_at,
                whole=one.whole,
                created_ms=one.created_ms,
            )
        )
    return tuple(found)


def of_board(holds: Iterable[Hold]) -> tuple[HeldRoom, ...]:
    return tuple(
        HeldRoom(
            job=str(one.job),
            worker=one.worker,
            cpu_millis=one.cpu_millis,
            memory_bytes=one.memory_bytes,
            gpus=one.gpus,
            priority=one.priority,
            starts_at=one.starts_at,
            whole=one.whole,
            created_ms=one.created_ms,
        )
        for one in holds
    )


def write(bucket: Bucket, before: Iterable[Hold], now: Iterable[Hold], nonce: str = "") -> Holds:
    """Hold this room from now on, and ring for every machine that it concerns or concerned. `nonce`: of what is held
    already; then it only stands longer, and nobody is rung for. Raises `StoreUnavailable`."""
    now = tuple(now)
    record = Holds(nonce=nonce or bucket.token(), at=bucket.now(), holds=of_board(now))
    bucket.put(keys.HOLDS, record)
    if nonce:
        return record
    workers = sorted({one.worker for one in (*before, *now)})
    named = workers if len(workers) <= NAMED_MOST else [EVERYBODY]
    doorbell.ring(bucket, (BELL, ",".join(named)))
    return record


def concerns(what: str, worker: str) -> bool:
    """Whether a ring for `what` is for this worker."""
    return what == EVERYBODY or worker in what.split(",")


def ends_by(since: float, time_limit_s: int | None) -> float | None:
    """When a task's time limit ends it, as far as its claim tells: it began to run a moment later, and its grace comes
    on top. None: it has no limit."""
    return since + time_limit_s if time_limit_s is not None else None
