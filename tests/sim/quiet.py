"""A quiet cluster: whole machines and a tick, no faults, and jobs that the test submits itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from stado_like.bucket import submit
from stado_like.bucket.bucket import Bucket
from stado_like.job.keys import AttemptId, JobId
from tests.sim.fleet import Fleet
from tests.sim.plan import Plan
from tests.sim.play import document
from tests.sim.world import EPOCH_S


@contextmanager
def cluster(
    hosts: int = 1, cores: int = 2, *, tick_every_s: float = 5.0, gpus: int = 0, apart_s: float = 0.0
) -> Iterator[Fleet]:
    """`apart_s`: the machines come up at any time within so long."""
    plan = replace(
        Plan.of(1), hosts=hosts, cores=cores, users=1, jobs=0, ticks=1, tick_every_s=tick_every_s, disasters=(),
        rates={}, operated=False, placed=False, gpus=gpus,
    )  # fmt: skip
    fleet = Fleet(1, plan)
    try:
        for host in fleet.hosts:
            fleet.world.at(fleet.world.now_s + fleet.world.random.uniform(0.0, apart_s), host.start_agent)
        for tick in fleet.ticks:
            fleet._start_tick(tick)
        yield fleet
        fleet.judge.verify()
    finally:
        fleet.close()


def ada(fleet: Fleet) -> Bucket:
    """A person's bucket, each time in a process of its own; without an actor it just moves the clock."""
    return fleet._bucket("p-ada", fleet.ticks[0].clocks, fleet.judge.seen.tick)


def give(
    fleet: Fleet, name: str, runs_s: float, *, cores: int = 1, tasks: int = 1, words: tuple[str, ...] = (), **more: Any
) -> JobId:
    """Submit a job of tasks that run so long. `more`: `workspace`, `template` (fields of the task), and fields of the
    job."""
    doc = document(name)
    doc["metadata"]["workspace"] = more.pop("workspace", "default")
    template = {"command": "sim", "args": [str(runs_s), *words], "heartbeat_ttl_seconds": 10, "stop_grace_seconds": 5}
    resources: dict[str, Any] = {"cpu_cores": cores}
    if tasks > 1:
        resources["node_selection"] = {"mode": "Any", "count": tasks}
    resources |= more.pop("resources", {})
    doc["spec"]["task_template"] = {**template, "requested_resources": resources, **more.pop("template", {})}
    doc["spec"] |= more
    done = submit.submit(ada(fleet), doc, request_id=name)
    assert isinstance(done, submit.Submitted)
    fleet.judge.seen.acknowledge(done.id)
    return done.id


def go(fleet: Fleet, seconds: float) -> None:
    fleet._go(fleet.world.now_s + seconds)


def first(j: JobId, rank: int = 0, n: int = 1) -> AttemptId:
    return AttemptId(j, rank, n)


def started_at(fleet: Fleet, j: JobId, rank: int = 0, n: int = 1) -> float | None:
    """Seconds since the world began; None: it did not."""
    starts = fleet.judge.seen.starts.get(first(j, rank, n))
    return starts[-1].at_s - EPOCH_S if starts else None


def has_ended(fleet: Fleet, j: JobId, rank: int = 0, n: int = 1) -> bool:
    return first(j, rank, n) in fleet.judge.seen.ends
