"""A store seen as the place where jobs live: typed reads, deciding creates, idempotent indexes.

Every other file of this room is one transition of the protocol; this one only saves them from spelling bytes. What
has ended never changes, so end records are remembered (`ends`), which makes a resident tick or watcher read each of
them once. Nor does a job: its terms are resolved once.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from stado_like.ambient import REAL, Ambient
from stado_like.bucket.kept_ends import KeptEnds
from stado_like.job import blocks, codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End, Final, Heartbeat, Job, Stop, Tombstone, Verdict
from stado_like.job.split import Split, decided
from stado_like.job.terms import Terms, terms_of
from stado_like.store import conditional
from stado_like.store.conditional import Lost, Won
from stado_like.store.protocol import ObjectStore

R = TypeVar("R")
ENDS_REMEMBERED = 200_000
TERMS_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Found(Generic[R]):
    """A record with the store's words about it. `age_s` compares two times of one answer."""

    record: R
    etag: str
    last_modified: float
    now: float

    @property
    def age_s(self) -> float:
        return max(0.0, self.now - self.last_modified)


class Bucket:
    """The door of this room. Holds no state of jobs but a memory of what never changes."""

    def __init__(self, store: ObjectStore, *, ambient: Ambient = REAL, budget_s: float = 8.0) -> None:
        self.store = store
        self.ambient = ambient
        self.budget_s = budget_s
        self._ends: dict[str, End] = {}
        self.kept_ends: KeptEnds | None = None
        self._terms: dict[str, tuple[Job, Terms]] = {}
        self._blocks: dict[JobId, Terms | None] = {}
        self._split: dict[str, Job] = {}

    def now(self) -> float:
        """Store time, seconds."""
        return self.store.now()

    def token(self) -> str:
        return self.ambient.token()

    # ---- reads

    def read(self, kind: type[R], key: str) -> Found[R] | None:
        """Raises `StoreUnavailable`, `BadRecord`. None means: it is not there."""
        found = self.store.get(key)
        if found is None:
            return None
        return Found(codec.decode(kind, found.body, key), found.etag, found.last_modified, found.now)

    def job(self, j: JobId) -> Job | None:
        found = self.read(Job, keys.job(j))
        return found.record if found else None

    def terms(self, job: Job) -> Terms:
        """What a job asks for. Raises `KeyError` where its document leaves out what no version may, and for a job whose
        total the scheduler splits also what a read raises: its shape is asked for until it was decided."""
        known = self._terms.get(job.nonce)
        if known is not None and (known[0] is job or known[0].document == job.document):
            return known[1]
        found = terms_of(job.document)
        if not found.shaped:
            split = self.read(Split, keys.shape(JobId(job.workspace, job.name, job.incarnation)))
            if split is None:
                return found
            as_split = replace(job, document=decided(job.document, split.record))
            found = terms_of(as_split.document)
            self.remember_terms(job, found)
            self._split[job.nonce] = as_split
            return found
        self.remember_terms(job, found)
        return found

    def as_split(self, job: Job) -> Job:
        """The job as if its person had said how its total is split, for whoever goes by its document alone from here
        on (a supervisor). Raises as `terms`."""
        self.terms(job)
        return self._split.get(job.nonce, job)

    def remember_terms(self, job: Job, terms: Terms) -> None:
        """What a job asks for, where somebody has resolved it already. `terms.shaped` must hold."""
        if len(self._terms) >= TERMS_REMEMBERED:
            self._terms.clear()
            self._blocks.clear()
            self._split.clear()
        self._terms[job.nonce] = (job, terms)
        self._blocks[JobId(job.workspace, job.name, job.incarnation)] = terms if terms.block else None

    def block_terms(self, j: JobId) -> Terms | None:
        """The terms of a job whose ranks are carried in blocks; None: they are not, or there is no such job."""
        if j not in self._blocks:
            job = self.job(j)
            if job is None:
                return None
            self.terms(job)
        return self._blocks.get(j)

    def end(self, a: AttemptId) -> End | None:
        """The end of an attempt, also where the end of its block tells it."""
        key = keys.end(a)
        known = self._ends.get(key)
        if known is None and self.kept_ends is not None:
            known = self.kept_ends.end(key)
        if known is None:
            known = self._read_end(a, key)
            if known is not None:
                self.remember(key, known)
        return known

    def _read_end(self, a: AttemptId, key: str) -> End | None:
        """Of a first attempt, its block speaks first: only what that gave back has a record of its own."""
        asked = a.job in self._blocks or a.n > 1
        if not asked:
            found = self.read(End, key)
            if found is not None:
                return found.record
        terms = self.block_terms(a.job) if a.n == 1 else None
        unit = blocks.unit_of(terms, a.rank) if terms is not None else None
        if unit is not None:
            whole = self.end(AttemptId(a.job, unit, 1))
            if whole is None or blocks.carries(whole, a.rank):
                return blocks.unpacked(a, whole) if whole is not None else None
        if not asked:
            return None
        found = self.read(End, key)
        return found.record if found is not None else None

    def remember(self, key: str, end: End) -> None:
        if len(self._ends) >= ENDS_REMEMBERED:
            self._ends.clear()
        self._ends[key] = end
        if self.kept_ends is not None:
            self.kept_ends.keep_end(key, end)

    def forget(self, j: JobId) -> None:
        """A deleted job's ends: its keys may be gone."""
        prefix = keys.status_of(j)
        for key in [key for key in list(self._ends) if key.startswith(prefix)]:
            self._ends.pop(key, None)

    def claim(self, a: AttemptId) -> Found[Claim] | None:
        return self.read(Claim, keys.running(a))

    def heartbeat(self, a: AttemptId) -> Found[Heartbeat] | None:
        return self.read(Heartbeat, keys.heartbeat(a))

    def verdict(self, j: JobId) -> Verdict | None:
        found = self.read(Verdict, keys.verdict(j))
        return found.record if found else None

    def final(self, j: JobId) -> Final | None:
        found = self.read(Final, keys.final(j))
        return found.record if found else None

    def stop(self, j: JobId, rank: int) -> Stop | None:
        found = self.read(Stop, keys.stop(j, rank))
        return found.record if found else None

    def tombstone(self, j: JobId) -> Tombstone | None:
        found = self.read(Tombstone, keys.tombstone(j))
        return found.record if found else None

    def present(self, *wanted: str) -> list[bool]:
        """Which of these keys exist, asked side by side. Raises `StoreUnavailable` if any answer is missing."""
        return [stat is not None for stat in self.store.heads(wanted)]

    # ---- writes

    def ahead(self, key: str, body: bytes) -> None:
        """This will be created next: a store that syncs may begin now. Changes nothing for anybody."""
        begin = getattr(self.store, "ahead", None)
        if begin is not None:
            begin(key, body)

    def synced_together(self) -> AbstractContextManager[None]:
        """A block of creates of which nothing counts as done before its end; a store that syncs does that once.
        Raises `StoreUnavailable`."""
        block = getattr(self.store, "synced_together", None)
        return block() if block is not None else nullcontext()

    def decide(self, key: str, record: object) -> Won | Lost:
        """The one kind of write that decides something. `record` carries a nonce."""
        return self.decide_bytes(key, codec.encode(record))

    def decide_bytes(self, key: str, body: bytes) -> Won | Lost:
        return conditional.create_once(self.store, key, body, budget_s=self.budget_s, ambient=self.ambient)

    def ensure(self, key: str, record: object) -> bool:
        """An index entry: created unless it is there. True when it was not."""
        return conditional.ensure(self.store, key, codec.encode(record), budget_s=self.budget_s, ambient=self.ambient)

    def put(self, key: str, record: object) -> float:
        return conditional.write_again(
            self.store, key, codec.encode(record), budget_s=self.budget_s, ambient=self.ambient
        )

    def drop(self, *unwanted: str) -> None:
        for key in unwanted:
            conditional.delete_again(self.store, key, budget_s=self.budget_s, ambient=self.ambient)
