"""`gpu_requests`: how many GPUs, and which.

`count` is the whole run's, which the scheduler splits over its tasks; in an array it is one copy's. Exact ids say the
count by themselves, so it is filled in from them when the document is stored: what reads it later needs one number.
With `policy: All` it is no number but a bound: a task takes what is free where it lands, and the run starts only where
that is `count` in all.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Flag, OneOf, Text, Whole
from stado_like.job.spec.metadata import PART


def _control_in(value: str) -> str:
    return "" if value.isprintable() and value.strip() else "Must be printable, and not only white space"


_Word = Annotated[str, Text(max_bytes=255, also=_control_in)]


class GpuRequests(BaseModel):
    """How many GPUs, and which."""

    model_config = PART

    count: Annotated[int, Whole(limits.GPUS, "GPUs")] = Field(
        default=0,
        description="GPUs for the whole run, which the scheduler splits over its tasks; in an array, per copy. With "
        "policy All: at least so many, in even parts; 0 is one per task.",
    )
    models: list[_Word] = Field(
        default_factory=list,
        max_length=limits.GPU_MODELS_MAX,
        description="Only GPUs whose model name contains one of these, ignoring case; none named is any.",
    )
    min_memory_gb: Annotated[int, Whole(limits.GPU_MEMORY_GB, "GB")] | None = Field(
        default=None,
        description="Only GPUs with at least this much memory, with 0.5 GB of slack: an 80 GB card reports 79.6.",
    )
    vendor: Annotated[str, OneOf(limits.GPU_VENDORS)] | None = Field(
        default=None,
        description="Only GPUs of this maker; one that reports none counts as nvidia.",
    )
    healthy_only: Annotated[bool, Flag()] = Field(
        default=False,
        description="Never a GPU at risk (growing memory errors, PCIe replays, NVLink errors, thermal throttling). "
        "Without it such GPUs are used only when no healthy one is free.",
    )
    min_per_machine: Annotated[int, Whole(limits.GPUS, "GPUs")] = Field(
        default=0,
        description="When the scheduler picks the shape: never fewer than this many GPUs on one machine.",
    )
    policy: Annotated[str, OneOf(limits.GPU_POLICIES)] = Field(
        default="BestEffort",
        description="BestEffort: count GPUs, split as the scheduler or machines decides. PerNode: a power of two per "
        "task, one task per machine. All: every free GPU of each machine it lands on, one task per machine: as many as "
        "per_gpu cores and memory are free for. machines, node_selection or topology say how many; else it is the "
        "fewest on which count GPUs are free.",
    )
    ids: list[_Word] = Field(
        default_factory=list,
        max_length=limits.GPU_IDS_MAX,
        description="Pin exact GPUs by id, all of which must be free. count is then their number.",
    )
    memory_gb: Annotated[int, Whole(limits.GPU_MEMORY_GB, "GB")] | None = Field(
        default=None,
        description="A share of a card: this much of each GPU's memory, in GB. The rest of it may go to others.",
    )

    @model_serializer(mode="wrap")
    def _counted(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        stored: dict[str, Any] = plain(self)
        stored["count"] = self.count or len(self.ids)
        return stored
