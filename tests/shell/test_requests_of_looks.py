"""What a look costs, in requests, exactly: `job show` of a job in each of its states."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stado_like.bucket import delete
from stado_like.bucket.bucket import Bucket
from stado_like.errors import NotFound
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.records import Tombstone
from stado_like.job.states import JobState
from stado_like.reading.named import read_named
from stado_like.reading.shapes import JobView
from stado_like.store.meter import Meter
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, beat, claim, run, submit


class Watched:
    """A bucket with one job, and a reader that remembers nothing, counted."""

    def __init__(self) -> None:
        self.meter = Meter()
        self.bucket = build.make_bucket(Clock(), self.meter)
        self.j = submit(self.bucket)

    def show(self, words: str = "train") -> tuple[JobView, dict[str, int]]:
        before = self.meter.snapshot()
        view = read_named(Bucket(self.bucket.store, ambient=self.bucket.ambient), words, "default")
        return view, dict((self.meter.snapshot() - before).counts)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def _finished(bucket: Bucket, j: JobId) -> None:
    run(bucket, attempt(j))


def _running(bucket: Bucket, j: JobId) -> None:
    claim(bucket, attempt(j))
    beat(bucket, attempt(j))


def _claimed(bucket: Bucket, j: JobId) -> None:
    claim(bucket, attempt(j))


def _with_a_worker(bucket: Bucket, j: JobId) -> None:
    build.worker(bucket)


@pytest.mark.parametrize(
    ("step", "state", "asked"),
    [
        (_finished, JobState.COMPLETED, {"list": 1, "get": 2, "head": 1}),
        (_running, JobState.RUNNING, {"list": 1, "get": 3}),
        (_claimed, JobState.PENDING, {"list": 2, "get": 3, "head": 1}),
        (_with_a_worker, JobState.PENDING, {"list": 4, "get": 5, "head": 3}),
    ],
)
def test_show_of_a_one_task_job(
    watched: Watched, step: Callable[[Bucket, JobId], None], state: JobState, asked: dict[str, int]
) -> None:
    """Over or running: four. One that nobody has started left nothing behind by which it could be found, and why it
    waits lies with every machine, the pause and the queue."""
    step(watched.bucket, watched.j)
    view, cost = watched.show()
    assert (view.state, cost) == (state, asked)


def test_show_of_an_incarnation_costs_no_more(watched: Watched) -> None:
    _finished(watched.bucket, watched.j)
    assert watched.show("train.1")[1] == {"list": 1, "get": 2, "head": 1}


def test_name_that_was_used_again_means_its_newest_job(watched: Watched) -> None:
    bucket = watched.bucket
    _finished(bucket, watched.j)
    delete.delete_job(bucket, watched.j)
    again = submit(bucket)
    view, _ = watched.show()
    assert (view.id, view.state) == (again, JobState.PENDING)
    _running(bucket, again)
    assert watched.show()[0].state is JobState.RUNNING


def test_status_that_a_deletion_left_hides_no_later_job(watched: Watched) -> None:
    """The status of a deleted job may lie there until its deletion is carried on with."""
    bucket = watched.bucket
    _finished(bucket, watched.j)
    bucket.ensure(keys.tombstone(watched.j), Tombstone(nonce="n", request_id="", at=bucket.now()))
    with pytest.raises(NotFound, match="was deleted"):
        watched.show()
    again = submit(bucket)
    assert watched.show()[0].id == again


def test_heartbeat_of_a_zombie_brings_no_job_back(watched: Watched) -> None:
    bucket = watched.bucket
    _finished(bucket, watched.j)
    delete.delete_job(bucket, watched.j)
    beat(bucket, attempt(watched.j))
    with pytest.raises(NotFound, match="was deleted"):
        watched.show()
    again = submit(bucket)
    assert watched.show()[0].id == again
