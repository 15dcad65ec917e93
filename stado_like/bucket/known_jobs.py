"""Jobs as a tick knows them: what they ask for, each read once, by whatever tick on this machine came first.

Most of a long queue is a few kinds of work. Of jobs that nobody watches (one task, waiting for nothing but a machine)
a tick needs what they ask for, which is the same for all of a kind: it is resolved once, and kept once.

What is known of a job may outlive it. Nothing is decided by that: who starts, stops or queues a task asks for its
job's tombstone or verdict, and so does the gate of whoever claims it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.bucket.tick_cache import TickCache
from stado_like.errors import BadRecord
from stado_like.job import codec
from stado_like.job.ids import JobId
from stado_like.job.records import Job
from stado_like.job.split import undecided
from stado_like.job.terms import Terms, terms_of

JOBS_REMEMBERED = 400_000
KINDS_REMEMBERED = 20_000
UNREADABLE = (KeyError, TypeError, AttributeError, ValueError)
_DIFFERS = {"metadata": ("name", "labels"), "spec": ("cwd", "bundle"), "template": ("command", "args", "env")}


@dataclass(frozen=True, slots=True)
class Known:
    """A job, and what it asks for. Jobs of one kind share `document` and `terms`, which then say nothing of what
    differs between them: name, labels, command, environment."""

    created_ms: int
    document: Mapping[str, Any]
    terms: Terms
    job: Job | None = None
    """Its record, of a job that ticks watch."""

    @property
    def is_plain(self) -> bool:
        """One of a kind: one task, that waits for nothing but a machine."""
        return self.job is None and not self.terms.watched


@dataclass(slots=True)
class KnownJobs:
    cache: TickCache = field(default_factory=TickCache)
    jobs: dict[JobId, Known] = field(default_factory=dict)
    kinds: dict[str, tuple[Mapping[str, Any], Terms]] = field(default_factory=dict)
    """By the digest of what all of a kind have in common."""

    def seen(self, j: JobId) -> Known | None:
        """Without a request. None: it is not known."""
        found = self.jobs.get(j)
        if found is None:
            found = self._kept(j)
            if found is not None:
                self._remember(j, found)
        return found

    def known(self, bucket: Bucket, j: JobId) -> Known | None:
        """None: there is no such job (any more). Raises `StoreUnavailable`, `BadRecord`."""
        found = self.seen(j)
        if found is not None:
            return found
        job = bucket.job(j)
        return None if job is None else self.learn(bucket, j, job)

    def learn(self, bucket: Bucket, j: JobId, job: Job) -> Known:
        """Raises `BadRecord` for a document that no version could have written, and what reading a shape raises."""
        try:
            terms = bucket.terms(job)
        except UNREADABLE as wrong:
            raise BadRecord(f"{j}: no specification: {wrong!r}", "It is left alone.") from wrong
        if not terms.shaped:  # the others change once, when their shape is decided
            return Known(job.created_ms, job.document, terms, job)
        known = Known(job.created_ms, job.document, terms, job)
        whole = not undecided(job.document)  # else its shape says the rest, and each process looks for that itself
        if whole and (terms.watched or terms.trouble):
            self.cache.keep(str(j), [job.created_ms, codec.to_plain(job)])
        elif whole:
            digest, document, terms = self._kind(job.document)
            known = Known(job.created_ms, document, terms)
            self.cache.keep(str(j), [job.created_ms, digest])
        self._remember(j, known)
        return known

    def read(self, bucket: Bucket, wanted: Iterable[JobId]) -> None:
        """Several at once, where that saves time. What cannot be read is found out by whoever asks for it. Raises
        `StoreUnavailable`."""
        asked = [j for j in dict.fromkeys(wanted) if self.seen(j) is None]

        def read(j: JobId) -> Job | None:
            try:
                return bucket.job(j)
            except BadRecord:
                return None

        for j, job in zip(asked, side_by_side(bucket, read, asked), strict=True):
            if job is not None:
                try:
                    self.learn(bucket, j, job)
                except BadRecord:
                    continue

    def _kind(self, document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], Terms]:
        common = _common(document)
        digest = blake2b(orjson.dumps(common), digest_size=9).hexdigest()
        found = self.kinds.get(digest)
        if found is None:
            self.cache.keep(f"kind/{digest}", common)
            found = self._remember_kind(digest, common)
        return digest, *found

    def _kept(self, j: JobId) -> Known | None:
        said = self.cache.said(str(j))
        if not isinstance(said, list) or len(said) != 2 or not isinstance(said[0], int):
            return None
        created_ms, what = said
        try:
            if not isinstance(what, str):
                job = codec.from_plain(Job, what, str(j))
                return Known(created_ms, job.document, terms_of(job.document), job)
            found = self.kinds.get(what)
            if found is None:
                document = self.cache.said(f"kind/{what}")
                if document is None:
                    return None
                found = self._remember_kind(what, document)
        except (BadRecord, *UNREADABLE):
            return None  # another version kept it
        return Known(created_ms, *found)

    def _remember_kind(self, digest: str, document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Terms]:
        if len(self.kinds) >= KINDS_REMEMBERED:
            self.kinds.clear()
        self.kinds[digest] = found = (document, terms_of(document))
        return found

    def _remember(self, j: JobId, known: Known) -> None:
        if len(self.jobs) >= JOBS_REMEMBERED:
            self.jobs.clear()
        self.jobs[j] = known


def _common(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What jobs of one kind have in common."""
    spec = document["spec"]
    metadata = {name: one for name, one in document["metadata"].items() if name not in _DIFFERS["metadata"]}
    template = {name: one for name, one in spec["task_template"].items() if name not in _DIFFERS["template"]}
    rest = {name: one for name, one in spec.items() if name not in _DIFFERS["spec"]}
    return {"metadata": {**metadata, "name": ""}, "spec": {**rest, "task_template": template}}
