"""What a tick asks of a store on which nothing happens: exactly, and whatever lies on the queue."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.store.meter import Requests
from tests.builders_tick import Stage

QUIET_AFTER = 3
SWEPT_A_TICK = 50
"""Jobs, and entries that have lain long, that the slow sweeps look at: by a resident tick once a minute."""


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
    assert spent["list"] == 12 * 8 + 3
    assert spent.total - 12 * 15 <= 3 + 8 * SWEPT_A_TICK + 100


@pytest.mark.parametrize("queued", [100, 1_500])
def test_tick_from_cron_pays_for_its_sweeps_and_no_more_for_a_longer_queue(queued: int) -> None:
    stage = waiting(queued)
    for _ in range(2):
        tick = Tick(stage.bucket)
        spent = tick_again(stage, tick, 700.0)
    pages = 1 + queued // 1_000
    for_day_files = 1 + 2 * pages
    assert spent["list"] <= 15 + for_day_files
    assert spent["get"] + spent["head"] <= (7 + 4) * SWEPT_A_TICK + 50
    assert spent["create"] + spent["put"] + spent["replace"] <= 15
