"""Buckets in which what was decided about a gang does not agree with what its members did; beside all the others."""

from __future__ import annotations

from dataclasses import replace

from stado_like.bucket import generations
from stado_like.bucket.bucket import Bucket
from stado_like.job import gang_keys
from stado_like.job.gang_records import Barrier
from stado_like.job.states import Cause
from tests.builders_broken import Make
from tests.builders_broken_groups import CASES as OTHERS
from tests.builders_check import Yard
from tests.builders_gangs import end_member, place, start, submit_gang, take_ordered
from tests.builders_jobs import attempt


def _placed_too_early(yard: Yard, b: Bucket) -> None:
    j = submit_gang(b)
    start(b, j)
    end_member(b, attempt(j), Cause.FAILURE)
    placement = generations.read_placement(b, j, 1)
    assert placement is not None
    b.decide(gang_keys.placement(j, 2), replace(placement, attempts=(2, 2), members=()))


def _go_for_another(yard: Yard, b: Bucket) -> None:
    j = submit_gang(b)
    place(b, j)
    generations.decide(b, j, 1, Barrier(nonce="n", go=True, attempts=(str(attempt(j)), str(attempt(j, 1, 7)))))


def _verdict_without_placement(yard: Yard, b: Bucket) -> None:
    generations.decide(b, submit_gang(b), 1, Barrier(nonce="n", go=False, reason="why"))


def _started_alone(yard: Yard, b: Bucket) -> None:
    j = submit_gang(b)
    place(b, j)
    take_ordered(b, "w0")
    end_member(b, attempt(j), Cause.FAILURE, ran=True)


CASES: tuple[tuple[str, Make, bool], ...] = (
    *OTHERS,
    ("placement-early", _placed_too_early, True),
    ("barrier-differs", _go_for_another, True),
    ("barrier-differs", _verdict_without_placement, True),
    ("started-without-go", _started_alone, True),
)
