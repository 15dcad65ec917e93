"""The barrier as one member's supervisor meets it, and what its command is told."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.bucket import gang, generations
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Open
from stado_like.job import gang_keys
from stado_like.job.gang_records import Ready
from stado_like.job.keys import JobId
from stado_like.job.states import Cause
from stado_like.store.meter import Meter
from stado_worker.shim.barrier import GangBarrier
from stado_worker.shim.gang_told import told_gang
from stado_worker.shim.life import Life
from stado_worker.shim.task import Read, Task, read_of, told
from tests.builders_gangs import make_ready, place, submit_gang, take_ordered, terms_of
from tests.builders_jobs import Clock, make_bucket


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def bucket(clock: Clock, meter: Meter) -> Bucket:
    return make_bucket(clock, meter)


class Member:
    """A supervisor's part in it, with a port of its own."""

    def __init__(self, bucket: Bucket, rank: int, worker: str = "") -> None:
        a, claim, opened = take_ordered(bucket, worker or f"w{rank}")
        assert isinstance(opened, Open) and opened.placed is not None
        task = Task(
            attempt=str(a),
            store="",
            worker=claim.worker,
            claim=claim,
            job=opened.job,
            address=f"10.0.0.{rank}",
            placement=opened.placed.placement,
            barrier=opened.placed.barrier,
        )
        self.read: Read = read_of(task)
        self.life = Life(bucket.ambient, bucket.now(), bucket.ambient.boot_s())
        self.barrier = GangBarrier(self.read, self.life, bucket, bucket.ambient, lambda: 5000 + rank)

    def arrives(self) -> None:
        self.barrier.reached()
        self.barrier.step()

    @property
    def stopped(self) -> tuple[Cause, str] | None:
        stop = self.life.stop
        return (stop.cause, stop.reason) if stop is not None else None

    @property
    def told(self) -> dict[str, str]:
        return {**told(self.read, "stop", "folder"), **self.barrier.variables()}


def gather(bucket: Bucket, tasks: int = 2, **spec: Any) -> tuple[JobId, list[Member]]:
    j = submit_gang(bucket, tasks, **spec)
    place(bucket, j)
    return j, [Member(bucket, rank) for rank in range(tasks)]


def test_nobody_passes_before_the_last_arrives_and_then_all_do(bucket: Bucket, clock: Clock) -> None:
    _, members = gather(bucket, 3)
    for one in members[:2]:
        one.arrives()
    clock.now_s += 5
    assert [one.barrier.step() > clock.boot_s() for one in members[:2]] == [True, True]
    assert [one.barrier.opened for one in members] == [None, None, None]
    members[2].arrives()
    clock.now_s += 2
    for one in members:
        one.barrier.step()
    opened = [one.barrier.opened for one in members]
    assert all(one is not None and one == opened[0] for one in opened)


def test_members_are_told_where_the_leader_waits(bucket: Bucket, clock: Clock) -> None:
    j, members = gather(bucket)
    for one in members:
        one.arrives()
    clock.now_s += 2
    members[0].barrier.step()
    for one in members:
        assert (one.told["MASTER_ADDR"], one.told["MASTER_PORT"]) == ("10.0.0.0", "5000")
    for one, port in ((members[0], 5000), (members[1], 0)):
        ready = bucket.read(Ready, gang_keys.ready(one.read.a, 1))
        assert ready is not None and ready.record.port == port
    assert members[1].told["RANK"] == "1" and members[1].told["WORLD_SIZE"] == "2"
    assert generations.read_barrier(bucket, j, 1) == members[0].barrier.opened


def test_waiting_member_asks_once_a_second_and_looks_around_every_ten(
    bucket: Bucket, clock: Clock, meter: Meter
) -> None:
    _, (first, _) = gather(bucket)
    first.arrives()
    before = meter.snapshot().total
    for _ in range(100):
        clock.now_s += 0.1
        first.barrier.step()
    assert meter.snapshot().total - before <= 10 + 5


def test_member_that_is_nudged_asks_at_once(bucket: Bucket) -> None:
    j, (first, _) = gather(bucket)
    first.arrives()
    generations.close(bucket, j, 1, "why", by="tick")
    first.barrier.step()
    first.barrier.hurry()
    assert first.life.stop is None
    first.barrier.step()
    assert first.stopped == (Cause.BARRIER, "why")


def test_fifteen_minutes_at_the_barrier_close_it(bucket: Bucket, clock: Clock) -> None:
    j, (first, _) = gather(bucket)
    first.arrives()
    clock.now_s += gang.BARRIER_WITHIN_S + 2
    first.barrier.step()
    assert first.stopped == (Cause.BARRIER, "Gang barrier timed out waiting for all members")
    verdict = generations.read_barrier(bucket, j, 1)
    assert verdict is not None and not verdict.go


def test_member_whose_heartbeat_is_late_is_waited_for(bucket: Bucket, clock: Clock) -> None:
    _, (first, second) = gather(bucket)
    make_ready(bucket, second.read.a, 1)
    clock.now_s += 3600
    first.arrives()
    assert first.barrier.opened is None
    make_ready(bucket, second.read.a, 1)
    clock.now_s += 15
    first.barrier.step()
    assert first.barrier.opened is not None


def test_machine_of_two_members_tells_each_its_place(bucket: Bucket) -> None:
    j = submit_gang(bucket, 3)
    wanted = gang.waits(bucket, j, terms_of(bucket, j))
    assert wanted is not None
    gang.place(bucket, j, 1, dict(zip(wanted.members, ("a", "b", "a"), strict=True)))
    placement = generations.read_placement(bucket, j, 1)
    said = [told_gang(terms_of(bucket, j), rank, placement, None) for rank in range(3)]
    assert [(one["NODE_RANK"], one["LOCAL_RANK"], one["LOCAL_WORLD_SIZE"]) for one in said] == [
        ("0", "0", "2"),
        ("1", "0", "1"),
        ("0", "1", "2"),
    ]
    assert [one["GROUP_RANK"] for one in said] == ["0", "1", "2"]
