"""Stores with machines that have room and jobs that wait for it, for the tests of placement: what a worker says is put
as a worker puts it, and a tick looks at it as a tick does."""

from __future__ import annotations

from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_board import with_queue
from stado_like.bucket.load_world import Memory, load_world
from stado_like.bucket.submit import Submitted, submit
from stado_like.job import codec, keys
from stado_like.job.hardware import Device
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Capacity, Room
from stado_like.job.records import Held as Named
from stado_like.job.spec.validate import validate
from stado_like.planning.plan import Plan, plan
from stado_like.planning.world import World
from tests.builders_tick import Stage

GIB = 1 << 30


def job(name: str, *, cores: float = 1.0, memory_gb: int = 1, gpus: int = 0, **spec: Any) -> dict[str, Any]:
    """A job as it is stored; `task` are fields of its template, `resources` of what it requests."""
    resources = {"cpu_cores": cores, "memory_bytes": memory_gb * GIB, **spec.pop("resources", {})}
    if gpus:
        resources["gpu_requests"] = {"count": gpus, **spec.pop("gpu", {})}
    metadata = {"name": name, **({"workspace": spec.pop("workspace")} if "workspace" in spec else {})}
    template = {"command": "true", "requested_resources": resources, **spec.pop("task", {})}
    return validate({"metadata": metadata, "spec": {"task_template": template, **spec}})


class Waiting(Stage):
    """A store on which work waits."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory()

    def put(self, name: str, **how: Any) -> JobId:
        """A moment after whatever was put before: the queue has an order."""
        self.clock.pass_s(0.01)
        done = submit(self.bucket, job(name, **how))
        assert isinstance(done, Submitted)
        return done.id

    def machine(
        self,
        worker: str,
        *,
        cores: float = 4,
        memory_gb: int = 16,
        gpus: int = 0,
        free: float | None = None,
        held: tuple[tuple[AttemptId, str], ...] = (),
        echoes: str = "",
        labels: dict[str, str] | None = None,
        saved_at: float = 0.0,
    ) -> None:
        """A broadcast that is young. `free`: cores, where tasks hold the others."""
        now, millis = self.bucket.now(), int(cores * 1000)
        said = Capacity(
            nonce=self.bucket.token(),
            worker=worker,
            at=now,
            next_by=now + 25,
            total=Room(cpu_millis=millis, memory_bytes=memory_gb * GIB, gpus=gpus),
            free=Room(cpu_millis=millis if free is None else int(free * 1000), memory_bytes=memory_gb * GIB, gpus=gpus),
            gpus=tuple(Device(id=f"{worker}-{i}", index=i) for i in range(gpus)),
            held=tuple(Named(attempt=str(a), nonce=nonce, alive=True, saved_at=saved_at) for a, nonce in held),
            labels=labels or {},
            holds_nonce=echoes,
        )
        self.store.put(keys.capacity(worker), codec.encode(said))

    def look(self, bucket: Bucket | None = None) -> tuple[World, Plan]:
        bucket = bucket or self.bucket
        world = with_queue(bucket, self.memory, load_world(bucket, self.memory))
        return world, plan(world)

    def actions(self, kind: type[Any]) -> list[Any]:
        """What the next tick would do of a kind."""
        return [one for one in self.look()[1].actions if isinstance(one, kind)]

    def orders(self) -> list[keys.Order]:
        return [one for one in map(keys.parse_order, self.keys(keys.INBOX)) if one.kind == "place"]
