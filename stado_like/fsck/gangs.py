"""Rules about gangs, for an audit: what was decided about all members at once agrees with what became of each.

Read in the order in which it is decided: the ends that a placement rests on, the placement, the verdict at the barrier,
what ran. Nothing here is repaired: each is a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, NewerRecord
from stado_like.fsck.finding import Findings, found
from stado_like.fsck.picture import JobPicture
from stado_like.job import codec, gang_keys, keys
from stado_like.job.gang_records import Barrier, Join, Placement, Ready
from stado_like.job.keys import AttemptId
from stado_like.store.protocol import list_all

_KINDS: Mapping[str, type[Any]] = {"placement": Placement, "barrier": Barrier, "join": Join, "ready": Ready}


def check_gangs(bucket: Bucket, p: JobPicture) -> Findings:
    """Raises `StoreUnavailable`."""
    if p.terms is None or p.is_dying or (not p.terms.gang and gang_keys.of_job(p.id) not in p.traces.data):
        return
    placements: dict[int, Placement] = {}
    barriers: dict[int, Barrier] = {}
    for row in list_all(bucket.store, gang_keys.of_job(p.id)):
        try:
            parsed = gang_keys.parse(p.id, row.key)
        except BadRecord as bad:
            yield found("foreign-key", row.key, bad.message)
            continue
        body = bucket.store.get(row.key)
        try:
            record = codec.decode(_KINDS[parsed.kind], body.body, row.key) if body is not None else None
        except BadRecord as bad:
            yield found("record-newer" if isinstance(bad, NewerRecord) else "record-unreadable", row.key, bad.message)
            continue
        if isinstance(record, Placement):
            placements[parsed.g] = record
        elif isinstance(record, Barrier):
            barriers[parsed.g] = record
        elif isinstance(record, Join | Ready) and record.attempt != str(parsed.attempt):
            yield found("record-elsewhere", row.key, f"the record of {parsed.attempt} says {record.attempt}")
    for g, placement in sorted(placements.items()):
        yield from _placed_after_all_ended(p, g, placement)
        if placement.barrier:
            yield from _started_on_go(p, g, placement, barriers.get(g))
    for g in sorted(barriers.keys() - placements.keys()):
        key = gang_keys.barrier(p.id, g)
        yield found("barrier-differs", key, f"generation {g} of {p.id} has a verdict at its barrier, and no placement")


def _placed_after_all_ended(p: JobPicture, g: int, placement: Placement) -> Findings:
    """A generation is placed only once every member of the one before it has ended."""
    if not p.ends_read:
        return
    for rank, first in enumerate(placement.attempts):
        before = AttemptId(p.id, rank, first).previous
        if before is not None and before.n not in p.status.ends.get(rank, ()) and rank not in p.moving:
            key = gang_keys.placement(p.id, g)
            yield found("placement-early", key, f"generation {g} of {p.id} was placed, and {before} has not ended")


def _started_on_go(p: JobPicture, g: int, placement: Placement, barrier: Barrier | None) -> Findings:
    members = {one.attempt for one in placement.members}
    if barrier is not None and barrier.go:
        strangers = sorted(set(barrier.attempts) ^ members)
        if strangers:
            key = gang_keys.barrier(p.id, g)
            yield found(
                "barrier-differs", key, f"the barrier of generation {g} and its placement differ in {strangers[0]}"
            )
        return
    for attempt in sorted(members):
        a = AttemptId.parse(attempt)
        end = p.ends.get(a)
        if end is not None and end.started_at:
            what = "was aborted" if barrier is not None else "has no verdict at its barrier"
            yield found("started-without-go", keys.end(a), f"{a} was started, and generation {g} {what}")
