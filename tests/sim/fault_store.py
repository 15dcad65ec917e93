"""A store as one actor sees it: the one bucket of the world, through a network that loses, repeats and delays.

Every operation hands control to the scheduler before it is sent, and takes effect at one instant. A late request
(delayed, or a duplicate) takes effect at a later instant of its own, whoever lives then. What a dead actor tries is
not sent at all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Protocol, TypeVar

from stado_like.errors import CredentialsRefused, StoreUnavailable
from stado_like.job import keys
from stado_like.store.clock import StoreClock
from stado_like.store.memory import MemoryStore, forget
from stado_like.store.protocol import Applied, Object, ObjectStore, Page, Rejected, Row, Stat, Unchanged, Unknown, Write
from tests.sim.ambient import VirtualAmbient
from tests.sim.faults import Fault, Faults, Kind, NoFaults, Op
from tests.sim.world import Actor, Crash, World

T = TypeVar("T")
HISTORY_KEPT = 4000
MEMORY = "/dev/shm"
BUSY_RETRY_AFTER_S = 0.5


@dataclass(frozen=True, slots=True)
class Change:
    """A key got other bytes. `None`: absent."""

    actor: str
    kind: str
    key: str
    before: bytes | None
    after: bytes | None
    at_s: float
    late: bool = False


class Watcher(Protocol):
    def changed(self, change: Change) -> None: ...

    def refused(self, key: str, standing: bytes, sent: bytes) -> None:
        """A create that was refused by other bytes."""
        ...


class SharedBucket:
    """The bucket itself, its clock, whoever watches it, and what it held a while ago (for stale lists)."""

    def __init__(self, world: World, name: str = "sim") -> None:
        self.world = world
        self.name = f"{name}-{id(self)}"
        self.clock = VirtualAmbient(world, "store")
        self.store = MemoryStore(self.name, self.clock)
        self.watchers: list[Watcher] = []
        self.faults: Faults = NoFaults()
        self.operations = 0
        self.by_kind: dict[str, int] = {}
        self.log: list[Op] | None = None
        self._history: deque[tuple[float, str, Row | None]] = deque(maxlen=HISTORY_KEPT)
        self._disk: TemporaryDirectory[str] | None = None

    def close(self) -> None:
        forget(self.name)
        if self._disk is not None:
            self._disk.cleanup()

    @property
    def disk(self) -> Path:
        """Where ticks keep what they read for the next one. (A store that keeps anything says which one it is.)"""
        if self._disk is None:
            self._disk = TemporaryDirectory(prefix="stado-ticks-", dir=MEMORY if Path(MEMORY).is_dir() else None)
            self.store.put(keys.STORE_VERDICT, b"{}")
        return Path(self._disk.name)

    def contents(self) -> dict[str, bytes]:
        held = self.store._bucket.held
        return {key: held[key][0] for key in self.store._bucket.keys}

    def peek(self, key: str) -> bytes | None:
        found = self.store._bucket.held.get(key)
        return found[0] if found is not None else None

    def effect(self, actor: str, kind: str, key: str, send: Callable[[], Write], *, late: bool = False) -> Write:
        """Carry out one write and tell the watchers what it changed."""
        row = self._row(key)
        before = self.peek(key)
        answer = send()
        after = self.peek(key)
        shown = type(answer).__name__
        self.world.say(f"{actor} {'late ' if late else ''}{kind} {key} {shown}")
        if before != after or (kind == "put" and isinstance(answer, Applied)):
            self._history.append((self.world.now_s, key, row))
            change = Change(actor, kind, key, before, after, self.world.now_s, late)
            for watcher in self.watchers:
                watcher.changed(change)
        return answer

    def _row(self, key: str) -> Row | None:
        found = self.store._bucket.held.get(key)
        return None if found is None else Row(key, found[1], len(found[0]), found[2])

    def page_as_of(self, age_s: float, prefix: str, start_after: str, limit: int) -> Page:
        """A listing as it would have been `age_s` seconds ago."""
        since_s = self.world.now_s - age_s
        older: dict[str, Row | None] = {}
        for at_s, key, row in reversed(self._history):
            if at_s < since_s:
                break
            older[key] = row
        now = [row for row in self._all_rows(prefix, start_after) if row.key not in older]
        gone = [row for key, row in older.items() if row is not None and key.startswith(prefix) and key > start_after]
        rows = sorted((*now, *gone), key=lambda row: row.key)
        return Page(tuple(rows[:limit]), len(rows) > limit, self.store.now())

    def _all_rows(self, prefix: str, start_after: str) -> list[Row]:
        rows: list[Row] = []
        while True:
            page = self.store.list(prefix, start_after=start_after)
            rows += page.rows
            if not page.more:
                return rows
            start_after = rows[-1].key


@dataclass
class FaultStore:
    """One actor's connection. `latency_s`: how long a request and its answer may travel, each."""

    shared: SharedBucket
    actor: str
    owner: Callable[[], Actor | None] = lambda: None
    latency_s: float = 0.0
    number: int = 0
    url: str = "memory://sim"
    can_replace: bool = True
    clock: StoreClock | None = None
    """Where given, store time between two answers is carried forward by it, as an HTTP client does."""

    # ---- the way of one request

    def _turn(self, kind: str, key: str) -> Fault | None:
        owner = self.owner()
        if owner is not None and owner.dead:
            raise Crash
        world = self.shared.world
        if world.current() is not None:
            world.pause(world.random.uniform(0.0, self.latency_s) if self.latency_s else 0.0)
        op = Op(self.actor, self.number, kind, key)
        self.number += 1
        actor = world.current()
        if actor is not None:
            actor.operations += 1
        self.shared.operations += 1
        self.shared.by_kind[kind] = self.shared.by_kind.get(kind, 0) + 1
        if self.shared.log is not None:
            self.shared.log.append(op)
        fault = self.shared.faults.choose(op)
        if fault is not None:
            world.say(f"{self.actor} {kind} {key} !{fault.kind}")
            if fault.kind is Kind.CRASH_BEFORE:
                self._die()
        return fault

    def _back(self) -> None:
        world = self.shared.world
        if self.clock is not None:
            self.clock.learn(self.shared.store.now())
        if self.latency_s and world.current() is not None:
            world.pause(world.random.uniform(0.0, self.latency_s))

    def _die(self) -> None:
        owner = self.owner()
        if owner is not None:
            owner.dead = True
        raise Crash

    def _write(self, kind: str, key: str, send: Callable[[], Write]) -> Write:
        fault = self._turn(kind, key)
        shared = self.shared
        if fault is None:
            answer = shared.effect(self.actor, kind, key, send)
            self._back()
            return answer
        if fault.kind in (Kind.CONFLICT, Kind.BUSY, Kind.TIMEOUT, Kind.PARTITION):
            return self._not_carried_out(fault)
        if fault.kind is Kind.EXPIRED:
            return Unknown("403 ExpiredToken")
        if fault.kind is Kind.DELAYED:
            self._later(kind, key, send, fault.delay_s)
            return Unknown("no answer: the request is still on its way")
        answer = shared.effect(self.actor, kind, key, send)
        if fault.kind is Kind.CRASH_AFTER:
            self._die()
        if fault.kind is Kind.OWN_REJECTED:
            again = shared.effect(self.actor, kind, key, send)
            self._back()
            return again if isinstance(again, Rejected) else answer
        if fault.kind is Kind.DUPLICATED:
            self._later(kind, key, send, fault.delay_s)
            self._back()
            return answer
        return Unknown(fault.kind.value)

    def _not_carried_out(self, fault: Fault) -> Unknown:
        if fault.delay_s and self.shared.world.current() is not None:
            self.shared.world.pause(fault.delay_s)
        return Unknown(fault.kind.value, BUSY_RETRY_AFTER_S if fault.kind is Kind.BUSY else 0.0)

    def _later(self, kind: str, key: str, send: Callable[[], Write], delay_s: float) -> None:
        shared = self.shared
        arrive = shared.world.now_s + delay_s
        shared.world.at(arrive, lambda: _ignore(shared.effect(self.actor, kind, key, send, late=True)))

    def _read(self, kind: str, key: str, ask: Callable[[], T], stale: Callable[[float], T] | None = None) -> T:
        fault = self._turn(kind, key)
        if fault is None or fault.kind is Kind.DUPLICATED:
            answer = ask()
            self._back()
            return answer
        if fault.kind is Kind.CRASH_AFTER:
            ask()
            self._die()
        if fault.kind is Kind.STALE_LIST and stale is not None:
            return stale(fault.delay_s)
        if fault.kind is Kind.EXPIRED:
            raise CredentialsRefused("the credentials have expired", "Log in again.")
        if fault.delay_s and self.shared.world.current() is not None:
            self.shared.world.pause(fault.delay_s)
        raise StoreUnavailable(f"{kind} {key}: {fault.kind}", "It is asked again.")

    # ---- the store's operations

    def create(self, key: str, body: bytes) -> Write:
        return self._write("create", key, lambda: self._create(key, body))

    def _create(self, key: str, body: bytes) -> Write:
        answer = self.shared.store.create(key, body)
        if isinstance(answer, Rejected):
            standing = self.shared.peek(key) or b""
            for watcher in self.shared.watchers:
                watcher.refused(key, standing, body)
        return answer

    def put(self, key: str, body: bytes) -> Write:
        return self._write("put", key, lambda: self.shared.store.put(key, body))

    def put_file(self, key: str, file: BinaryIO) -> Write:
        file.seek(0)
        return self.put(key, file.read())

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        return self._write("replace", key, lambda: self.shared.store.replace(key, body, etag))

    def delete(self, key: str) -> Applied | Unknown:
        answer = self._write("delete", key, lambda: self.shared.store.delete(key))
        assert not isinstance(answer, Rejected)
        return answer

    def get(self, key: str) -> Object | None:
        return self._read("get", key, lambda: self.shared.store.get(key))

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        return self._read("get", key, lambda: self.shared.store.get_if_changed(key, etag))

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        return self._read("get", key, lambda: self.shared.store.get_range(key, start, size_bytes))

    def head(self, key: str) -> Stat | None:
        return self._read("head", key, lambda: self.shared.store.head(key))

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        """Side by side means in any order: each is a request of its own."""
        found: dict[str, Stat | None] = {}
        order = list(keys)
        if self.latency_s:
            self.shared.world.random.shuffle(order)
        for key in order:
            found[key] = self.head(key)
        return [found[key] for key in keys]

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        return self._read(
            "list",
            prefix,
            lambda: self.shared.store.list(prefix, start_after=start_after, limit=limit),
            lambda age_s: self.shared.page_as_of(age_s, prefix, start_after, limit),
        )

    def now(self) -> float:
        known = self.clock.now() if self.clock is not None else self.shared.store.now()
        if known is None:
            self.head("state/doorbell.json")
            known = self.shared.store.now()
        return known

    def close(self) -> None:
        """The bucket is the world's."""


def _ignore(answer: Write) -> None:
    """Nobody waits for the answer of a request that arrives late."""


def _is_a_store(store: FaultStore) -> ObjectStore:
    return store
