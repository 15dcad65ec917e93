"""What a person's words mean, and what is said when they mean nothing."""

from __future__ import annotations

import pytest

from stado_like.bucket import delete
from stado_like.errors import NotFound, UsageError
from stado_like.job.keys import JobId
from stado_like.reading.resolve import Meant, parse, resolve
from stado_like.store.meter import Meter
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, run, submit


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("train", Meant("home", "train")),
        ("train.2", Meant("home", "train", 2)),
        ("ws/train", Meant("ws", "train")),
        ("ws/train.2", Meant("ws", "train", 2)),
        ("ws.train.2", Meant("ws", "train", 2)),
        ("ws.train.2.00003.000001", Meant("ws", "train", 2)),
        ("2026-01_x", Meant("home", "2026-01_x")),
    ],
)
def test_words_are_read(words: str, meant: Meant) -> None:
    assert parse(words, "home") == meant


@pytest.mark.parametrize(
    "words", ["", ".", "a.b", "a b", "a/", "/a", "a/b/c", "tr.0", "a.b.c", "x/a.b.1", "zażółć", "a\nb", "..1"]
)
def test_words_that_name_no_job_are_refused(words: str) -> None:
    with pytest.raises(UsageError, match="does not name a job"):
        parse(words, "home")


def test_newest_living_incarnation_by_one_listing() -> None:
    meter, clock = Meter(), Clock()
    bucket = build.make_bucket(clock, meter)
    first = submit(bucket)
    run(bucket, attempt(first))
    delete.delete_job(bucket, first)
    second = submit(bucket)
    submit(bucket, "train-2")
    before = meter.snapshot()
    assert resolve(bucket, "train", "default") == second == JobId("default", "train", 2)
    assert (meter.snapshot() - before).counts == {"list": 1}
    before = meter.snapshot()
    assert resolve(bucket, "default.train.1", "x") == first
    assert (meter.snapshot() - before).total == 0


def test_a_name_that_begins_like_another_is_not_it() -> None:
    bucket = build.make_bucket(Clock())
    submit(bucket, "train-2")
    with pytest.raises(NotFound) as told:
        resolve(bucket, "train", "default")
    assert told.value.next_step == "Nearest names: train-2."


def test_deleted_job_is_said_to_be_deleted() -> None:
    bucket = build.make_bucket(Clock())
    j = submit(bucket)
    run(bucket, attempt(j))
    delete.delete_job(bucket, j)
    with pytest.raises(NotFound, match=r"was deleted \(default\.train\.1\)"):
        resolve(bucket, "train", "default")


def test_a_name_of_another_workspace_is_pointed_at() -> None:
    bucket = build.make_bucket(Clock())
    submit(bucket, metadata={"workspace": "lab"})
    with pytest.raises(NotFound) as told:
        resolve(bucket, "train", "default")
    assert "lab/train" in told.value.next_step
