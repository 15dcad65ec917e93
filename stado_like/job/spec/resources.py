"""`task_template.requested_resources`: what one task needs of a machine.

CPU and memory are one statement: with neither, a task asks for one core and 1 GiB; one without the other is refused,
because a default for the missing half would silently fill or starve a machine.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Cores, Whole
from stado_like.job.spec.metadata import PART


class GpuRequests(BaseModel):
    """How many GPUs."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset(
        {"models", "min_memory_gb", "vendor", "healthy_only", "min_per_machine", "policy", "ids", "memory_gb"}
    )

    count: Annotated[int, Whole(limits.GPUS, "GPUs")] = Field(
        default=0, description="Integer, default 0. GPUs for the whole run; in an array, per copy."
    )


class RequestedResources(BaseModel):
    """CPU, memory and GPUs of one task."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset(
        {
            "per_gpu",
            "node_fraction",
            "cpu_burst",
            "machines",
            "topology",
            "network",
            "node_selection",
            "placement",
        }
    )

    cpu_cores: Annotated[float, Cores()] = Field(
        default=limits.DEFAULT_CORES,
        description="Number, default 1. Cores per task, in thousandths. Must be > 0, and given together with "
        "memory_bytes or not at all.",
    )
    memory_bytes: Annotated[int, Whole(limits.MEMORY_BYTES, "bytes")] = Field(
        default=limits.DEFAULT_MEMORY_BYTES,
        description="Integer, bytes, default 1 GiB. Memory per task. Must be > 0, and given together with cpu_cores "
        "or not at all.",
    )
    gpu_requests: GpuRequests = Field(default_factory=GpuRequests, description="How many GPUs. Default: none.")
