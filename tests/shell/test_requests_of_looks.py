"""What a look costs, in requests, exactly: `job show` of a job in each of its states, `job list` of many; and what is
kept on disk so that it costs no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from stado_like.ambient import REAL
from stado_like.bucket import delete
from stado_like.bucket.bucket import Bucket
from stado_like.errors import NotFound
from stado_like.job import day_keys, keys
from stado_like.job.keys import JobId
from stado_like.job.records import Tombstone
from stado_like.job.states import Cause, JobState
from stado_like.kept_lines import KeptLines
from stado_like.reading.kept_rows import KeptRows, place
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.named import read_named
from stado_like.reading.shapes import JobRow, JobView
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import ObjectStore, list_all
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests import servers
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


# ---- lists


class Many:
    """A bucket with many jobs, and one person who lists them again and again: each time a new process."""

    def __init__(self, store: ObjectStore, place: Path) -> None:
        self.bucket = Bucket(store, ambient=Clock())
        self.place = place

    def list(self, **wanted: Any) -> tuple[dict[str, str], dict[str, int]]:
        """State of each job by name, and what was asked."""
        meter = Meter()
        reader = Bucket(MeteredStore(self.bucket.store, meter), ambient=self.bucket.ambient)
        found = list_jobs(reader, Wanted(**wanted), KeptRows(self.place))
        assert found.set_aside == {}
        return {row.id.name: row.state.value for row in found.rows}, dict(meter.snapshot().counts)


@pytest.fixture
def many(tmp_path: Path) -> Many:
    return Many(open_store(f"memory://{REAL.token()}"), tmp_path / "kept")


def _fill(many: Many, jobs: int) -> None:
    """Every second one has ended, the others wait."""
    for at in range(jobs):
        j = submit(many.bucket, f"job-{at:04d}")
        if at % 2 == 0:
            claim(many.bucket, attempt(j))
            build.end(many.bucket, attempt(j))


@pytest.fixture(scope="module")
def filled() -> Iterator[Mapping[str, bytes]]:
    """200 jobs of which every second one has ended, and a worker: every object, to be put anywhere."""
    many = Many(open_store(f"memory://{REAL.token()}"), Path("/dev/null"))
    _fill(many, 200)
    build.worker(many.bucket)
    found = {row.key: many.bucket.store.get(row.key) for row in list_all(many.bucket.store, "")}
    yield {key: one.body for key, one in found.items() if one is not None}


@pytest.fixture(params=["memory", "file", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    if request.param != "s3":
        yield open_store(f"memory://{REAL.token()}" if request.param == "memory" else f"file://{tmp_path}/b?durable=0")
        return
    for name, value in servers.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with servers.moto() as server:
        server.make_bucket("rows")
        yield open_store(server.url("rows", REAL.token()))


def test_list_of_jobs_costs_its_pages_and_a_few(
    store: ObjectStore, filled: Mapping[str, bytes], tmp_path: Path
) -> None:
    """Pages: five indexes, the jobs, `status/` for all that wait at once, the broadcasts, what is wanted of machines.
    Then a GET of the pause and one for each machine. What has ended, and the record of what waits, is read once, after
    a look for day files."""
    for key, body in filled.items():
        store.put(key, body)
    many = Many(store, tmp_path / "kept")
    states, cost = many.list()
    assert Counter(states.values()) == {"Completed": 100, "Pending": 100}
    assert cost == {"list": 10, "get": 100 + 2 * 100 + 2}  # the jobs that wait, two of each that ended
    again, cost = many.list()
    assert (again, cost) == (states, {"list": 9, "get": 2})


def test_thousand_jobs_cost_their_pages_and_a_few(many: Many) -> None:
    _fill(many, 1_000)
    many.list()
    states, cost = many.list()
    assert len(states) == 1_000
    assert cost == {"list": 9, "get": 1}


def test_what_changes_is_read_again(many: Many) -> None:
    _fill(many, 40)
    many.list()
    waits = JobId("default", "job-0001", 1)
    _running(many.bucket, waits)
    states, cost = many.list()
    assert (states["job-0001"], cost["get"]) == ("Running", 3)  # its end and heartbeat; the pause
    build.end(many.bucket, attempt(waits), 1, cause=Cause.TIME_LIMIT, reason="too long")
    states, cost = many.list()
    assert (states["job-0001"], cost["get"]) == ("Failed", 2)
    states, cost = many.list()
    assert (states["job-0001"], cost["get"]) == ("Failed", 1)


def test_job_that_waits_for_its_retry_is_asked_for(many: Many) -> None:
    _fill(many, 40)
    run(many.bucket, attempt(JobId("default", "job-0001", 1)), 3)
    assert many.list()[0]["job-0001"] == "Pending"
    (row,) = [one for one in list_jobs(many.bucket, Wanted()).rows if one.id.name == "job-0001"]
    assert row.reason == "Restarted by policy (restart 1/10)"


def test_entry_left_behind_shows_no_finished_job_as_waiting(many: Many) -> None:
    """Whoever claimed it was killed before it took the entry away, and its end came by another way."""
    _fill(many, 40)
    entries = {row.key: many.bucket.store.get(row.key) for row in many.bucket.store.list(keys.QUEUED_OPEN).rows}
    run(many.bucket, attempt(JobId("default", "job-0001", 1)))
    for key, found in entries.items():
        assert found is not None
        many.bucket.store.put(key, found.body)
    assert many.list()[0]["job-0001"] == "Completed"


def test_bucket_that_was_emptied_and_used_again(many: Many) -> None:
    """The same names under the same address are other jobs."""
    _fill(many, 2)
    assert many.list()[0] == {"job-0000": "Completed", "job-0001": "Pending"}
    for row in list_all(many.bucket.store, ""):
        many.bucket.store.delete(row.key)
    assert many.list()[0] == {}
    many.bucket = Bucket(many.bucket.store, ambient=many.bucket.ambient)
    submit(many.bucket, "job-0000", priority=3)
    assert many.list()[0] == {"job-0000": "Pending"}


def test_filters_answer_the_same_from_what_was_kept(many: Many) -> None:
    j = submit(many.bucket, metadata={"labels": {"team": "a"}})
    run(many.bucket, attempt(j))
    submit(many.bucket, "other")
    for wanted in ({"team": "a"}, {"job.astraeus.io/name": "train"}, {"team": "b"}, {"job.astraeus.io/name": "b"}):
        first = many.list(labels=wanted)[0]
        assert first == many.list(labels=wanted)[0] == ({} if "b" in wanted.values() else {"train": "Completed"})
    assert many.list(states=("completed",))[0] == {"train": "Completed"}
    assert many.list(limit=1)[0] == {"other": "Pending"}


# ---- what is kept


def _row(j: JobId, reason: str = "done") -> JobRow:
    return JobRow(
        id=j,
        state=JobState.COMPLETED,
        reason=reason,
        priority=0,
        tasks=1,
        shaped=True,
        created_at=1.0,
        started_at=2.0,
        finished_at=3.0,
        counts={"Completed": 1},
        labels={"team": "a"},
    )


def _kept(place: Path, name: str, reason: str = "done", **more: int) -> KeptRows:
    kept = KeptRows(place, **more)
    j = JobId("default", name, 1)
    kept.keep_row(keys.job(j), "etag", _row(j, reason))
    kept.save()
    return kept


def test_rows_are_kept_for_the_etag_they_were_read_under(tmp_path: Path) -> None:
    _kept(tmp_path / "a" / "rows", "train")
    j = JobId("default", "train", 1)
    again = KeptRows(tmp_path / "a" / "rows")
    assert again.row(keys.job(j), "etag") == _row(j)
    assert again.row(keys.job(j), "other") is None
    assert again.job(keys.job(j), "etag") is None
    assert (tmp_path / "a" / "rows").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("break_it", ["cut", "flip", "garbage", "empty"])
def test_file_that_was_damaged_is_passed_over(tmp_path: Path, break_it: str) -> None:
    place = tmp_path / "rows"
    _kept(place, "train")
    body = place.read_bytes()
    broken = {"cut": body[:-20], "flip": body.replace(b"done", b"gone"), "garbage": b"\xff\x00[" * 99, "empty": b""}
    place.write_bytes(broken[break_it])
    j = JobId("default", "train", 1)
    assert KeptRows(place).row(keys.job(j), "etag") is None
    _kept(place, "after")  # appended behind whatever is there
    assert KeptRows(place).row(keys.job(JobId("default", "after", 1)), "etag") is not None


@pytest.mark.parametrize(
    ("kind", "said"),
    [("job", '{"v": "9.0"}'), ("job", 7), ("job", "no JSON"), ("row", [1, 2]), ("row", None), ("", "")],
)
def test_what_another_version_kept_is_passed_over(tmp_path: Path, kind: str, said: object) -> None:
    key = keys.job(JobId("default", "train", 1))
    other = KeptLines(tmp_path / "rows", f"rows {day_keys.FORMAT}", most_bytes=1 << 20)
    other.keep(key, ["etag", kind, said])
    other.save()
    kept = KeptRows(tmp_path / "rows")
    assert (kept.row(key, "etag"), kept.job(key, "etag")) == (None, None)


def test_several_processes_append_to_one_file(tmp_path: Path) -> None:
    place = tmp_path / "rows"
    both = [KeptRows(place), KeptRows(place)]
    for at, kept in enumerate(both):
        j = JobId("default", f"job-{at}", 1)
        kept.keep_row(keys.job(j), "etag", _row(j))
    for kept in both:
        kept.save()
    found = KeptRows(place)
    assert all(found.row(keys.job(JobId("default", f"job-{at}", 1)), "etag") for at in range(2))


def test_file_stays_within_its_bound_and_keeps_the_newest(tmp_path: Path) -> None:
    place = tmp_path / "rows"
    for at in range(60):
        _kept(place, f"job-{at}", most_bytes=4_000)
        assert place.stat().st_size <= 4_400
    assert KeptRows(place).row(keys.job(JobId("default", "job-59", 1)), "etag") is not None
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]


def test_place_that_cannot_be_written_costs_requests_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = _kept(tmp_path / "file" / "rows", "train")
    assert kept.row(keys.job(JobId("default", "train", 1)), "etag") is not None


def test_each_store_has_its_file_and_memory_none() -> None:
    at = {"XDG_CACHE_HOME": "/cache"}
    one, other = place("file:///a", at), place("s3://a/b", at)
    assert one is not None and other is not None and one != other
    assert one.parent == Path("/cache/stado/rows")
    assert place("memory://a", at) is None
