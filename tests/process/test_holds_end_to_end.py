"""Holds, quotas and orders with real workers: the head of the queue starts before what came after it and would have
fitted; a workspace's quota is kept; a task that only a placement may start is claimed through its order."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import holding
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.workspaces import Workspaces
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity
from stado_like.job.states import Outcome
from stado_like.job.workspace import Edit
from stado_like.store.protocol import list_all
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "2", "--memory", "4GiB")
WAITS = "while [ ! -e {gate} ]; do sleep 0.05; done"


def waits(rig: Rig) -> str:
    return WAITS.format(gate=rig.folder / "gate")


def tick(rig: Rig) -> None:
    Tick(Bucket(rig.bucket.store)).step()


def spoke(rig: Rig, worker: str) -> Capacity | None:
    found = rig.bucket.read(Capacity, keys.capacity(worker))
    return found.record if found is not None else None


def test_the_head_starts_before_what_came_after_it_and_would_have_fitted(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    first = rig.submit("first", waits(rig), cores=1)
    rig.running(first)
    head = rig.submit("head", "true", cores=2)
    tick(rig)
    nonce = holding.read(rig.bucket).nonce
    assert nonce

    def echoed() -> bool:
        said = spoke(rig, "w1")
        return said is not None and said.holds_nonce == nonce

    until(echoed, 10, "the worker says that it obeys the hold")
    small = rig.submit("small", "true", cores=1)
    tick(rig)
    (rig.folder / "gate").touch()
    ends = [rig.end(j, within_s=30) for j in (first, head)]
    tick(rig)
    ends.append(rig.end(small, within_s=30))
    assert [one.outcome for one in ends] == [Outcome.COMPLETED] * 3
    assert ends[1].claimed_at <= ends[2].claimed_at, "the small one was held back until the head had its room"
    assert ends[2].claimed_at >= ends[0].ended_at - 1


def test_a_quota_is_kept_by_ticks_and_its_work_runs_one_after_the_other(rig: Rig) -> None:
    Workspaces(rig.bucket, lambda: None, lambda: "ada").edit("default", Edit(quota={"max_cpus": 1}))
    rig.worker("w1", *ROOM)
    jobs = [rig.submit(name, waits(rig), cores=1) for name in ("one", "two")]

    def begun() -> list[AttemptId]:
        tick(rig)
        return [a for a in (AttemptId(j, 0, 1) for j in jobs) if rig.bucket.heartbeat(a) is not None]

    until(begun, 20, "one of them runs")
    for _ in range(3):
        tick(rig)
    claims = [row.key for row in list_all(rig.bucket.store, keys.RUNNING)]
    assert len(claims) == 1, "the quota has room for one"
    (rig.folder / "gate").touch()

    def over() -> bool:
        tick(rig)
        return all(rig.bucket.end(AttemptId(j, 0, 1)) is not None for j in jobs)

    until(over, 30, "both have run")
    for j in jobs:
        rig.settled(j)
    assert [row.key for prefix in (keys.QUEUED, keys.INBOX) for row in list_all(rig.bucket.store, prefix)] == []
