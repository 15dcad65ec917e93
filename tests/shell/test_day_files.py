"""Day files: lists tell of jobs that are over by a few objects, and never say anything else than the jobs themselves.

Whatever becomes of the files (old, doubled, damaged, of another version, half written), a list says what it would say
without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stado_coordinator.compaction import (
    CRON_EVERY_S,
    JOINED_FROM,
    PENDING_S,
    QUIET_MOST_S,
    RESIDENT_EVERY_S,
    Compaction,
)
from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, days, delete
from stado_like.bucket.bucket import Bucket
from stado_like.job import day_keys, day_rows, keys
from stado_like.job.keys import JobId
from stado_like.job.states import Cause
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.shapes import row_json
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import list_all
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests import servers
from tests.builders_jobs import Clock, attempt, run, submit

DAY_S = 86_400.0


class Yard:
    """A bucket, the clock that moves only when a test says so, and a resident tick that writes day files."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.bucket = build.make_bucket(self.clock)
        self.tick = Tick(self.bucket, resident=True)

    def compact(self, tick: Tick | None = None, times: int = 1) -> dict[str, int]:
        """Ticks until day files were due; what they did."""
        did: dict[str, int] = {}
        tick = tick or self.tick
        self.clock.now_s += 0 if tick is self.tick else 1
        tick.step()
        for _ in range(times):
            self.clock.now_s += max(QUIET_MOST_S, PENDING_S)
            report = tick.step()
            assert not report.deferred and not report.set_aside
            for what, n in report.passes.get("days", {}).items():
                did[what] = did.get(what, 0) + n
        return did

    def files(self) -> list[str]:
        return [row.key for row in list_all(self.bucket.store, day_keys.DAYS)]

    def rows(self) -> list[JobId]:
        """The jobs of which a file has a row."""
        found = [day_keys.parse_day_part(key) for key in self.files()]
        lines = [(one.workspace, line) for one in found for line in self._lines(one.key)]
        return sorted(day_rows.read(workspace, line).j for workspace, line in lines)

    def _lines(self, key: str) -> list[bytes]:
        body = self.bucket.store.get(key)
        assert body is not None
        return day_rows.lines(body.body, key)

    def listed(self, **wanted: Any) -> tuple[list[Mapping[str, Any]], dict[str, int]]:
        """What a new process tells, and what it asked."""
        meter = Meter()
        reader = Bucket(MeteredStore(self.bucket.store, meter), ambient=self.clock)
        found = list_jobs(reader, Wanted(**{"every": True, **wanted}))
        assert found.set_aside == {}
        return [row_json(row) for row in found.rows], dict(meter.snapshot().counts)

    def without_files(self) -> Yard:
        """The same bucket as it would be had no tick written day files."""
        bare = Yard()
        bare.clock = self.clock
        bare.bucket = Bucket(_Without(self.bucket.store, day_keys.DAYS), ambient=self.clock)
        return bare

    def check(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """A list with the files says what one without them says."""
        told, _ = self.listed(**wanted)
        assert told == self.without_files().listed(**wanted)[0]
        return told


class _Without(MeteredStore):
    """A store in which nothing lies below a prefix."""

    def __init__(self, store: Any, prefix: str) -> None:
        super().__init__(store, Meter())
        self._prefix = prefix

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Any:
        return super().list("nothing/" if prefix.startswith(self._prefix) else prefix, start_after=start_after)


@pytest.fixture
def yard() -> Yard:
    return Yard()


def over(yard: Yard, name: str, **spec: Any) -> JobId:
    j = submit(yard.bucket, name, **spec)
    run(yard.bucket, attempt(j))
    return j


def failed(yard: Yard, name: str) -> JobId:
    j = submit(yard.bucket, name, template={"resilience": {"max_restarts": 0}})
    run(yard.bucket, attempt(j), 3)
    return j


def many(yard: Yard, jobs: int) -> list[JobId]:
    return [over(yard, f"job-{at:04d}") for at in range(jobs)]


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


# ---- files that are not what they should be


def _cut_off(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _no_file(body: bytes) -> bytes:
    return b"<html>"


def _one_bit(body: bytes) -> bytes:
    return body[:-9] + bytes([body[-9] ^ 1]) + body[-8:]


@pytest.mark.parametrize("damage", [_cut_off, _no_file, _one_bit])
def test_damaged_file_is_as_if_it_were_not_there(yard: Yard, damage: Callable[[bytes], bytes]) -> None:
    many(yard, 20)
    yard.compact(times=2)
    (key,) = yard.files()
    body = yard.bucket.store.get(key)
    assert body is not None
    yard.bucket.store.put(key, damage(body.body))
    yard.check()
    other = Tick(yard.bucket, resident=True)
    assert yard.compact(other, times=2)["rows"] == 20
    assert len(yard.rows()) == 20


def test_file_of_another_version_and_strangers_are_passed_over(yard: Yard) -> None:
    many(yard, 20)
    yard.bucket.store.put("days/default/2026-01-01.99.0123456789abcdef0123456789abcdef.gz", b"from the future")
    yard.bucket.store.put("days/default/notes.txt", b"mine")
    yard.compact(times=2)
    yard.check()
    assert len(yard.files()) == 3


# ---- several files, several ticks


def test_small_files_of_a_day_become_one(yard: Yard) -> None:
    jobs = []
    for at in range(JOINED_FROM):
        jobs.append(over(yard, f"job-{at}"))
        yard.compact(times=1)
    assert yard.rows() == jobs
    assert len({key.split("/")[2][:10] for key in yard.files()}) == 1 and len(yard.files()) < JOINED_FROM
    yard.check()


def test_two_ticks_that_write_the_same_rows_write_one_file(yard: Yard) -> None:
    """Both listed the files before there were any."""
    jobs = many(yard, 20)
    over_again = Tick(yard.bucket, resident=True)
    for tick in (yard.tick, over_again):
        tick.step()
    yard.clock.now_s += RESIDENT_EVERY_S
    memory = over_again._compaction._memory
    memory.begin(yard.bucket)
    assert yard.tick.step().passes["days"]["files"] == 1
    assert over_again.step().passes["days"]["files"] == 1
    assert len(yard.files()) == 1 and yard.rows() == jobs


def test_join_that_was_cut_short_leaves_rows_twice_and_tells_them_once(yard: Yard) -> None:
    many(yard, 20)
    yard.compact(times=2)
    ((where, (part,)),) = days.parts(yard.bucket).items()
    half = [day_rows.read("default", line) for line in days.lines(yard.bucket, part)][:10]
    days.write(yard.bucket, *where, half)
    assert len(yard.files()) == 2
    assert len(yard.check()) == 20
    yard.compact(times=3)
    yard.check()


def test_tick_whose_store_takes_no_file_defers_and_writes_it_later(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    from stado_like.store.protocol import Unknown

    jobs = many(yard, 20)
    create = yard.tick.bucket.store.create
    yard.tick.step()
    with monkeypatch.context() as broken:
        broken.setattr(
            yard.tick.bucket.store,
            "create",
            lambda key, body: Unknown("no answer") if key.startswith("days/") else create(key, body),
        )
        yard.clock.now_s += RESIDENT_EVERY_S
        report = yard.tick.step()
        assert [what for what, _ in report.deferred] == ["days"]
    yard.compact(times=2)
    assert yard.rows() == jobs
    yard.check()


def test_ticks_from_cron_write_every_ten_minutes(yard: Yard) -> None:
    jobs = many(yard, 20)
    assert "days" not in Tick(yard.bucket).step().passes
    yard.clock.now_s += CRON_EVERY_S / 2
    assert "days" not in Tick(yard.bucket).step().passes
    yard.clock.now_s += CRON_EVERY_S / 2
    assert Tick(yard.bucket).step().passes["days"] == {"rows": 20, "files": 1}
    assert yard.rows() == jobs
    yard.clock.now_s += CRON_EVERY_S
    assert Tick(yard.bucket).step().passes["days"] == {}


def test_quiet_bucket_is_gone_through_once_an_hour(yard: Yard) -> None:
    """Its page and the files' listing: nothing else, once nothing new turned up a few times."""
    many(yard, 20)
    yard.compact(times=6)
    spent = []
    for _ in range(2):
        before = yard.tick.meter.snapshot()
        yard.clock.now_s += QUIET_MOST_S / 2
        yard.tick.step()
        spent.append(yard.tick.meter.snapshot() - before)
    without, with_a_round = spent
    assert with_a_round["list"] - without["list"] == 2 and with_a_round.total - without.total == 2
