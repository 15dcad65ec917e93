"""What a command asked of its store, by kind, and what that costs.

Cost is a feature: a polling worker can cost more than the work it does. Counted are the requests this process sent
through a `MeteredStore`; refused conditions and 304s are billed like others. Prices are Amazon's list prices for S3
Standard in us-east-1; on other stores read them as a measure, not as a bill.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import BinaryIO

from stado_like.store.protocol import Applied, Object, ObjectStore, Page, Stat, Unchanged, Unknown, Write

# Dollars per 1,000 requests: https://aws.amazon.com/s3/pricing/ (S3 Standard, us-east-1; DELETE is free).
PRICE_PER_1000: Mapping[str, float] = {
    "create": 0.005,
    "put": 0.005,
    "replace": 0.005,
    "list": 0.005,
    "get": 0.0004,
    "not_modified": 0.0004,
    "head": 0.0004,
    "delete": 0.0,
}


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests by kind. `get` does not include `not_modified` (the 304s)."""

    counts: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> int:
        return self.counts.get(kind, 0)

    def __sub__(self, earlier: Requests) -> Requests:
        return Requests({kind: n - earlier[kind] for kind, n in self.counts.items() if n != earlier[kind]})

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def dollars(self) -> float:
        return sum(PRICE_PER_1000[kind] * n for kind, n in self.counts.items()) / 1000

    def as_json(self) -> dict[str, float | int]:
        return {**{kind: self[kind] for kind in PRICE_PER_1000}, "total": self.total, "dollars": round(self.dollars, 9)}


class Meter:
    """Counts requests of one process; shared by threads and by several stores."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[str, int] = dict.fromkeys(PRICE_PER_1000, 0)

    def count(self, kind: str, requests: int = 1) -> None:
        with self._lock:
            self._counts[kind] += requests

    def snapshot(self) -> Requests:
        """The counts so far; subtract an earlier snapshot to see what happened between."""
        with self._lock:
            return Requests({kind: n for kind, n in self._counts.items() if n})

    def lines(self) -> list[str]:
        """What `--stats` prints."""
        seen = self.snapshot()
        kinds = ", ".join(f"{kind} {seen[kind]}" for kind in PRICE_PER_1000 if seen[kind]) or "none"
        return [f"store requests: {seen.total} ({kinds})", f"price at S3 Standard's list prices: ${seen.dollars:.7f}"]


class MeteredStore:
    """An `ObjectStore` that counts what passes through to `inner`."""

    def __init__(self, inner: ObjectStore, meter: Meter) -> None:
        self.inner = inner
        self.meter = meter

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def can_replace(self) -> bool:
        return self.inner.can_replace

    def ahead(self, key: str, body: bytes) -> None:
        begin = getattr(self.inner, "ahead", None)
        if begin is not None:
            begin(key, body)

    def synced_together(self) -> AbstractContextManager[None]:
        found = getattr(self.inner, "synced_together", None)
        return found() if found is not None else nullcontext()

    def create(self, key: str, body: bytes) -> Write:
        self.meter.count("create")
        return self.inner.create(key, body)

    def put(self, key: str, body: bytes) -> Write:
        self.meter.count("put")
        return self.inner.put(key, body)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        self.meter.count("put")
        return self.inner.put_file(key, file)

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        self.meter.count("replace")
        return self.inner.replace(key, body, etag)

    def get(self, key: str) -> Object | None:
        self.meter.count("get")
        return self.inner.get(key)

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        self.meter.count("get")
        return self.inner.get_range(key, start, size_bytes)

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        try:
            found = self.inner.get_if_changed(key, etag)
        except BaseException:
            self.meter.count("get")
            raise
        self.meter.count("not_modified" if isinstance(found, Unchanged) else "get")
        return found

    def head(self, key: str) -> Stat | None:
        self.meter.count("head")
        return self.inner.head(key)

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        self.meter.count("head", len(keys))
        return self.inner.heads(keys)

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        self.meter.count("list")
        return self.inner.list(prefix, start_after=start_after, limit=limit)

    def delete(self, key: str) -> Applied | Unknown:
        self.meter.count("delete")
        return self.inner.delete(key)

    def now(self) -> float:
        return self.inner.now()

    def close(self) -> None:
        self.inner.close()
