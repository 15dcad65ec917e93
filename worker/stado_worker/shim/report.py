"""Reporting an end until the answer is definite.

    exit.json (what was seen)  →  compose  →  exit.json (with the bytes, fsync)  →  create end  →  settle  →  done

What was seen is on the local disk before the first try, and so are the record, its nonce and its bytes: whoever
carries on after a dead supervisor sends the same bytes and recognises its own. Every function here can be called
again after `StoreUnavailable`, by the same process or another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from stado_like.bucket import end as ending
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Ours, Seen
from stado_like.bucket.settle import settle
from stado_like.errors import BadRecord
from stado_like.job import codec, keys
from stado_like.job.budget import Ended, decide
from stado_like.job.keys import AttemptId
from stado_like.job.records import MOST_BYTES, End, History, LogTail
from stado_like.job.states import Cause, Decision
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.life import Life, Over
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.outputs import Said, said
from stado_worker.shim.task import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What `exit.json` says of an end before its record exists. `record`: the bytes to send, once composed.
    `supervisor_died_on`: as in `Ended`."""

    cause: Cause
    reason: str
    exit_code: int | None = None
    signal: str | None = None
    started_at: float = 0.0
    running_at: float = 0.0
    ended_at: float = 0.0
    by: str = ""
    history: History = field(default_factory=History)
    notes: tuple[str, ...] = ()
    requests: Mapping[str, Any] = field(default_factory=dict)
    supervisor_died_on: str = ""
    collected: Mapping[str, Any] = field(default_factory=dict)
    record: str = ""


def facts_of(read: Read, life: Life, over: Over) -> Facts:
    return Facts(
        cause=over.cause,
        reason=over.reason,
        exit_code=over.exit.exit_code if over.exit else None,
        signal=over.exit.signal_name if over.exit else None,
        started_at=life.started_at,
        running_at=life.running_at,
        ended_at=over.ended_at,
        by=read.task.worker,
        history=life.history,
        notes=over.notes,
        requests=dict(read.task.requests),
    )


def keep(folder: AttemptDir, facts: Facts, *, fsync: bool) -> str:
    """Returns why it could not be kept, or "". A full disk is no reason to tell nobody: the end is reported all the
    same, and only a supervisor that dies right then leaves less behind."""
    try:
        folder.write_exit(codec.fields_of(facts), fsync=fsync)
    except OSError as error:
        return f"exit.json could not be written: {error}"
    return ""


def kept(folder: AttemptDir) -> Facts | None:
    """What lies in `exit.json`; None where nothing does, or nothing that can be read: whoever asks then says what is
    known without it, and an end that was sent before stands anyway."""
    try:
        plain = folder.read_exit()
        return codec.from_plain(Facts, plain, str(folder.path / "exit.json")) if plain is not None else None
    except (BadRecord, KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Composed:
    """Facts with the bytes to send, on the disk. `end`: what the bytes say, where they were made just now."""

    facts: Facts
    end: End | None = None


def composed(bucket: Bucket, read: Read, folder: AttemptDir, facts: Facts, shipping: LogShipping) -> Composed:
    """The facts with the bytes to send, kept on the disk. The same again for facts that have them. Raises
    `StoreUnavailable`."""
    if facts.record:
        return Composed(facts)
    told = said(folder, read.terms, shipping.masks)
    end, body = _compose(bucket, read, facts, told, shipping)
    facts = replace(facts, record=body.decode())
    bucket.ahead(keys.end(read.a), body)
    keep(folder, facts, fsync=read.task.fsync)
    return Composed(facts, end)


def asks_nothing(read: Read, over: Over, running_s: float) -> bool:
    """Whether the end record of such an end is composed without a request: nothing follows that a verdict forbids."""
    ended = Ended(over.cause, over.reason, running_s)
    return not read.terms.gang and decide(ended, read.terms, read.budgets).decision is Decision.FINAL


def send(bucket: Bucket, read: Read, folder: AttemptDir, done: Composed, *, mending: bool = False) -> tuple[str, ...]:
    """Create the end record, carry it out, note that nothing is left to do. Returns the new queue entries. Raises
    `StoreUnavailable`: call it again with the same. `mending`: somebody may have come half-way before."""
    answer = ending.commit(bucket, read.a, done.facts.record.encode(), done.end)
    queue_key = read.task.claim.queue_key
    settled = settle(bucket, read.a, answer.end, job=read.task.job, queue_key=queue_key, mending=mending)
    end, at = answer.end, bucket.now()
    ours = isinstance(answer, Ours)
    goes_on = str(AttemptId(read.a.job, end.goes_on, 1)) if end.goes_on is not None else ""
    note_done(folder, ours=ours, at=at, entries=settled.entries, cause=end.cause, reason=end.reason, goes_on=goes_on)
    return tuple(settled.entries)


def note_done(
    folder: AttemptDir,
    *,
    ours: bool,
    at: float = 0.0,
    entries: Sequence[str] = (),
    cause: Cause = Cause.NONE,
    reason: str = "",
    goes_on: str = "",
) -> None:
    """`done`. `goes_on`: of a block, the attempt that runs on. Where the disk is full it stays unwritten: the next
    agent asks the store again and finds all settled."""
    with suppress(OSError):
        folder.write_done(
            {
                "ours": ours,
                "at": at,
                "entries": list(entries),
                "cause": cause.value,
                "reason": reason[:500],
                "goes_on": goes_on,
            }
        )


def _compose(bucket: Bucket, read: Read, facts: Facts, told: Said, shipping: LogShipping) -> tuple[End, bytes]:
    running_s = facts.ended_at - facts.running_at if facts.running_at else 0.0
    ended = Ended(facts.cause, facts.reason, running_s, facts.supervisor_died_on)
    log = shipping.tail()
    seen = Seen(
        worker=read.task.worker,
        claimed_at=read.task.claimed_at,
        started_at=facts.started_at,
        running_at=facts.running_at,
        ended_at=facts.ended_at,
        exit_code=facts.exit_code,
        signal=facts.signal,
        by=facts.by,
        history=facts.history,
        log=log,
        last_lines=shipping.last_lines() if facts.cause is not Cause.NONE else "",
        notes=(*facts.notes, *told.notes),
        generation=read.task.claim.generation,
    )
    composed = ending.compose(bucket, read.a, read.terms, read.budgets, ended, seen)
    composed = replace(
        composed,
        requests=dict(facts.requests),
        progress=told.progress,
        outputs=told.outputs,
        answer=told.answer,
        collected=facts.collected,
    )
    return _fit(composed, shipping)


def _fit(end: End, shipping: LogShipping) -> tuple[End, bytes]:
    """A record is at most 64 KiB: the log is cut first (what is cut is uploaded as a piece, nothing is lost)."""
    body = codec.encode(end)
    if len(body) <= MOST_BYTES or end.log is None:
        return end, body
    while shipping.ship():
        pass
    end = replace(end, log=LogTail(offset=shipping.shipped, size=shipping.size(), text=""))
    body = codec.encode(end)
    if len(body) > MOST_BYTES and end.last_failure is not None:
        end = replace(end, last_failure=replace(end.last_failure, log=end.last_failure.log[-2048:]))
        body = codec.encode(end)
    return end, body
