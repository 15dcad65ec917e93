"""A tick that finds what another process kept decides as one that finds nothing: whatever became of the records
meanwhile, of the store, or of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_coordinator.report import Report
from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, delete
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.errors import Exit
from stado_like.job import codec, keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause
from stado_like.job.workspace import Quota, Workspace
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from tests.builders_queue import Waiting
from tests.builders_tick import Stage

WEEK_S = 7 * 86_400.0


def trust(stage: Stage, which: str = "one") -> None:
    stage.store.put(keys.STORE_VERDICT, codec.encode({"nonce": which}))


@pytest.fixture
def stage() -> Waiting:
    made = Waiting()
    trust(made)
    return made


def cron(stage: Stage, cache: Path | None, *, pass_s: float = 5.0) -> Report:
    """One tick in a process of its own."""
    stage.clock.pass_s(pass_s)
    report = Tick(Bucket(stage.store, ambient=stage.clock), cache=cache).step()
    assert report.exit_code is Exit.DONE, report.as_json()
    return report


def finish(stage: Stage, a: AttemptId) -> None:
    stage.claim(a)
    job, terms = stage.job(a.job)
    ended = end_attempt(stage.bucket, a, terms, Ended(Cause.NONE, ""), Seen(worker="w1"))
    settle(stage.bucket, a, ended.end, job=job)


def quota(stage: Stage, cpus: int | None) -> None:
    limits = Quota(max_cpus=cpus)
    stage.store.put(keys.workspace("default"), codec.encode(Workspace(name="default", quota=limits)))


# ---- what became of the records


def test_job_deleted_since_is_neither_placed_nor_queued_again(stage: Waiting, tmp_path: Path) -> None:
    """Its entry comes back after the deletion, as a request that slept sends it; its record is known from the disk."""
    quota(stage, 8)
    j = stage.put("gone")
    cron(stage, tmp_path)
    (entry,) = stage.keys(keys.QUEUED_HELD)
    body = stage.store.get(entry)
    assert body is not None
    finish(stage, AttemptId(j, 0, 1))
    stage.store.delete(entry)
    delete.delete_job(stage.bucket, j)
    stage.store.put(entry, body.body)
    stage.machine("w1")
    cron(stage, tmp_path)
    assert stage.keys(keys.INBOX) == stage.keys(keys.JOBS) == []
    stage.machine("w1")
    cron(stage, tmp_path, pass_s=700)
    assert stage.keys("queued/") == []


def test_array_whose_record_is_gone_gets_no_entries(stage: Waiting, tmp_path: Path) -> None:
    """Known from the disk, looked after from open/: whether it still stands is asked before anything is queued."""
    j = stage.put("lost", array={"size": 3})
    cron(stage, tmp_path)
    for key in [*stage.keys("queued/"), keys.job(j)]:
        stage.store.delete(key)
    cron(stage, tmp_path, pass_s=700)
    assert stage.keys("queued/") == []


def test_name_used_again_is_another_job(stage: Waiting, tmp_path: Path) -> None:
    first = stage.put("train", cores=1.0)
    cron(stage, tmp_path)
    finish(stage, AttemptId(first, 0, 1))
    delete.delete_job(stage.bucket, first)
    quota(stage, 8)
    second = stage.put("train", cores=3.0)
    assert (first.k, second.k) == (1, 2)
    stage.machine("w1")
    cron(stage, tmp_path)
    stage.machine("w1")
    cron(stage, tmp_path)
    orders = [key for key in stage.keys(keys.INBOX) if str(second) in key]
    assert len(orders) == 1


def test_quota_that_was_edited_counts_at_once(stage: Waiting, tmp_path: Path) -> None:
    quota(stage, 1)
    for name in ("one", "two"):
        stage.put(name)
    stage.machine("w1")
    cron(stage, tmp_path)
    stage.machine("w1")
    cron(stage, tmp_path)
    assert len(stage.orders()) == 1
    quota(stage, 2)
    stage.machine("w1")
    cron(stage, tmp_path, pass_s=1)
    stage.machine("w1")
    cron(stage, tmp_path, pass_s=1)
    assert len(stage.orders()) == 2


def test_attempt_claimed_again_by_another_is_that_ones(stage: Waiting, tmp_path: Path) -> None:
    """The claim on the disk is of who had it before: the worker that speaks for it now is believed."""
    a = AttemptId(stage.put("twice"), 0, 1)
    stage.claim(a, "w1")
    cron(stage, tmp_path)
    stage.store.delete(keys.running(a))
    second = stage.claim(a, "w2")
    for _ in range(6):
        stage.clock.pass_s(60)
        stage.broadcast("w2", (a, second.nonce, True))
        report = cron(stage, tmp_path, pass_s=1)
        assert not report.passes["reap"]
    assert stage.keys(keys.end(a)) == []


def test_total_that_was_split_into_one_task_is_left_to_workers_by_the_next_process(
    stage: Waiting, tmp_path: Path
) -> None:
    """What it asks for follows from its shape, not from its record alone: the entry from before it is dropped."""
    j = stage.put("split", gpus=4, gpu={"policy": "PerNode"})
    (before,) = stage.keys(keys.QUEUED)
    body = stage.store.get(before)
    assert body is not None
    for _ in range(3):
        stage.machine("w1", gpus=8)
        cron(stage, tmp_path)
        if keys.shape(j) in stage.keys(keys.status_of(j)):
            stage.store.put(before, body.body)
    stage.machine("w1", gpus=8)
    cron(stage, tmp_path)
    (entry,) = stage.keys(keys.QUEUED)
    assert stage.keys(keys.shape(j)) and keys.parse_entry(entry).envelope.gpus == 4
    assert entry.startswith(keys.QUEUED_OPEN)


# ---- what became of the store, and of the file


def test_store_emptied_and_used_again_is_another_store(stage: Waiting, tmp_path: Path) -> None:
    """Names and numbers begin anew there: what was kept of the jobs before is nothing to it."""
    quota(stage, 8)
    stage.put("train", cores=1.0)
    finish(stage, AttemptId(stage.put("done"), 0, 1))
    cron(stage, tmp_path)
    for prefix in ("jobs/", "queued/", "status/", "state/", "open/"):
        for key in stage.keys(prefix):
            stage.store.delete(key)
    trust(stage, "another")
    stage.put("train", cores=3.0)
    stage.store.put(keys.workspace("default"), codec.encode(Workspace(name="default", quota=Quota(max_cpus=2))))
    stage.machine("w1")
    cron(stage, tmp_path)
    stage.machine("w1")
    cron(stage, tmp_path)
    assert stage.orders() == [], "three cores do not fit two"


def test_store_that_does_not_say_which_it_is_keeps_nothing(tmp_path: Path) -> None:
    stage = Waiting()
    stage.put("train")
    cron(stage, tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_stores_share_nothing(tmp_path: Path) -> None:
    stages = [Waiting(), Waiting()]
    for stage, cores in zip(stages, (1.0, 3.0), strict=True):
        trust(stage)
        quota(stage, 2)
        stage.put("train", cores=cores)
        cron(stage, tmp_path)
        stage.machine("w1")
        cron(stage, tmp_path)
    assert [len(stage.orders()) for stage in stages] == [1, 0]
    assert len({path.name for path in tmp_path.iterdir()}) == 4


def test_damaged_file_is_an_empty_cache(stage: Waiting, tmp_path: Path) -> None:
    quota(stage, 1)
    for name in ("one", "two", "three"):
        stage.put(name)
    cron(stage, tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[1:] + b"{")
    stage.machine("w1")
    cron(stage, tmp_path)
    assert len(stage.orders()) == 1


def test_line_of_another_version_is_passed_over(stage: Waiting, tmp_path: Path) -> None:
    """Rightly written, and of a shape that this one does not know."""
    j = stage.put("array", array={"size": 2})
    quota(stage, 4)
    k = stage.put("plain")
    tick = Tick(Bucket(stage.store, ambient=stage.clock), cache=tmp_path)
    tick.step()
    for name in (str(j), str(k), f"mended/{j}", keys.workspace("default")):
        tick.memory.cache.keep(name, {"another": "shape"})
    tick.memory.cache.keep(str(k), [1, {"v": 7}])
    tick.memory.cache.save()
    stage.machine("w1")
    cron(stage, tmp_path)
    stage.machine("w1")
    cron(stage, tmp_path)
    assert len(stage.orders()) == 3


# ---- the sweep passes over only what is certain


def test_job_that_landed_and_is_cancelled_without_an_index_is_found(stage: Waiting, tmp_path: Path) -> None:
    j = stage.put("idle", cores=64.0)
    for _ in range(3):
        cron(stage, tmp_path)
    stop = {"nonce": "n", "reason": "enough", "by": "ada", "at": stage.bucket.now()}
    stage.store.put(keys.stop(j, 0), codec.encode(stop))
    cron(stage, tmp_path)
    cron(stage, tmp_path)
    assert stage.keys("queued/") == [] and len(stage.keys(keys.end(AttemptId(j, 0, 1)))) == 1


def test_record_that_comes_again_after_its_deletion_is_cleared_away(stage: Waiting, tmp_path: Path) -> None:
    """A submit slept, and its record arrives under a tombstone. Ticks had seen its entry, and its end."""
    j = stage.put("late")
    record = stage.store.get(keys.job(j))
    assert record is not None
    cron(stage, tmp_path)
    finish(stage, AttemptId(j, 0, 1))
    cron(stage, tmp_path)
    delete.delete_job(stage.bucket, j)
    stage.clock.pass_s(5)
    stage.store.put(keys.job(j), record.body)
    for _ in range(2):
        cron(stage, tmp_path)
    assert stage.keys(keys.JOBS) == stage.keys(keys.OPEN) == []


def test_entry_that_vanished_is_found_missing_within_a_week(stage: Waiting, tmp_path: Path) -> None:
    """Nothing of ours takes it away without a trace; a person with the store's own tools does."""
    stage.put("removed", cores=64.0)
    cron(stage, tmp_path)
    (entry,) = stage.keys(keys.QUEUED_OPEN)
    stage.store.delete(entry)
    cron(stage, tmp_path)
    cron(stage, tmp_path, pass_s=WEEK_S)
    assert stage.keys(keys.QUEUED_OPEN) == [entry]


def test_jobs_that_are_over_cost_their_line_of_a_listing(stage: Waiting, tmp_path: Path) -> None:
    jobs = [stage.put(f"done-{n}") for n in range(20)]
    for j in jobs:
        finish(stage, AttemptId(j, 0, 1))
    for _ in range(3):
        cron(stage, tmp_path)
    meter = Meter()
    stage.clock.pass_s(60)
    Tick(Bucket(MeteredStore(stage.store, meter), ambient=stage.clock), cache=tmp_path).step()
    assert meter.snapshot()["get"] <= 5 and meter.snapshot()["head"] == 0


def test_a_page_that_one_job_fills_is_no_end_of_the_sweep(tmp_path: Path) -> None:
    """A finished array whose index is gone has thousands of rows; the jobs behind it have their turn."""
    stage = Waiting()
    trust(stage)
    j = stage.put("big", array={"size": 2})
    stage.store.delete(keys.open_index(j))
    for n in range(1, 2_500):
        stage.store.put(keys.heartbeat(AttemptId(j, 0, n)), b"{}")
    lost = stage.put("lost")
    for key in stage.keys(keys.QUEUED_OPEN):
        if str(lost) in key:
            stage.store.delete(key)
    for _ in range(4):
        cron(stage, tmp_path)
    assert any(str(lost) in key for key in stage.keys(keys.QUEUED_OPEN))
    assert stage.keys(keys.OPEN) == [keys.open_index(j)]


def test_ticks_side_by_side_keep_what_both_saw(tmp_path: Path) -> None:
    stage = Waiting()
    trust(stage)
    assert isinstance(stage.store, MemoryStore)
    ticks = [Tick(Bucket(stage.store, ambient=stage.clock), cache=tmp_path) for _ in range(2)]
    quota(stage, 1)
    stage.put("one")
    ticks[0].look()
    stage.put("two")
    ticks[1].look()
    for tick in ticks:
        tick.memory.cache.save()
    third = Tick(Bucket(stage.store, ambient=stage.clock), cache=tmp_path)
    third.memory.cache.open(third.bucket)
    assert all(third.memory.jobs.seen(JobId("default", name, 1)) is not None for name in ("one", "two"))


# ---- gangs of which nothing has changed


def gang(stage: Waiting, name: str = "gang") -> JobId:
    return stage.put(name, start="Gang", resources={"machines": 2})


def machines(stage: Waiting, free: float | None = None) -> None:
    for worker in ("w1", "w2"):
        stage.machine(worker, free=free)


def spent(report: Report) -> float:
    return sum(report.requests[kind] for kind in ("get", "head", "list", "not_modified"))


def test_gangs_that_wait_cost_their_entries_lines(stage: Waiting, tmp_path: Path) -> None:
    for number in range(30):
        gang(stage, f"gang-{number}")
    machines(stage, free=0)
    first = cron(stage, tmp_path)
    machines(stage, free=0)
    second = cron(stage, tmp_path)
    assert spent(first) >= 30 * 6
    assert spent(second) <= 30 * 2 + 30


def test_gang_that_rested_is_placed_when_there_is_room(stage: Waiting, tmp_path: Path) -> None:
    j = gang(stage)
    for free in (0, 0, None):
        machines(stage, free=free)
        report = cron(stage, tmp_path)
    assert report.passes["place"]["placed"] == 2
    assert {one.attempt.job for one in stage.orders()} == {j}


def test_gang_that_rested_and_was_placed_by_another_is_looked_after(stage: Waiting, tmp_path: Path) -> None:
    """Two machines tick in turns, each with a disk of its own. What one placed and nobody claimed, the other aborts and
    places again, though it had seen the same entries before."""
    gang(stage)
    machines(stage, free=0)
    for disk in ("a", "b"):
        cron(stage, tmp_path / disk)
    machines(stage)
    cron(stage, tmp_path / "a")
    assert len(stage.orders()) == 2
    stage.clock.pass_s(100)
    for _ in range(200):
        machines(stage)
        cron(stage, tmp_path / "b", pass_s=20)
        if any(one.attempt.n == 2 for one in stage.orders()):
            break
    assert {one.attempt.n for one in stage.orders()} == {2}


def test_gang_that_rested_is_cancelled_and_stopped_as_ever(stage: Waiting, tmp_path: Path) -> None:
    whole, one = gang(stage), gang(stage, "other")
    machines(stage, free=0)
    for _ in range(2):
        cron(stage, tmp_path)
    cancel.cancel_job(stage.bucket, whole)
    cancel.stop_task(stage.bucket, one, 1)
    for _ in range(4):
        machines(stage)
        cron(stage, tmp_path)
    assert stage.orders() == [] and stage.keys("queued/") == []
    assert stage.keys(keys.final(whole)) and stage.keys(keys.end(AttemptId(one, 1, 1)))
