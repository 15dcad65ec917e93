"""Arrays whose first attempts are carried in blocks: how a holder ends one, and buckets in which one went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, commit, compose_block
from stado_like.bucket.settle import Settled, settle
from stado_like.job import blocks, codec, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End
from stado_like.job.states import Cause
from stado_like.job.terms import Terms, terms_of
from tests.builders_broken import CASES as OTHERS
from tests.builders_broken import Make
from tests.builders_check import Yard
from tests.builders_jobs import attempt, claim, submit

BLOCKED: dict[str, Any] = {"array": {"size": 8, "block": 4}}
"""Ranks 0 to 3 are carried by unit 8, ranks 4 to 7 by unit 9."""


def terms_at(bucket: Bucket, j: JobId) -> Terms:
    job = bucket.job(j)
    assert job is not None
    return terms_of(job.document)


def unit(j: JobId, b: int = 0, tasks: int = 8) -> AttemptId:
    return attempt(j, tasks + b)


def seen_at(bucket: Bucket, code: int | None = None, *, worker: str = "w1", ran_s: float = 0.1) -> Seen:
    now = bucket.now()
    began = now - ran_s
    return Seen(
        worker=worker, claimed_at=began, started_at=began, running_at=began, ended_at=now, exit_code=code, by=worker
    )


def block_end(
    bucket: Bucket,
    a: AttemptId,
    codes: Mapping[int, int],
    *,
    given_back: Sequence[int] = (),
    goes_on: int | None = None,
) -> End:
    """The record by which the holder of a unit ends it: exit codes by rank."""
    ran = {
        rank: (Ended(Cause.NONE if code == 0 else Cause.FAILURE, reasons.exited(code), 0.1), seen_at(bucket, code))
        for rank, code in codes.items()
    }
    own = Ended(Cause.NONE, reasons.exited(0), 0.1)
    return compose_block(
        bucket, a, terms_at(bucket, a.job), own, seen_at(bucket), ran, given_back=given_back, goes_on=goes_on
    )


def end_block(
    bucket: Bucket,
    a: AttemptId,
    codes: Mapping[int, int],
    *,
    given_back: Sequence[int] = (),
    goes_on: int | None = None,
) -> Settled:
    """End and settle a unit, as its holder does."""
    record = block_end(bucket, a, codes, given_back=given_back, goes_on=goes_on)
    return settle(bucket, a, commit(bucket, a, codec.encode(record)).end, job=bucket.job(a.job))


def run_block(bucket: Bucket, a: AttemptId, code: int = 0) -> Settled:
    """Claim a unit, and end all of its ranks."""
    claim(bucket, a)
    return end_block(bucket, a, dict.fromkeys(blocks.ranks_of(terms_at(bucket, a.job), a.rank), code))


def _says_nothing_of_one(yard: Yard, b: Bucket) -> None:
    j = submit(b, **BLOCKED)
    claim(b, unit(j))
    end_block(b, unit(j), {0: 0, 1: 0}, given_back=[2])


def _carried_and_alone(yard: Yard, b: Bucket) -> None:
    j = submit(b, **BLOCKED)
    run_block(b, unit(j))
    whole = b.end(unit(j))
    assert whole is not None
    own = blocks.unpacked(attempt(j, 1), whole)
    assert own is not None
    b.decide(keys.end(attempt(j, 1)), replace(own, nonce="n"))


def _unit_without_entry(yard: Yard, b: Bucket) -> None:
    j = submit(b, **BLOCKED)
    run_block(b, unit(j))
    b.store.delete(next(row.key for row in b.store.list(keys.QUEUED_OPEN).rows if str(unit(j, 1)) in row.key))


def _given_back_without_entry(yard: Yard, b: Bucket) -> None:
    j = submit(b, **BLOCKED)
    claim(b, unit(j))
    end_block(b, unit(j), {0: 0, 1: 0, 2: 0}, given_back=[3])
    b.store.delete(next(row.key for row in b.store.list(keys.QUEUED_OPEN).rows if str(attempt(j, 3)) in row.key))


def _unsettled(yard: Yard, b: Bucket) -> None:
    j = submit(b, **BLOCKED)
    claim(b, unit(j))
    record = block_end(b, unit(j), {0: 1, 1: 0}, given_back=[2, 3])
    commit(b, unit(j), codec.encode(record))


CASES: tuple[tuple[str, Make, bool], ...] = (
    *OTHERS,
    ("block-unclear", _says_nothing_of_one, True),
    ("end-twice", _carried_and_alone, False),
    ("rank-not-released", _unit_without_entry, False),
    ("attempt-lost", _given_back_without_entry, False),
    ("claim-of-ended", _unsettled, False),
)
