"""What we ask of a store: bytes under keys, and one condition that decides everything.

`create` is the only operation on which safety rests: of any number of callers exactly one wins. A write has three
answers, and the third is real: `Unknown` means that the request may or may not have been carried out, now or later.
Nobody guesses; `conditional.create_once` reads back. Reads have three answers too: present, absent (`None`), or the
exception `StoreUnavailable`. "Could not tell" is never "no".

Every answer carries `now`, the store's own time when it answered: ages compare `last_modified` with the `now` of the
same answer, so no client's clock is trusted.

Keys are 1 to 1,024 bytes of `[A-Za-z0-9_.-]` segments joined by `/`; no key is the "folder" of another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True, slots=True)
class Applied:
    """The write was carried out. `etag` names the bytes; `now` is store time, seconds since 1970 UTC."""

    etag: str
    now: float


@dataclass(frozen=True, slots=True)
class Rejected:
    """The condition did not hold: the key exists (`create`), or holds other bytes or none (`replace`)."""

    now: float


@dataclass(frozen=True, slots=True)
class Unknown:
    """No definite answer. `why` says what was seen (a status, a timeout), for a person to read.
    `retry_after_s` is what the store asked for (HTTP `Retry-After`), 0 when it asked for nothing."""

    why: str
    retry_after_s: float = 0.0


Write = Applied | Rejected | Unknown


@dataclass(frozen=True, slots=True)
class Object:
    """A body with its name and age. Times are seconds since 1970 UTC on the store's clock."""

    body: bytes
    etag: str
    last_modified: float
    now: float


@dataclass(frozen=True, slots=True)
class Stat:
    """An object without its body."""

    etag: str
    size_bytes: int
    last_modified: float
    now: float


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The answer 304: the object still is what `etag` named."""

    now: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a listing: a hint, never evidence of absence."""

    key: str
    etag: str
    size_bytes: int
    last_modified: float


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing in ascending key order. `more` says whether to go on after `rows[-1].key`."""

    rows: tuple[Row, ...]
    more: bool
    now: float


class ObjectStore(Protocol):
    """One bucket (or directory) under one prefix. Shared by the threads of a process.

    Reads raise `StoreUnavailable` (after their own bounded retries), `CredentialsRefused` or `BucketMissing`.
    `create` and `replace` are sent exactly once and never raise `StoreUnavailable`: they answer `Unknown`.
    """

    @property
    def url(self) -> str:
        """What `--store` would have to say to open this store again; holds no secret."""
        ...

    @property
    def can_replace(self) -> bool:
        """Whether `replace` keeps its promise on this store (see probe)."""
        ...

    def create(self, key: str, body: bytes) -> Write:
        """Write iff `key` is absent. Exactly one of any number of callers gets Applied."""
        ...

    def put(self, key: str, body: bytes) -> Write:
        """Write whatever was there. Applied or Unknown; last writer wins; nothing is decided by it."""
        ...

    def put_file(self, key: str, file: BinaryIO) -> Write:
        """`put` of a whole seekable file, from its beginning, without holding it in memory: for what is too large to be
        a record. Sent once, like every write; nobody may change the file meanwhile."""
        ...

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        """Write iff `key` holds the bytes that `etag` names."""
        ...

    def get(self, key: str) -> Object | None: ...

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None: ...

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        """At most `size_bytes` (> 0) bytes of an object from its byte `start`; empty at its end, `None` when it is
        absent. What is large is read in pieces: each is tried again by itself, and a reader may stop between two."""
        ...

    def head(self, key: str) -> Stat | None: ...

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        """`head` of several keys side by side, in the order asked. Raises what the first failing one raises."""
        ...

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        """One page of at most `limit` (≤ 1,000) rows whose key begins with `prefix` and sorts after `start_after`."""
        ...

    def delete(self, key: str) -> Applied | Unknown:
        """Idempotent: deleting what is absent is Applied."""
        ...

    def now(self) -> float:
        """Store time, carried forward from the last answer by a clock that counts suspend; asks the store if it
        must."""
        ...

    def close(self) -> None: ...


def list_all(store: ObjectStore, prefix: str, *, start_after: str = "") -> Iterator[Row]:
    """Every row under `prefix`, page after page. A listing of a changing bucket is a hint, as always."""
    while True:
        page = store.list(prefix, start_after=start_after)
        yield from page.rows
        if not page.more or not page.rows:
            return
        start_after = page.rows[-1].key
