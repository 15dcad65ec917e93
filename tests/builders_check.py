"""Buckets left as a killed process leaves them: the real transitions, cut short at a write that a test chooses.

`Struck` is a store whose caller dies at one of its writes, before it or after it; or meets somebody else there.
`shape` is what a bucket comes to, without what differs between two runs that did the same (nonces, times, the bell).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.fsck.check import Checked, check
from stado_like.fsck.finding import Finding
from stado_like.job import codec, keys
from stado_like.job.keys import JobId
from stado_like.store.memory import MemoryStore, forget
from stado_like.store.protocol import Applied, Unknown, Write
from tests.builders_jobs import Clock

IGNORED = ("state/",)
COMPARED = (
    "outcome",
    "decision",
    "state",
    "reason",
    "cause",
    "budgets",
    "due_ms",
    "early",
    "counts",
    "becomes",
    "attempt",
)
Act = Callable[[Bucket], object]
DAY_AND_MORE_S = 25 * 3600.0


class Killed(BaseException):
    """kill -9: no `except Exception` survives it."""


class Struck(MemoryStore):
    """`at`: the number of the write (from 0) at which `strike` is called, `after` it was carried out or before."""

    def __init__(self, name: str, clock: Clock, *, at: int = -1, after: bool = False, strike: Any = None) -> None:
        super().__init__(name, clock)
        self._at, self._after, self._strike = at, after, strike or _die
        self.writes = 0

    def _meet(self, *, after: bool) -> None:
        if self.writes == self._at and after == self._after:
            self._at = -1
            self._strike()

    def create(self, key: str, body: bytes) -> Write:
        self._meet(after=False)
        answer = super().create(key, body)
        self._meet(after=True)
        self.writes += 1
        return answer

    def put(self, key: str, body: bytes) -> Write:
        self._meet(after=False)
        answer = super().put(key, body)
        self._meet(after=True)
        self.writes += 1
        return answer

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        self._meet(after=False)
        answer = super().replace(key, body, etag)
        self._meet(after=True)
        self.writes += 1
        return answer

    def delete(self, key: str) -> Applied | Unknown:
        self._meet(after=False)
        answer = super().delete(key)
        self._meet(after=True)
        self.writes += 1
        return answer


def _die() -> None:
    raise Killed


class Yard:
    """One bucket by name; `bucket()` opens it anew, as another process would."""

    def __init__(self, name: str) -> None:
        forget(name)
        self.name = name
        self.clock = Clock()

    def bucket(self, **struck: Any) -> Bucket:
        return Bucket(Struck(self.name, self.clock, **struck), ambient=self.clock)

    def writes_of(self, act: Act) -> int:
        """Carry it out to the end; how many writes that took."""
        store = Struck(self.name, self.clock)
        act(Bucket(store, ambient=self.clock))
        return store.writes

    def cut(self, act: Act, at: int, *, after: bool) -> None:
        """Carry it out up to its write number `at`, and die there."""
        try:
            act(self.bucket(at=at, after=after))
        except Killed:
            return
        raise AssertionError(f"the act has no write {at}")

    def check(self, **how: Any) -> Checked:
        return check(self.bucket(), **how)

    def contents(self) -> dict[str, bytes]:
        store = MemoryStore(self.name)
        return {key: store._bucket.held[key][0] for key in store._bucket.keys}

    def shape(self) -> dict[str, dict[str, Any]]:
        return shape(self.contents())


def shape(contents: dict[str, bytes]) -> dict[str, dict[str, Any]]:
    """Every key outside of state/, with the fields in which a decision lies."""
    return dict(_shaped(contents))


def _shaped(contents: dict[str, bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, body in contents.items():
        if not key.startswith(IGNORED):
            plain = codec.decode_plain(body, key)
            yield key, {name: plain[name] for name in COMPARED if name in plain}


def codes(findings: list[Finding]) -> set[str]:
    return {one.code for one in findings}


def rewrite(bucket: Bucket, key: str, **fields: Any) -> None:
    """A foreign hand: some fields of a record get other values."""
    seen = bucket.store.get(key)
    assert seen is not None, key
    bucket.store.put(key, codec.encode({**codec.decode_plain(seen.body, key), **fields}))


def move(bucket: Bucket, key: str, to: str) -> None:
    seen = bucket.store.get(key)
    assert seen is not None, key
    bucket.store.put(to, seen.body)
    bucket.store.delete(key)


def entries_of(bucket: Bucket, j: JobId) -> list[str]:
    return [row.key for row in bucket.store.list("queued/").rows if f".{j}." in row.key]


def only_entry(bucket: Bucket, j: JobId) -> str:
    (key,) = entries_of(bucket, j)
    return key


__all__ = [
    "DAY_AND_MORE_S",
    "Act",
    "Killed",
    "Struck",
    "Yard",
    "codes",
    "entries_of",
    "keys",
    "move",
    "only_entry",
    "rewrite",
    "shape",
]
