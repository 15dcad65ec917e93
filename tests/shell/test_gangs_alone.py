"""Gangs of which members restart alone, come later, or start without waiting for each other."""

from __future__ import annotations

import pytest

from stado_like.bucket import gang
from stado_like.bucket.bucket import Bucket
from stado_like.job.records import Budgets
from stado_like.job.states import Cause, Decision, JobState
from stado_like.reading.view import read_job
from tests.builders_gangs import (
    end_member,
    orders,
    place,
    start,
    stop_all,
    stops,
    submit_gang,
    take_ordered,
    tend,
    terms_of,
)
from tests.builders_jobs import Clock, attempt, make_bucket


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


ALONE = {"on_failure": "RestartTask"}


def test_member_that_may_restart_alone_joins_its_generation(bucket: Bucket) -> None:
    j = submit_gang(bucket, 3, **ALONE)
    g = start(bucket, j)
    end = end_member(bucket, attempt(j, 1), Cause.REQUEUED)
    assert end.decision is Decision.RETRY
    assert stops(bucket, "w0") == stops(bucket, "w2") == []
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and (waits.generation, waits.members, waits.together) == (g, (attempt(j, 1, 2),), False)
    place(bucket, j)
    a, _, _ = take_ordered(bucket, "w1")
    assert a == attempt(j, 1, 2)
    for one in (attempt(j, 0), a, attempt(j, 2)):
        end_member(bucket, one)
    assert read_job(bucket, j).state is JobState.COMPLETED


def test_leader_that_fails_restarts_all(bucket: Bucket) -> None:
    j = submit_gang(bucket, 3, **ALONE)
    start(bucket, j)
    end_member(bucket, attempt(j, 1), Cause.REQUEUED)
    end_member(bucket, attempt(j, 0), Cause.FAILURE)
    assert stops(bucket, "w2") == [(attempt(j, 2), Cause.GANG, "Gang restart: train-0 failed")]
    tend(bucket, j)
    stop_all(bucket, j, attempt(j, 0))
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.generation == 2
    assert waits.members == (attempt(j, 0, 2), attempt(j, 1, 3), attempt(j, 2, 2))


def test_join_that_nobody_claims_ends_undelivered_and_goes_elsewhere(bucket: Bucket, clock: Clock) -> None:
    j = submit_gang(bucket, 2, **ALONE)
    start(bucket, j)
    end_member(bucket, attempt(j, 1), Cause.REQUEUED)
    place(bucket, j)
    clock.now_s += 61
    tend(bucket, j)
    end = bucket.end(attempt(j, 1, 2))
    assert end is not None and (end.cause, end.decision) == (Cause.UNDELIVERED, Decision.RETRY)
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.members == (attempt(j, 1, 3),)


def test_join_that_is_refused_ends_at_once_and_spends_nothing(bucket: Bucket) -> None:
    j = submit_gang(bucket, 2, **ALONE)
    start(bucket, j)
    end_member(bucket, attempt(j, 1), Cause.REQUEUED)
    place(bucket, j)
    (asked,) = orders(bucket, "w1")
    gang.refuse(bucket, asked, "w1", "no room")
    assert tend(bucket, j).ended == 1 and orders(bucket, "w1") == []
    end = bucket.end(attempt(j, 1, 2))
    assert end is not None and (end.cause, end.budgets) == (Cause.UNDELIVERED, Budgets())
    assert bucket.end(attempt(j, 0)) is None


def test_least_members_start_and_the_rest_joins(bucket: Bucket) -> None:
    j = submit_gang(bucket, 4, start="MinAvailable", min_available=2, on_failure="RestartJob")
    assert start(bucket, j, 2) == 1
    assert read_job(bucket, j).state is JobState.RUNNING
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and (waits.generation, waits.together) == (1, False)
    place(bucket, j, 1)
    a, _, _ = take_ordered(bucket, "w2")
    end_member(bucket, attempt(j, 0), Cause.FAILURE)
    tend(bucket, j)
    for one in (attempt(j, 1), a):
        end_member(bucket, one, Cause.GANG, "Gang restart: train-0 failed")
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and (waits.generation, waits.together) == (2, True)
    assert waits.members == tuple(attempt(j, rank, 2) for rank in range(4))


def test_independent_tasks_that_restart_whole_need_no_barrier(bucket: Bucket) -> None:
    j = submit_gang(bucket, 2, start="Independent", on_failure="RestartJob")
    place(bucket, j, 1)
    a, _, _ = take_ordered(bucket, "w0")
    place(bucket, j)
    b, _, _ = take_ordered(bucket, "w1")
    end_member(bucket, b, Cause.FAILURE)
    assert stops(bucket, "w0") == [(a, Cause.GANG, "Gang restart: train-1 failed")]
    stop_all(bucket, j, b)
    waits = gang.waits(bucket, j, terms_of(bucket, j))
    assert waits is not None and waits.members == (attempt(j, 0, 2), attempt(j, 1, 2))
