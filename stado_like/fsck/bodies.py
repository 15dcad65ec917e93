"""The slow part of a check: every record is read, understood, compared with its key, and with those beside it.

Nothing here is needed to find work: keys alone decide that. What it finds was written by a foreign hand, by a newer
version, or by a bug.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stado_like.bucket import entries
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, NewerRecord
from stado_like.fsck.finding import Findings, found
from stado_like.fsck.picture import JobPicture
from stado_like.job import codec, keys
from stado_like.job.cluster import Cluster
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import (
    Claim,
    Doorbell,
    Entry,
    Final,
    Heartbeat,
    Observed,
    Order,
    Pointer,
    Stop,
    TickLock,
    Tombstone,
    Verdict,
)
from stado_like.job.terms import Terms
from stado_like.job.wanted import Pause, Wanted
from stado_like.job.workspace import Workspace

STATE_KINDS: Mapping[str, type[Any]] = {
    keys.DOORBELL: Doorbell,
    keys.TICK_LOCK: TickLock,
    keys.OBSERVED: Observed,
    keys.CLUSTER: Cluster,
    keys.PAUSE: Pause,
}


def check_bodies(bucket: Bucket, p: JobPicture) -> Findings:
    """Every record of one job but its own and its ends, which the picture has read. Raises `StoreUnavailable`."""
    for key, kind, named in _records(p):
        yield from _one(bucket, key, kind, named)
    for a, end in sorted(p.ends.items()):
        if end.attempt != str(a):
            yield found("record-elsewhere", keys.end(a), f"the end of {a} says that it is of {end.attempt}")
    yield from _entry_bodies(bucket, p)
    yield from _final_agrees(bucket, p)


def _records(p: JobPicture) -> Iterator[tuple[str, type[Any], str]]:
    """Key, kind, and the attempt that the record must name (empty: none)."""
    j = p.id
    for a in sorted(p.traces.claims):
        yield keys.running(a), Claim, str(a)
    for key, a in sorted(p.traces.orders.items()):
        yield key, Order, str(a)
    for rank in sorted(p.traces.cancels, key=lambda one: -1 if one is None else one):
        yield keys.cancel_index(j, rank), Pointer, ""
    for rank, numbers in sorted(p.status.beats.items()):
        for n in sorted(numbers):
            yield keys.heartbeat(keys.AttemptId(j, rank, n)), Heartbeat, ""
    for rank in sorted(p.status.stops):
        yield keys.stop(j, rank), Stop, ""
    if p.has_verdict and p.verdict is None:
        yield keys.verdict(j), Verdict, ""
    if p.is_final:
        yield keys.final(j), Final, ""


def _one(bucket: Bucket, key: str, kind: type[Any], named: str, by: str = "attempt") -> Findings:
    """`named`: what the record's field `by` must say, as its key does (empty: nothing)."""
    body = bucket.store.get(key)
    if body is None:
        return  # it went on since it was listed
    try:
        record = codec.decode(kind, body.body, key)
    except BadRecord as bad:
        yield found("record-newer" if isinstance(bad, NewerRecord) else "record-unreadable", key, bad.message)
        return
    if named and getattr(record, by) != named:
        yield found("record-elsewhere", key, f"the record of {named} says that it is of {getattr(record, by)}")


def _entry_bodies(bucket: Bucket, p: JobPicture) -> Findings:
    for key, a in sorted(p.traces.entries.items()):
        try:
            seen = bucket.read(Entry, key)
        except BadRecord as bad:
            yield found("record-newer" if isinstance(bad, NewerRecord) else "record-unreadable", key, bad.message)
            continue
        if seen is None:
            continue
        if seen.record.attempt != str(a):
            yield found("record-elsewhere", key, f"the entry of {a} says that it is of {seen.record.attempt}")
        elif p.job is not None and p.terms is not None:
            yield from _entry_differs(p, p.terms, key, a, seen.record)


def _entry_differs(p: JobPicture, terms: Terms, key: str, a: AttemptId, seen: Entry) -> Findings:
    assert p.job is not None
    becomes = entries.open_key(p.job, terms, a) if key.startswith(keys.QUEUED_LATER) else ""
    wanted = codec.to_plain(entries.record(terms, a, becomes))
    plain = codec.to_plain(seen)
    wrong = sorted(name for name, value in wanted.items() if plain.get(name) != value)
    if wrong:
        yield found("entry-differs", key, f"the entry of {a} differs from its job in {', '.join(wrong)}")


def _final_agrees(bucket: Bucket, p: JobPicture) -> Findings:
    """A final has the state of the verdict, and counts the final ends."""
    if p.terms is None or not p.terms.several or not p.is_final:
        return
    key = keys.final(p.id)
    try:
        final, verdict = bucket.final(p.id), bucket.verdict(p.id)
    except BadRecord:
        return  # said by the reading of each record
    if final is None:
        return
    if verdict is not None and (final.state, final.reason) != (verdict.state, verdict.reason):
        said = f"{final.state.value} ({final.reason}), the verdict {verdict.state.value} ({verdict.reason})"
        yield found("final-differs", key, f"the final of {p.id} says {said}")
    if not p.ends_read or p.troubles:
        return
    ended = Counter(here.last.state.value for here in map(p.rank, range(p.terms.tasks)) if here.last and here.is_over)
    if dict(final.counts) != dict(ended):
        yield found("final-differs", key, f"the final of {p.id} counts {dict(final.counts)}, its ends {dict(ended)}")
    early = verdict is not None and verdict.early
    for here in map(p.rank, range(p.terms.tasks)):
        if here.open is not None and (here.n or not early) and here.rank not in p.claimed:
            yield found("final-with-open-attempt", key, f"{p.id} is over, and {here.open} is open")


def check_tombstones(bucket: Bucket, buried: Iterable[JobId]) -> Findings:
    for j in sorted(buried):
        yield from _one(bucket, keys.tombstone(j), Tombstone, "")


def check_state(bucket: Bucket, key: str) -> Findings:
    """One record of state/, config/, workers/ or the pause, where its kind is known."""
    if key.startswith(keys.WORKSPACES):
        yield from _one(bucket, key, Workspace, key[len(keys.WORKSPACES) :].removesuffix(".json"), "name")
        return
    kind = Wanted if key.startswith(keys.WANTED) else STATE_KINDS.get(key)
    if kind is not None:
        yield from _one(bucket, key, kind, "")
