"""Rules about the workers: what each says it has is possible, and what it holds fits into that.

Free room below zero, or beyond the total, comes from counting something twice; the audit adds up the claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, NewerRecord
from stado_like.fsck.finding import Findings, found
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Capacity, Claim, Room
from stado_like.job.terms import Ask, Terms
from stado_like.store.protocol import Row

_FIELDS = (("cpu_millis", "thousandths of a core"), ("memory_bytes", "bytes of memory"), ("gpus", "GPUs"))


@dataclass(slots=True)
class Workers:
    """The broadcasts that could be read, by worker, and what their claims add up to (audit only)."""

    said: dict[str, Capacity] = field(default_factory=dict)
    claimed: dict[str, dict[AttemptId, Ask]] = field(default_factory=dict)


def check_capacity(bucket: Bucket, rows: Iterable[Row], workers: Workers) -> Findings:
    """Every broadcast. Raises `StoreUnavailable`."""
    for row in rows:
        try:
            name = keys.parse_capacity(row.key)
            seen = bucket.read(Capacity, row.key)
        except BadRecord as bad:
            yield found("record-newer" if isinstance(bad, NewerRecord) else "record-unreadable", row.key, bad.message)
            continue
        if seen is None:
            continue
        capacity = workers.said[name] = seen.record
        if capacity.worker != name:
            yield found("record-elsewhere", row.key, f"the broadcast of {name} says that it is of {capacity.worker}")
        yield from _free(row.key, name, capacity)


def _free(key: str, name: str, capacity: Capacity) -> Findings:
    for one, words in _FIELDS:
        free, total = getattr(capacity.free, one), getattr(capacity.total, one)
        if free < 0 or total < 0 or free > total:
            yield found("capacity-negative", key, f"{name} says that {free} of {total} {words} are free")


def add_claim(bucket: Bucket, workers: Workers, a: AttemptId, asks: dict[JobId, Terms | None]) -> None:
    """Note whose room an open attempt takes. Records that cannot be read are said elsewhere."""
    try:
        claim = bucket.read(Claim, keys.running(a))
        if claim is None or any(bucket.present(keys.end(a))):
            return
        if a.job not in asks:
            job = bucket.job(a.job)
            asks[a.job] = bucket.terms(job) if job is not None else None
    except (BadRecord, KeyError, TypeError, AttributeError):
        return
    terms = asks[a.job]
    if terms is not None:
        workers.claimed.setdefault(claim.record.worker, {})[a] = terms.for_rank(a.rank).ask


def check_room(workers: Workers) -> Findings:
    """What a worker's open claims ask for fits into what it has."""
    for name, held in sorted(workers.claimed.items()):
        capacity = workers.said.get(name)
        if capacity is None:
            continue
        asked: Mapping[str, int] = {one: sum(getattr(ask, one) for ask in held.values()) for one, _ in _FIELDS}
        total: Room = capacity.total
        for one, words in _FIELDS:
            if asked[one] > getattr(total, one):
                sentence = f"{len(held)} claims of {name} ask for {asked[one]} {words}; it has {getattr(total, one)}"
                yield found("worker-overcommitted", keys.capacity(name), sentence)
