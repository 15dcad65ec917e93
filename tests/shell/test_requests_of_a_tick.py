"""What a tick asks of a store on which nothing happens: exactly, and whatever lies on the queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.job import codec, keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId
from stado_like.job.states import Cause
from stado_like.job.workspace import Quota, Workspace
from stado_like.store.meter import Requests
from stado_like.store.protocol import list_all
from tests.builders_tick import Stage

QUIET_AFTER = 3


def waiting(jobs: int) -> Stage:
    stage = Stage()
    for number in range(jobs):
        stage.submit(f"job-{number}")
    stage.broadcast("w1")
    return stage


def tick_again(stage: Stage, tick: Tick, every_s: float) -> Requests:
    """One tick more; the machine has spoken meanwhile."""
    stage.clock.pass_s(every_s)
    stage.broadcast("w1")
    before = tick.meter.snapshot()
    assert not tick.step().deferred
    return tick.meter.snapshot() - before


@pytest.mark.parametrize(("queued", "lists", "gets"), [(0, 4, 2), (100, 8, 5), (1_500, 10, 5)])
def test_resident_tick_on_a_quiet_store(queued: int, lists: int, gets: int) -> None:
    """The indexes, and with a queue what is held, workspaces, machines and the pause; the lock is taken and given
    back. A queue of up to a page is one listing, a longer one three: one page of its open part, for that is left to
    workers."""
    stage = waiting(queued)
    tick = Tick(stage.bucket, resident=True)
    for _ in range(QUIET_AFTER):
        spent = tick_again(stage, tick, 5.0)
    assert spent.counts == {"create": 1, "get": gets, "list": lists, "delete": 1}


def test_minute_of_a_resident_on_a_quiet_store() -> None:
    """Twelve ticks; in one of them the sweeps, and three times what ten jobs wait for is noted."""
    stage = waiting(100)
    tick = Tick(stage.bucket, resident=True)
    for _ in range(13):
        tick_again(stage, tick, 5.0)
    before = tick.meter.snapshot()
    for _ in range(12):
        tick_again(stage, tick, 5.0)
    spent = tick.meter.snapshot() - before
    assert spent["list"] == 12 * 8 + 4
    assert spent.total - 12 * 15 <= 5 + 150


# ---- a process for each tick, as cron starts them


def from_cron(stage: Stage, cache: Path | None) -> Requests:
    """A tick of a new process, a minute later; the machines have spoken meanwhile."""
    stage.clock.pass_s(60)
    stage.broadcast("w1")
    tick = Tick(Bucket(stage.store, ambient=stage.clock), cache=cache)
    report = tick.step()
    assert not report.deferred and not report.set_aside
    return tick.meter.snapshot()


def trusted(stage: Stage) -> Stage:
    """As every store is that was written to: it says which one it is."""
    stage.store.put(keys.STORE_VERDICT, b"{}")
    return stage


def under_a_quota(jobs: int) -> Stage:
    """Two of them may run at once: a tick looks at every one of the others."""
    stage = trusted(Stage())
    stage.store.put(keys.workspace("default"), codec.encode(Workspace(name="default", quota=Quota(max_cpus=2))))
    stage.broadcast("w1")
    for number in range(jobs):
        stage.submit(f"job-{number}")
    for row in list(list_all(stage.store, keys.QUEUED_OPEN)):
        place.move(stage.bucket, row.key, keys.QUEUED_HELD)
    return stage


@pytest.mark.parametrize(("queued", "before", "lists"), [(0, 2, 7), (100, 6, 12), (3_000, 2, 16)])
def test_tick_from_cron_on_a_quiet_store(queued: int, before: int, lists: int, tmp_path: Path) -> None:
    """Nothing that stood a minute ago is read again. A page of the jobs is looked through, which costs its listings,
    and of a long queue some jobs are read, once: what kind they are. Why ten jobs wait is noted, or twenty, and looked
    whether they were deleted meanwhile; cursors and report are put."""
    stage = trusted(waiting(queued))
    for _ in range(before):
        from_cron(stage, tmp_path)
    spent = from_cron(stage, tmp_path)
    assert spent["list"] == lists
    notes = 0 if not queued else 10 if queued <= 1_000 else 20
    assert (spent["create"], spent["delete"]) == (1, 1)
    assert spent["put"] <= notes + 2 and spent["head"] <= 3 * notes
    assert spent["get"] <= 10 + 3 * notes + (20 if queued > 1_000 else 0)


def test_held_jobs_are_read_once(tmp_path: Path) -> None:
    """By whichever process ticks first."""
    stage = under_a_quota(300)
    first, second = from_cron(stage, tmp_path), from_cron(stage, tmp_path)
    assert first["get"] >= 300
    assert second["get"] <= 8 + 20 and second["list"] == first["list"] == 12


def test_changes_cost_a_few_requests_each_however_long_the_queue(tmp_path: Path) -> None:
    stage = under_a_quota(2_200)
    for _ in range(3):
        from_cron(stage, tmp_path)
    before = from_cron(stage, tmp_path)
    for number in range(100):
        j = stage.submit(f"new-{number}")
        if number < 50:
            stage.claim(AttemptId(j, 0, 1), "w2")
    after = from_cron(stage, tmp_path)
    assert after["list"] - before["list"] <= 3
    assert after.total - before.total <= 6 * 100


def test_cache_is_worth_its_disk(tmp_path: Path) -> None:
    """Without one each process reads again what its machine's last one read."""
    stage = under_a_quota(300)
    from_cron(stage, None)
    assert from_cron(stage, None)["get"] >= 300


def test_much_that_lies_about_makes_rounds_longer_and_not_ticks_dearer(tmp_path: Path) -> None:
    """Two thousand jobs that ended, of which no tick knows; a page of entries that nobody looked at yet."""
    stage = trusted(Stage())
    for number in range(300):
        a = AttemptId(stage.submit(f"old-{number}"), 0, 1)
        stage.claim(a)
        job, terms = stage.job(a.job)
        ended = end_attempt(stage.bucket, a, terms, Ended(Cause.NONE, ""), Seen(worker="w"))
        settle(stage.bucket, a, ended.end, job=job)
    for number in range(300):
        stage.submit(f"job-{number}")
    stage.clock.pass_s(700)
    spent = [from_cron(stage, tmp_path).total for _ in range(4)]
    assert max(spent) <= 14 + 64 + 10 + 40 + 10 + 100
