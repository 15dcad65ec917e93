"""Jobs that only a placement may start: their entries lie in queued/held, they say why, and everything but a start can
be done with them."""

from __future__ import annotations

from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, delete, entries
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.doorbell import HELD, Listener
from stado_like.bucket.end import Seen, end_attempt
from stado_like.job import keys
from stado_like.job.budget import Ended
from stado_like.job.keys import JobId
from stado_like.job.records import Room
from stado_like.job.states import Cause, JobState
from stado_like.reading.awaiting import Awaited
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.queue import queue_status
from stado_like.reading.shapes import job_json, row_json
from stado_like.reading.view import read_job
from stado_worker.candidates import Candidates
from tests.builders_jobs import Clock, attempt, make_bucket, submit, worker

GANG: dict[str, Any] = {"start": "Gang", "template": {"requested_resources": {"machines": 2}}}
UNSHAPED: dict[str, Any] = {"template": {"requested_resources": {"node_selection": {"mode": "All"}}}}
TROUBLED: dict[str, Any] = {
    "template": {"requested_resources": {"node_selection": {"count": 5}, "gpu_requests": {"count": 12}}}
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return make_bucket(clock)


def rows(bucket: Bucket, *prefixes: str) -> list[str]:
    return [row.key for prefix in prefixes for row in bucket.store.list(prefix).rows]


@pytest.mark.parametrize(
    ("spec", "count", "reason"),
    [
        (GANG, 2, "Waiting for workers to start"),
        (UNSHAPED, None, "Waiting for workers to be created"),
        (TROUBLED, 5, "Cannot plan workers: cannot evenly distribute 12 gpus across 5 machines"),
    ],
)
def test_held_job_waits_where_no_worker_looks_and_says_why(
    bucket: Bucket, spec: dict[str, Any], count: int | None, reason: str
) -> None:
    worker(bucket, free=Room(cpu_millis=64_000, memory_bytes=64 << 30, gpus=64))
    Tick(bucket).step()
    j = submit(bucket, **spec)
    assert not rows(bucket, keys.QUEUED_OPEN) and len(rows(bucket, keys.QUEUED_HELD)) == (count or 1)
    shown = job_json(read_job(bucket, j))
    assert (shown["status"]["state"], shown["status"]["reason"]) == ("Pending", reason)
    assert shown["expected_task_count"] == count and shown["leader_task"] == "train-0"
    (row,) = list_jobs(bucket, Wanted()).rows
    assert row_json(row)["reason"] == reason and row_json(row)["expected_task_count"] == count
    assert {one.name: one.count for one in queue_status(bucket).indexes}["held"] == (count or 1)


@pytest.mark.parametrize(("spec", "since"), [(GANG, "no tick on this store since it was made"), (TROUBLED, "Cannot")])
def test_held_job_says_that_nobody_ticks_unless_no_tick_could_help(
    bucket: Bucket, spec: dict[str, Any], since: str
) -> None:
    j = submit(bucket, **spec)
    assert read_job(bucket, j).reason.startswith(since)
    (row,) = list_jobs(bucket, Wanted()).rows
    assert row.reason.startswith(since)


def test_no_worker_hears_of_a_held_job_or_takes_it(bucket: Bucket) -> None:
    bell = Listener(bucket)
    bell.look()
    submit(bucket, "one", **UNSHAPED)
    submit(bucket, "two", **GANG)
    assert {event.kind for event in bell.look()} == {HELD}  # which wakes who places, and no worker
    candidates = Candidates(bucket)
    candidates.sweep()
    for key in rows(bucket, keys.QUEUED_HELD):
        candidates.offer(key)
    assert candidates.in_order() == [] and not candidates.strange


@pytest.mark.parametrize("spec", [GANG, UNSHAPED])
def test_held_job_is_cancelled_awaited_and_deleted(bucket: Bucket, spec: dict[str, Any]) -> None:
    j = submit(bucket, **spec)
    awaited = Awaited(bucket, j)
    assert awaited.step() is None
    cancel.cancel_job(bucket, j, reason="enough")
    Tick(bucket).step()
    over = awaited.step()
    assert over is not None and (over.state, read_job(bucket, j).state) == (JobState.CANCELLED,) * 2
    assert rows(bucket, "queued/", "open/", "cancels/", "running/") == []
    delete.delete_job(bucket, j)
    assert rows(bucket, "jobs/", "status/", "open/") == []


def test_lost_entry_of_a_held_job_is_put_back_into_its_own_index(bucket: Bucket) -> None:
    submit(bucket, "one", **UNSHAPED)
    submit(bucket, "two", **GANG)
    before = rows(bucket, "queued/")
    bucket.drop(*before)
    Tick(bucket).step()
    assert rows(bucket, "queued/") == before


def test_retry_of_a_held_job_becomes_a_held_entry(bucket: Bucket) -> None:
    j = submit(bucket, **GANG)
    job = bucket.job(j)
    assert job is not None
    terms = bucket.terms(job)
    lost = Ended(Cause.MACHINE_LOST, "gone")
    ended = end_attempt(bucket, attempt(j), terms, lost, Seen(worker="w1")).end
    key = entries.enqueue_after(bucket, job, terms, attempt(j, 0, 2), ended)
    assert key.startswith(keys.QUEUED_LATER)
    moved = entries.move_due(bucket, keys.parse_later(key))
    assert moved is not None and moved.startswith(keys.QUEUED_HELD)
    assert not rows(bucket, keys.QUEUED_LATER, keys.QUEUED_OPEN)


def _late(bucket: Bucket, clock: Clock, j: JobId, act: Any) -> list[str]:
    """An entry of a job comes again after `act`: what is left once ticks have swept."""
    key = next(key for key in rows(bucket, "queued/") if f".{j}." in key)
    seen = bucket.store.get(key)
    assert seen is not None
    act()
    bucket.store.put(key, seen.body)
    clock.now_s += 590
    Tick(bucket).step()
    assert rows(bucket, "queued/") == [key]  # others may be dealing with it
    clock.now_s += 20
    Tick(bucket).step()
    return rows(bucket, "queued/")


UNFIT: dict[str, Any] = {"template": {"image": "busybox"}}


@pytest.mark.parametrize("spec", [UNSHAPED, GANG, UNFIT])
def test_entry_that_no_claimer_meets_and_that_comes_too_late_is_swept(clock: Clock, spec: dict[str, Any]) -> None:
    bucket = make_bucket(clock)
    j = submit(bucket, **spec)
    assert _late(bucket, clock, j, lambda: cancel.cancel_job(bucket, j)) == []
    other = submit(bucket, "again", **spec)

    def gone() -> None:
        cancel.cancel_job(bucket, other)
        delete.delete_job(bucket, other)

    assert _late(bucket, clock, other, gone) == []


def test_entry_that_nobody_asked_for_is_swept_and_one_that_waits_stays(clock: Clock) -> None:
    bucket = make_bucket(clock)
    j = submit(bucket, **UNFIT)
    job = bucket.job(j)
    assert job is not None
    (waits,) = rows(bucket, "queued/")
    entries.enqueue(bucket, job, bucket.terms(job), attempt(j, 0, 2))
    clock.now_s += 610
    Tick(bucket).step()
    assert rows(bucket, "queued/") == [waits]
