"""Day files: lists tell of jobs that are over by a few objects, and never say anything but what the jobs say.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stado_coordinator.compaction import Compaction
from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, delete
from stado_like.bucket.bucket import Bucket
from stado_like.job import day_keys, keys
from stado_like.job.states import Cause
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import list_all
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests import servers
from tests.builders_days import Yard, failed, many, over
from tests.builders_jobs import attempt, run, submit

DAY_S = 86_400.0


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_thousand_jobs_that_are_over_are_told_in_a_few_requests(yard: Yard) -> None:
    """Two objects of each, before; with day files the pages of the jobs and five indexes, the files' own listing, and
    one file."""
    many(yard, 1_000)
    _, before = yard.listed()
    assert sum(before.values()) == 6 + 1 + 2 * 1_000
    assert yard.compact(times=3)["rows"] == 1_000
    told = yard.check()
    assert len(told) == 1_000 and {row["state"] for row in told} == {"Completed"}
    assert yard.listed()[1] == {"list": 7, "get": len(yard.files())}
    assert len(yard.files()) == 1


def test_few_jobs_are_read_as_before(yard: Yard) -> None:
    """A listing costs what thirteen GETs do: for six jobs it would not pay."""
    many(yard, 6)
    yard.compact()
    assert yard.listed()[1] == {"list": 6, "get": 12}


def test_only_what_is_over_is_written(yard: Yard) -> None:
    """Waiting, running, retried, one rank of several over: none of them is told by a day file, and each is once it is
    over."""
    done = over(yard, "done")
    waits, runs, again = (submit(yard.bucket, name) for name in ("waits", "runs", "again"))
    build.claim(yard.bucket, attempt(runs))
    build.beat(yard.bucket, attempt(runs))
    run(yard.bucket, attempt(again), 1)
    several = submit(yard.bucket, "several", array={"size": 2})
    run(yard.bucket, attempt(several))
    build.worker(yard.bucket)
    stage = Tick(yard.bucket, resident=True)
    yard.compact(stage)
    assert yard.rows() == [done]
    yard.check()
    run(yard.bucket, attempt(again, n=2))
    run(yard.bucket, attempt(several, 1))
    yard.compact(stage, times=10)
    assert {done, again, several} <= set(yard.rows()) and waits not in yard.rows()
    yard.check()


def test_every_kind_of_end_is_told_as_it_is(yard: Yard) -> None:
    many(yard, 10)
    failed(yard, "failed")
    cancelled = submit(yard.bucket, "cancelled", priority=7)
    cancel.cancel_job(yard.bucket, cancelled, reason="not needed")
    part = submit(yard.bucket, "part", array={"size": 3})
    run(yard.bucket, attempt(part), cause=Cause.TIME_LIMIT)
    submit(yard.bucket, "other", metadata={"workspace": "lab", "labels": {"team": "x"}})
    yard.compact(times=3)
    told = {row["name"]: row for row in yard.check()}
    assert (told["failed"]["state"], told["cancelled"]["state"]) == ("Failed", "Cancelled")
    assert told["cancelled"]["priority"] == 7


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"every": False},
        {"states": ("Completed",)},
        {"states": ("failed", "PENDING")},
        {"workspace": "lab"},
        {"workspace": "nowhere"},
        {"labels": {"team": "x"}},
        {"labels": {"team": "x"}, "states": ("Completed",), "limit": 3},
        {"limit": 1},
        {"limit": 25},
        {"older_than_s": 1.5 * DAY_S},
        {"older_than_s": 2 * DAY_S, "states": ("Failed",), "limit": 2},
    ],
)
def test_filters_limits_and_order_mean_what_they_mean_without(yard: Yard, wanted: dict[str, Any]) -> None:
    for day in range(3):
        for at in range(12):
            metadata = {"workspace": "lab" if at % 3 else "default", "labels": {"team": "x"} if at % 2 else {}}
            j = submit(yard.bucket, f"job-{day}-{at}", metadata=metadata, template={"resilience": {"max_restarts": 0}})
            if at < 10:
                run(yard.bucket, attempt(j), at % 4)
        yard.compact(times=2)
        yard.clock.now_s += DAY_S
    assert len(yard.files()) >= 6
    yard.check(**wanted)


@pytest.mark.parametrize("kind", ["file", "s3"])
def test_stores_keep_day_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their listings' etags and times are what rows go by, and differ from store to store."""
    with ExitStack() as served:
        url = f"file://{tmp_path}/b?durable=0"
        if kind == "s3":
            for name, value in servers.CREDENTIALS.items():
                monkeypatch.setenv(name, value)
            server = served.enter_context(servers.moto())
            server.make_bucket("days")
            url = server.url("days", "here")
        bucket = Bucket(open_store(url))
        for number in range(20):
            run(bucket, attempt(submit(bucket, f"job-{number:02d}")))
        before = list_jobs(Bucket(bucket.store), Wanted(every=True))
        assert Compaction().step(bucket, {}, (), resident=False) == {"rows": 20, "files": 1}
        meter = Meter()
        told = list_jobs(Bucket(MeteredStore(bucket.store, meter)), Wanted(every=True))
        assert told == before and len(told.rows) == 20
        assert meter.snapshot().counts == {"list": 7, "get": 1}


# ---- deleted, and names that are used again


def test_deleted_job_is_told_by_no_file(yard: Yard) -> None:
    jobs = many(yard, 20)
    yard.compact(times=2)
    delete.delete_job(yard.bucket, jobs[3])
    assert jobs[3] in yard.rows()
    assert "job-0003" not in {row["name"] for row in yard.check()}


def test_deletion_that_was_cut_short_is_told_by_no_file(yard: Yard) -> None:
    jobs = many(yard, 20)
    yard.compact(times=2)
    yard.bucket.put(keys.open_index(jobs[3]), {"what": delete.DELETION})
    yard.bucket.put(keys.tombstone(jobs[3]), {"nonce": "n"})
    assert "job-0003" not in {row["name"] for row in yard.check()}


def test_row_of_a_deleted_job_is_taken_out_of_its_file(yard: Yard) -> None:
    """What was deleted leaves nothing: neither in a file beside others, nor as a file of its own."""
    jobs = many(yard, 20)
    yard.clock.now_s += DAY_S
    alone = over(yard, "alone")
    yard.compact(times=2)
    for j in (jobs[3], alone):
        delete.delete_job(yard.bucket, j)
    assert yard.compact(times=3)["taken out"] == 2
    assert yard.rows() == [j for j in jobs if j != jobs[3]]
    yard.check()


def test_name_that_was_used_again_is_told_of_its_new_job(yard: Yard) -> None:
    jobs = many(yard, 20)
    yard.compact(times=2)
    delete.delete_job(yard.bucket, jobs[3])
    again = submit(yard.bucket, "job-0003")
    told = {row["name"]: row for row in yard.check()}
    assert (told["job-0003"]["incarnation"], told["job-0003"]["state"]) == (again.k, "Pending")


def test_bucket_that_was_emptied_and_used_again_is_told_as_it_is(yard: Yard) -> None:
    """The same incarnation of the same name, the same second, another job: its record's etag is another one."""
    many(yard, 20)
    yard.compact(times=2)
    for row in list_all(yard.bucket.store, ""):
        if not row.key.startswith(day_keys.DAYS):
            yard.bucket.drop(row.key)
    for at in range(20):
        submit(yard.bucket, f"job-{at:04d}")
    build.worker(yard.bucket)
    assert {row["state"] for row in yard.check()} == {"Pending"}
