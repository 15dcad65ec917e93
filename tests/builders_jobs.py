"""Jobs in a bucket, put there by the real transitions, at times that a test chooses.

`Clock` is an ambient whose time moves only when a test says so (or sleeps), so ages are exact. The steps below are
what a worker does, in its order.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from stado_like.bucket import claim as claiming
from stado_like.bucket import submit as submitting
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.bucket.submit import Submitted
from stado_like.job import codec, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Capacity, Change, Claim, End, Heartbeat, History, LogTail, Room
from stado_like.job.spec.validate import validate
from stado_like.job.states import Cause, TaskState
from stado_like.job.terms import terms_of
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore

_numbers = count(1)
START_S = 1_800_000_000.0


class Clock:
    """An ambient under the test's hand. Sleeping moves time; a sleep runs `while_asleep` first, if any."""

    def __init__(self) -> None:
        self.now_s = START_S
        self.tokens = count(1)
        self.slept_s: list[float] = []
        self.while_asleep: Any = None

    pid = 4242
    host = "here"
    boot_id = "boot-1"

    def boot_s(self) -> float:
        return self.now_s - START_S + 100.0

    def wall_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        if self.while_asleep is not None:
            self.while_asleep()
        self.now_s += seconds

    def token(self) -> str:
        return f"{next(self.tokens):016x}"

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


def make_bucket(clock: Clock, meter: Meter | None = None) -> Bucket:
    """An empty bucket of its own, whose time is the clock's."""
    store = MemoryStore(f"jobs-{next(_numbers)}", clock)
    return Bucket(MeteredStore(store, meter) if meter else store, ambient=clock)


def document(name: str = "train", *, array: Mapping[str, int] | None = None, **spec: Any) -> dict[str, Any]:
    """A stored document. `template`: fields of the task template; `metadata`: of the metadata."""
    metadata = {"name": name, **spec.pop("metadata", {})}
    more: dict[str, Any] = {"array": dict(array)} if array else {}
    if "task_groups" not in spec:
        more["task_template"] = {"command": "true", **spec.pop("template", {})}
    return validate({"metadata": metadata, "spec": {**more, **spec}})


def submit(bucket: Bucket, name: str = "train", **spec: Any) -> JobId:
    done = submitting.submit(bucket, document(name, **spec), by="ann", origin="laptop")
    assert isinstance(done, Submitted)
    return done.id


def attempt(j: JobId, rank: int = 0, n: int = 1) -> AttemptId:
    return keys.AttemptId(j, rank, n)


def claim(bucket: Bucket, a: AttemptId, worker: str = "w1") -> Claim:
    """Claim and pass the gate, as a worker does."""
    found = Claim(nonce=bucket.token(), attempt=str(a), worker=worker, since=bucket.now())
    assert claiming.send(bucket, a, codec.encode(found), "") is None
    opened = claiming.gate(bucket, a, found)
    assert isinstance(opened, claiming.Open), opened
    claiming.confirm(bucket, a, opened, found)
    return found


def story(bucket: Bucket, state: TaskState) -> History:
    """What a supervisor has done when it says `state`."""
    steps = [(TaskState.PREPARING, reasons.PREPARING), (TaskState.STARTING, reasons.STARTED)]
    if state not in (TaskState.PREPARING, TaskState.STARTING):
        steps.append((TaskState.RUNNING, reasons.RUNNING))
    if state is TaskState.PREPARING:
        steps = steps[:1]
    told = History()
    for name, reason in steps:
        told = told.add(Change(state=name.value, reason=reason, at=bucket.now()))
    return told


def beat(
    bucket: Bucket,
    a: AttemptId,
    state: TaskState = TaskState.RUNNING,
    *,
    worker: str = "w1",
    reason: str = reasons.RUNNING,
) -> None:
    now = bucket.now()
    record = Heartbeat(
        seq=1,
        nonce="n",
        worker=worker,
        state=state,
        reason=reason,
        started_at=now,
        running_at=now if state is TaskState.RUNNING else 0.0,
        at=now,
        history=story(bucket, state),
    )
    bucket.put(keys.heartbeat(a), record)


def log_tail(body: bytes, *, offset: int = 0) -> LogTail:
    """An end record's log: `body` is all output; from `offset` on it travels in the record."""
    rest = body[offset:]
    try:
        return LogTail(offset=offset, size=len(body), text=rest.decode())
    except UnicodeDecodeError:
        return LogTail(offset=offset, size=len(body), base64=base64.b64encode(rest).decode())


def end(
    bucket: Bucket,
    a: AttemptId,
    code: int = 0,
    *,
    cause: Cause | None = None,
    reason: str = "",
    worker: str = "w1",
    ran_s: float = 1.0,
    log: LogTail | None = None,
    last_lines: str = "",
) -> End:
    """End and settle an attempt that ran for `ran_s`."""
    job = bucket.job(a.job)
    assert job is not None
    cause = cause if cause is not None else (Cause.NONE if code == 0 else Cause.FAILURE)
    now = bucket.now()
    seen = Seen(
        worker=worker,
        claimed_at=now - ran_s,
        started_at=now - ran_s,
        running_at=now - ran_s,
        ended_at=now,
        exit_code=code,
        by=worker,
        history=story(bucket, TaskState.RUNNING),
        log=log,
        last_lines=last_lines,
    )
    done = end_attempt(bucket, a, terms_of(job.document), Ended(cause, reason or reasons.exited(code), ran_s), seen)
    settle(bucket, a, done.end, job=job)
    return done.end


def run(bucket: Bucket, a: AttemptId, code: int = 0, **more: Any) -> End:
    """Claim, beat, end: one whole attempt."""
    claim(bucket, a, more.get("worker", "w1"))
    beat(bucket, a, worker=more.get("worker", "w1"))
    return end(bucket, a, code, **more)


def worker(bucket: Bucket, name: str = "w1", *, free: Room | None = None, **more: Any) -> Capacity:
    """A worker's broadcast, fresh now."""
    now = bucket.now()
    room = free or Room(cpu_millis=4000, memory_bytes=8 << 30)
    record = Capacity(nonce=bucket.token(), worker=name, at=now, next_by=now + 20, total=room, free=room)
    record = replace(record, **more)
    bucket.put(keys.capacity(name), record)
    return record
