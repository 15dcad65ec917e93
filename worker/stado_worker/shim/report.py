"""Reporting an end until the answer is definite.

    exit.json (what was seen)  →  compose  →  exit.json (with the bytes, fsync)  →  create end  →  settle  →  done

What was seen is on the local disk before the first try, and so are the record, its nonce and its bytes: whoever
carries on after a dead supervisor sends the same bytes and recognises its own. Every function here can be called
again after `StoreUnavailable`, by the same process or another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stado_like.bucket import end as ending
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Fenced, Ours, Seen
from stado_like.bucket.settle import settle
from stado_like.job import codec
from stado_like.job.budget import Ended
from stado_like.job.records import MOST_BYTES, End, History, LogTail
from stado_like.job.states import Cause
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.task import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What `exit.json` says of an end before its record exists. `record`: the bytes to send, once composed."""

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
    record: str = ""


def keep(folder: AttemptDir, facts: Facts, *, fsync: bool) -> None:
    folder.write_exit(codec.to_plain(facts), fsync=fsync)


def kept(folder: AttemptDir) -> Facts | None:
    """Raises `BadRecord`."""
    plain = folder.read_exit()
    return codec.from_plain(Facts, plain, str(folder.path / "exit.json")) if plain is not None else None


def report(bucket: Bucket, read: Read, folder: AttemptDir, facts: Facts, shipping: LogShipping) -> Ours | Fenced:
    """Everything from the facts to `done`. Raises `StoreUnavailable`: call it again, with `kept(folder)`."""
    fsync = read.task.fsync
    if not facts.record:
        facts = replace(facts, record=_compose(bucket, read, facts, shipping).decode())
        keep(folder, facts, fsync=fsync)
    answer = ending.commit(bucket, read.a, facts.record.encode())
    released = settle(bucket, read.a, answer.end, job=read.task.job, queue_key=read.task.claim.queue_key)
    folder.write_done({"ours": isinstance(answer, Ours), "at": bucket.now(), "entries": released.entries})
    return answer


def _compose(bucket: Bucket, read: Read, facts: Facts, shipping: LogShipping) -> bytes:
    ended = Ended(facts.cause, facts.reason, facts.ended_at - facts.running_at if facts.running_at else 0.0)
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
        last_lines=shipping.last_lines(),
        notes=facts.notes,
    )
    composed = ending.compose(bucket, read.a, read.terms, read.budgets, ended, seen)
    composed = replace(composed, requests=dict(facts.requests))
    return _fit(composed, shipping)


def _fit(end: End, shipping: LogShipping) -> bytes:
    """A record is at most 64 KiB: the log is cut first (what is cut is uploaded as a piece, nothing is lost)."""
    body = codec.encode(end)
    if len(body) <= MOST_BYTES or end.log is None:
        return body
    while shipping.ship():
        pass
    end = replace(end, log=LogTail(offset=shipping.shipped, size=shipping.size(), text=""))
    body = codec.encode(end)
    if len(body) > MOST_BYTES and end.last_failure is not None:
        end = replace(end, last_failure=replace(end.last_failure, log=end.last_failure.log[-2048:]))
        body = codec.encode(end)
    return body
