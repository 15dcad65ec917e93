"""What a worker with nothing to do asks of its store: exactly, by the shipped agent under a stepped clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore, Requests
from stado_worker.agent import Agent, AgentOptions
from stado_worker.machine.described import NO_HARDWARE
from stado_worker.machine.identity import WorkerHome
from stado_worker.machine.room import LiveRoom, Total
from stado_worker.offer import Offer
from stado_worker.shim.attempt_dir import AttemptDir
from tests.builders_jobs import Clock, submit

MINUTE_S = 60.0
REACTION_S = 1.0


class NoLauncher:
    """Nothing is launched here: there is no work."""

    def launch(self, folder: AttemptDir) -> None:
        raise AssertionError(folder)

    def adopt(self, folder: AttemptDir) -> None:
        raise AssertionError(folder)

    def forget(self, folder: AttemptDir) -> None:
        raise AssertionError(folder)

    def nudge(self, folder: AttemptDir) -> None:
        raise AssertionError(folder)

    def remove_remains(self, folder: AttemptDir) -> tuple[int, ...]:
        raise AssertionError(folder)


class Idle:
    """One agent on an empty store, at the pace of a far one."""

    def __init__(self, place: Path) -> None:
        self.clock, self.meter = Clock(), Meter()
        self.store = MemoryStore(f"idle-{REAL.token()}", self.clock)
        bucket = Bucket(MeteredStore(self.store, self.meter), ambient=self.clock)
        home = WorkerHome(place, "w1")
        room = LiveRoom(Total(4000, 8 << 30), self.clock.boot_s(), cpus_given=True, memory_given=True)
        offer = Offer(
            worker="w1",
            host="here",
            room=room,
            ambient=self.clock,
            scratch=place,
            machine_id="m1",
            nonce="n1",
            hardware=NO_HARDWARE,
        )
        options = AgentOptions(worker="w1", home=home, store_url="memory://idle", poll_s=REACTION_S)
        self.agent = Agent(bucket, options, NoLauncher(), offer, ambient=self.clock)
        self.longest_s = 0.0

    def idle(self, minutes: float) -> Requests:
        before, until_s = self.meter.snapshot(), self.clock.now_s + minutes * MINUTE_S
        while self.clock.now_s < until_s:
            wait_s = self.agent.step()
            self.longest_s = max(self.longest_s, wait_s)
            self.clock.now_s += max(wait_s, 0.001)
        return self.meter.snapshot() - before


@pytest.fixture
def worker(tmp_path: Path) -> Idle:
    found = Idle(tmp_path)
    found.idle(3)
    return found


def test_idle_minute(worker: Idle) -> None:
    """A look at the bell a second, three broadcasts; a sweep: two indexes of the queue and the inbox are listed, the
    wishes, the pause and the graces read. It looks at the bell every second whatever else it does."""
    spent = worker.idle(10)
    assert spent.counts == {"get": 10 * (60 + 3), "put": 10 * 3, "list": 10 * 3}
    assert spent.total / 10 <= 70
    assert worker.longest_s <= REACTION_S


@pytest.mark.parametrize("queued", [5, 1_200])
def test_idle_minute_beside_work_that_does_not_fit(worker: Idle, queued: int) -> None:
    """As much; of a longer queue every further page once in ten minutes."""
    bucket = Bucket(worker.store, ambient=worker.clock)
    large = {"requested_resources": {"cpu_cores": 64, "memory_bytes": 1 << 30}}
    for number in range(queued):
        submit(bucket, f"large-{number}", template=large)
    worker.idle(3)
    spent = worker.idle(10)
    assert spent.counts == {
        "get": 10 * 3,
        "not_modified": 10 * 60,
        "put": 10 * 3,
        "list": 10 * 3 + 10 * (queued > 1_000),
    }
    assert spent.total / 10 <= 70


def test_idle_day_costs_eight_cents_at_most(worker: Idle) -> None:
    two_hours = worker.idle(120)
    assert 0.07 < two_hours.dollars * 12 <= 0.08, two_hours
