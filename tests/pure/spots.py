"""Machines and units in one line each, for the tests of placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stado_like.job.hardware import Device, Port
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Member, Near, Running, Spot, Unit
from stado_like.planning.fit import Machine, whole_cards

GIB = 1 << 30
J = JobId("default", "train", 1)
IB = (Port(kind="infiniband", gbps=400),)
ROCE = (Port(kind="roce", gbps=200),)
SMALL = Ask(1000, GIB, 0)
EIGHT = Ask(8000, 64 * GIB, 8, apart="default.train/")


def cards(count: int, **each: Any) -> tuple[Device, ...]:
    return tuple(Device(**{"id": f"g{index}", "index": index, **each}) for index in range(count))


def machine(name: str = "w1", gpus: int = 8, **more: Any) -> Machine:
    """64 cores, 512 GiB. `rack`, `fabric`, `site` are its labels; `devices` describes its GPUs."""
    if "devices" in more:
        more["gpus"] = more.pop("devices")
        gpus = whole_cards(more["gpus"])
    places = {level: more.pop(level) for level in ("rack", "fabric", "site") if level in more}
    labels = {**{f"topology.stado.io/{level}": value for level, value in places.items()}, **more.pop("labels", {})}
    made = Machine(name, f"{name}.lan", 64_000, 512 * GIB, gpus, 0, labels=labels)
    return replace(made, **{"total_cpu_millis": 64_000, "total_memory_bytes": 512 * GIB, "total_gpus": gpus, **more})


def spot(name: str = "w1", gpus: int = 8, *, running: Sequence[Running] = (), **more: Any) -> Spot:
    return Spot(machine(name, gpus, **more), running=tuple(running))


def attempt(rank: int, job: JobId = J) -> AttemptId:
    return AttemptId(job, rank, 1)


def unit(count: int = 1, ask: Ask = SMALL, near: Near | None = None, **more: Any) -> Unit:
    """`count` members with the same ask; `asks` gives each its own. More words are the unit's, or else its `near`'s."""
    asks = more.pop("asks", [ask] * count)
    rules = {name: more.pop(name) for name in list(more) if name in Near.__slots__}
    members = tuple(Member(attempt(rank), one) for rank, one in enumerate(asks))
    return Unit(J, members, 0, 1, near=near or Near(**rules), **more)


def here(rank: int, ask: Ask = SMALL, job: JobId = J) -> Running:
    """A task that runs on the spot."""
    return Running(attempt(rank, job), ask, 0, running_at=1.0)
