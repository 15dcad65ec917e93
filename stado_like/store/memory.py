"""A store inside one process: for tests, and for the simulator, whose virtual clock it obeys.

Every `memory://name` of a process is the same store. Its time is the wall clock of the ambient of whoever opened
the name first: one store has one clock, however many machines with clocks of their own are simulated around it.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from threading import Lock
from typing import BinaryIO

from stado_like.ambient import REAL, Ambient
from stado_like.store.key_shape import check_read, check_written
from stado_like.store.protocol import Applied, Object, Page, Rejected, Row, Stat, Unchanged, Unknown, Write


class _Bucket:
    def __init__(self, ambient: Ambient) -> None:
        self.ambient = ambient
        self.lock = Lock()
        self.held: dict[str, tuple[bytes, str, float]] = {}  # key -> body, etag, last_modified
        self.keys: list[str] = []  # sorted


_buckets: dict[str, _Bucket] = {}
_buckets_lock = Lock()


def _etag_of(body: bytes) -> str:
    """Equal bodies have equal etags, as on S3: nothing may rely on more."""
    return f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'


def forget(name: str) -> None:
    """Drop `memory://name`; the next to open the name finds it empty and brings its own clock."""
    with _buckets_lock:
        _buckets.pop(name, None)


class MemoryStore:
    """Objects in a dictionary under one lock."""

    def __init__(self, name: str, ambient: Ambient = REAL, *, url: str | None = None) -> None:
        with _buckets_lock:
            self._bucket = _buckets.setdefault(name, _Bucket(ambient))
        self._url = url or f"memory://{name}"

    @property
    def url(self) -> str:
        return self._url

    @property
    def can_replace(self) -> bool:
        return True

    def now(self) -> float:
        return self._bucket.ambient.wall_s()

    def close(self) -> None:
        """The objects stay: others of this process may hold the same name."""

    def create(self, key: str, body: bytes) -> Write:
        check_written(key)
        with self._bucket.lock:
            if key in self._bucket.held:  # guard: create-if-absent
                return Rejected(self.now())
            return self._store(key, body)

    def put(self, key: str, body: bytes) -> Write:
        check_written(key)
        with self._bucket.lock:
            return self._store(key, body)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        file.seek(0)
        return self.put(key, file.read())

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        check_written(key)
        with self._bucket.lock:
            found = self._bucket.held.get(key)
            if found is None or found[1] != etag:  # guard: replace-if-same
                return Rejected(self.now())
            return self._store(key, body)

    def _store(self, key: str, body: bytes) -> Applied:
        now, etag = self.now(), _etag_of(body)
        if key not in self._bucket.held:
            insort(self._bucket.keys, key)
        self._bucket.held[key] = (bytes(body), etag, now)
        return Applied(etag, now)

    def get(self, key: str) -> Object | None:
        check_read(key)
        with self._bucket.lock:
            found = self._bucket.held.get(key)
            return None if found is None else Object(*found, now=self.now())

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        found = self.get(key)
        return Unchanged(found.now) if found is not None and found.etag == etag else found

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        found = self.get(key)
        return None if found is None else found.body[start : start + size_bytes]

    def head(self, key: str) -> Stat | None:
        check_read(key)
        with self._bucket.lock:
            found = self._bucket.held.get(key)
            return None if found is None else Stat(found[1], len(found[0]), found[2], self.now())

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        return [self.head(key) for key in keys]

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        limit = max(1, min(limit, 1000))
        rows: list[Row] = []
        with self._bucket.lock:
            keys = self._bucket.keys
            at = max(bisect_left(keys, prefix), bisect_right(keys, start_after))
            more = False
            while at < len(keys) and keys[at].startswith(prefix):
                if len(rows) == limit:
                    more = True
                    break
                body, etag, written_at = self._bucket.held[keys[at]]
                rows.append(Row(keys[at], etag, len(body), written_at))
                at += 1
            return Page(tuple(rows), more, self.now())

    def delete(self, key: str) -> Applied | Unknown:
        check_read(key)
        with self._bucket.lock:
            if self._bucket.held.pop(key, None) is not None:
                del self._bucket.keys[bisect_left(self._bucket.keys, key)]
            return Applied("", self.now())
