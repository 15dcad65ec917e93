"""`task_template.requested_resources`: what one task needs of a machine, and where the tasks may go.

CPU and memory are one statement in one of three forms: per task, per GPU, or as a share of a machine. With none of them
a task asks for one core and 1 GiB; half of one is refused, because a default for the missing half would silently fill
or starve a machine. The stored form has the one that holds and not the others.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Cores, Flag, Number, OneOf, Whole, later
from stado_like.job.spec.gpus import GpuRequests
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.node_selection import NodeSelection
from stado_like.job.spec.topology import Links, Topology


class PerGpu(BaseModel):
    """Cores and memory for each GPU that a task gets."""

    model_config = PART

    cpu_cores: Annotated[float, Cores()] = Field(description="Cores for each GPU; more than 0.")
    memory_bytes: Annotated[int, Whole(limits.MEMORY_BYTES, "bytes")] = Field(
        description="Memory for each GPU; more than 0."
    )


class RequestedResources(BaseModel):
    """CPU, memory and GPUs of one task, and where the tasks may go."""

    model_config = PART

    cpu_cores: Annotated[float, Cores()] = Field(
        default=limits.DEFAULT_CORES,
        description="Cores per task. More than 0, and given together with memory_bytes or not at all. A hard quota "
        "unless cpu_burst is set.",
    )
    memory_bytes: Annotated[int, Whole(limits.MEMORY_BYTES, "bytes")] = Field(
        default=limits.DEFAULT_MEMORY_BYTES,
        description="Memory per task. More than 0, and given together with cpu_cores or not at all. A hard limit: past "
        "it the task is killed.",
    )
    per_gpu: PerGpu | None = Field(
        default=None,
        description="Cores and memory for each GPU a task gets: a task of 8 GPUs gets 8 times as much. Needs GPUs; "
        "excludes the other two forms.",
    )
    node_fraction: Annotated[float, Number((0, 1))] = Field(
        default=0,
        description="A share of one machine's cores and memory, above 0 and up to 1, reserved by placement; the task "
        "itself gets no limit. 0 is not given; excludes the other two forms.",
    )
    cpu_burst: Annotated[bool, Flag()] = Field(
        default=False,
        json_schema_extra=later(),
        description="The cores become a weight instead of a ceiling: the task may use idle cores. Needs cpu_cores or "
        "per_gpu. Memory stays a hard limit.",
    )
    gpu_requests: GpuRequests = Field(default_factory=GpuRequests, description="How many GPUs, and which.")
    machines: Annotated[int, Whole(limits.MACHINES, "machines")] = Field(
        default=0,
        description="Run on exactly this many machines, one task on each, with the GPUs split evenly; 0: the "
        "scheduler decides.",
    )
    topology: Topology | None = Field(default=None, description="Rules on where tasks land relative to each other.")
    network: Links | None = Field(default=None, description="The slowest link allowed between tasks.")
    node_selection: NodeSelection | None = Field(
        default=None, description="Which machines, by name or label, and how many tasks."
    )
    placement: Annotated[str, OneOf(limits.PLACEMENTS)] = Field(
        default="Any",
        description="The older form of topology. SameRack is keep_within: rack, SameNvlinkDomain is keep_within: "
        "nvlink_domain, SpreadRacks and SpreadFabrics are spread: rack and spread: fabric; TightestNetwork and Any add "
        "nothing. Where both say something, topology wins.",
    )

    @model_serializer(mode="wrap")
    def _in_one_form(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        stored: dict[str, Any] = plain(self)
        if self.per_gpu is not None or self.node_fraction:
            del stored["cpu_cores"], stored["memory_bytes"]
        return stored
