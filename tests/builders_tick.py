"""Worlds and stores for the tests of the tick: a clock that is moved by hand, jobs, claims, heartbeats and broadcasts
in one line each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stado_like.bucket import entries
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.submit import Submitted, submit
from stado_like.errors import StoreUnavailable
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Armed, Capacity, Claim, Heartbeat, Job, Observed
from stado_like.job.records import Held as Named
from stado_like.job.states import TaskState
from stado_like.job.terms import Terms, terms_of
from stado_like.planning.world import Beat, Blob, Broadcast, Held, Look, World
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Applied, Object, Page, Stat, Unchanged, Unknown, Write

T0 = 1_700_000_000.0
TTL_S = 60
_names = itertools.count()


class Virtual:
    """An ambient whose time stands still until somebody sleeps or `pass_s` is called. The store's clock is `wall_s`.

    Its pid is above what Linux gives to any process: a lock that a killed tick leaves is one of a process that is gone.
    """

    def __init__(self, host: str = "here", pid: int = 4_194_305) -> None:
        self.pid, self.host, self.boot_id = pid, host, "boot-1"
        self.at_s = 0.0
        self.jumped_s = 0.0
        self._tokens = itertools.count(1)

    def boot_s(self) -> float:
        return self.at_s

    def wall_s(self) -> float:
        return T0 + self.at_s + self.jumped_s

    def sleep(self, seconds: float) -> None:
        self.at_s += seconds

    def pass_s(self, seconds: float) -> None:
        self.at_s += seconds

    def token(self) -> str:
        return f"{next(self._tokens):016x}"

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2


class BreakableStore(MemoryStore):
    """A memory store of which some keys do not answer. `broken` are prefixes; `seen` counts what was asked."""

    def __init__(self, ambient: Virtual) -> None:
        super().__init__(f"tick-{next(_names)}", ambient)
        self.broken: tuple[str, ...] = ()
        self.no_writes: tuple[str, ...] = ()
        self.writes: list[tuple[str, str]] = []

    def _check(self, key: str) -> None:
        if self.broken and key.startswith(self.broken):
            raise StoreUnavailable(f"no answer for {key}")

    def create(self, key: str, body: bytes) -> Write:
        if self.no_writes and key.startswith(self.no_writes):
            return Unknown("no answer")
        answer = super().create(key, body)
        if isinstance(answer, Applied):
            self.writes.append(("create", key))
        return answer

    def put(self, key: str, body: bytes) -> Write:
        self.writes.append(("put", key))
        return super().put(key, body)

    def delete(self, key: str) -> Applied | Unknown:
        self.writes.append(("delete", key))
        return super().delete(key)

    def get(self, key: str) -> Object | None:
        self._check(key)
        return super().get(key)

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        self._check(key)
        return super().get_if_changed(key, etag)

    def head(self, key: str) -> Stat | None:
        self._check(key)
        return super().head(key)

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        self._check(prefix)
        return super().list(prefix, start_after=start_after, limit=limit)

    @contextmanager
    def failing(self, *prefixes: str) -> Iterator[None]:
        self.broken = prefixes
        try:
            yield
        finally:
            self.broken = ()


def document(name: str = "train", *, size: int = 0, cap: int = 0, **task: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"task_template": {"command": "true", **task}}
    if size:
        spec["array"] = {"size": size, **({"max_parallel": cap} if cap else {})}
    for one in ("terminates_agent", "max_task_failures"):
        if one in task:
            spec[one] = spec["task_template"].pop(one)
    return {"metadata": {"name": name}, "spec": spec}


class Stage:
    """One store with its clock, and the people on it."""

    def __init__(self) -> None:
        self.clock = Virtual()
        self.store = BreakableStore(self.clock)
        self.bucket = Bucket(self.store, ambient=self.clock)

    def submit(self, name: str = "train", **how: Any) -> JobId:
        done = submit(self.bucket, document(name, **how))
        assert isinstance(done, Submitted)
        return done.id

    def job(self, j: JobId) -> tuple[Job, Terms]:
        job = self.bucket.job(j)
        assert job is not None
        return job, terms_of(job.document)

    def claim(self, a: AttemptId, worker: str = "w1", *, entry_deleted: bool = True, boot_id: str = "") -> Claim:
        job, terms = self.job(a.job)
        key = entries.open_key(job, terms, a)
        claim = Claim(
            nonce=self.bucket.token(),
            attempt=str(a),
            worker=worker,
            boot_id=boot_id,
            since=self.bucket.now(),
            queue_key=key,
        )
        self.bucket.decide(keys.running(a), claim)
        if entry_deleted:
            self.store.delete(key)
        return claim

    def beat(
        self,
        a: AttemptId,
        *,
        state: TaskState = TaskState.RUNNING,
        running_at: float = 0.0,
        seq: int = 1,
        stop_cause: str = "",
    ) -> None:
        now = self.bucket.now()
        beat = Heartbeat(
            seq=seq,
            nonce=self.bucket.token(),
            worker="w1",
            state=state,
            started_at=running_at or now,
            running_at=running_at or now,
            at=now,
            ttl_s=TTL_S,
            stop_cause=stop_cause,
        )
        self.store.put(keys.heartbeat(a), codec.encode(beat))

    def broadcast(
        self, worker: str, *held: tuple[AttemptId, str, bool], next_by_s: float = 60.0, boot_id: str = ""
    ) -> None:
        now = self.bucket.now()
        named = tuple(Named(attempt=str(a), nonce=nonce, alive=alive) for a, nonce, alive in held)
        said = Capacity(
            nonce=self.bucket.token(), worker=worker, boot_id=boot_id, at=now, next_by=now + next_by_s, held=named
        )
        self.store.put(keys.capacity(worker), codec.encode(said))

    def keys(self, prefix: str) -> list[str]:
        return [row.key for row in self.store.list(prefix).rows]


# ---- worlds made by hand, for the pure tests


def attempt(name: str = "train", rank: int = 0, n: int = 1) -> AttemptId:
    return AttemptId(JobId("default", name, 1), rank, n)


def look(
    a: AttemptId | None = None,
    *,
    worker: str = "w1",
    beat_age_s: float | None = 0.0,
    claim_age_s: float = 3600.0,
    blob_age_s: float | None = None,
    now: float = T0,
    ttl_s: float = TTL_S,
    **more: Any,
) -> Look:
    """A claim whose heartbeat is `beat_age_s` old (None: there never was one)."""
    a = a or attempt()
    held = Held(a, Claim(nonce="claim-1", attempt=str(a), worker=worker), "claim-etag", now - claim_age_s, now)
    beat = None if beat_age_s is None else Beat("beat-etag", now - beat_age_s, now, None)
    blob = None if blob_age_s is None else Blob(now - blob_age_s, now)
    return Look(held, ttl_s=ttl_s, beat=beat, blob=blob, **more)


def armed(one: Look, since_s: float) -> Armed:
    """The arming that a tick `since_s` seconds ago would have left for this look."""
    etag, last_modified = one.signature
    return Armed(etag=etag, last_modified=last_modified, first_seen=one.now - since_s)


def said(worker: str, *held: Named, age_s: float = 0.0, next_by_s: float = 20.0, now: float = T0) -> Broadcast:
    capacity = Capacity(nonce="c", worker=worker, next_by=now - age_s + next_by_s, held=held)
    return Broadcast(worker, capacity, now - age_s, now)


def world(
    *looks: Look, now: float = T0, armed_s: float | None = None, observed: Observed | None = None, **more: Any
) -> World:
    """`armed_s`: every look was armed this many seconds ago."""
    if observed is None and armed_s is not None:
        observed = Observed(armed={str(one.attempt): armed(one, armed_s) for one in looks})
    return World(now=now, looks=looks, observed=observed or Observed(), **more)
