"""`topology` and `network`: where tasks land relative to each other, and over which links they speak.

These are rules, never broken: when one cannot be met the run waits and says why. Racks and fabrics are labels of the
machines (`topology.astraeus.io/rack`, `topology.astraeus.io/fabric`), NVLink domains are what the GPUs report.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Whole
from stado_like.job.spec.metadata import PART


class Topology(BaseModel):
    """Rules on where tasks land relative to each other."""

    model_config = PART

    keep_within: Annotated[str, OneOf(limits.KEEP_WITHIN)] | None = Field(
        default=None,
        description="The whole run inside one machine, NVLink domain, InfiniBand fabric or rack.",
    )
    spread: Annotated[str, OneOf(limits.SPREAD)] | None = Field(
        default=None, description="One task per machine, rack or fabric."
    )
    max_nodes: Annotated[int, Whole(limits.MACHINES, "machines")] = Field(
        default=0, description="At most this many machines; 0 is no limit."
    )
    min_nodes: Annotated[int, Whole(limits.MACHINES, "machines")] = Field(
        default=0,
        description="At least this many machines, one task on each; with max_nodes, a range to pick within.",
    )
    patience_seconds: Annotated[int, Whole(limits.PATIENCE_S, "seconds")] = Field(
        default=0,
        description="A gang that could start now on a looser network waits up to this long for a tighter one.",
    )


class Links(BaseModel):
    """The slowest link allowed between tasks."""

    model_config = PART

    interconnect: Annotated[str, OneOf(limits.INTERCONNECTS)] = Field(
        default="auto",
        description="auto: the best there is room on, Ethernet last. rdma: InfiniBand or RoCE, never plain Ethernet; "
        "each task gets the machine's RDMA devices. infiniband: InfiniBand, not RoCE. nvlink: one machine or one "
        "NVLink domain; needs GPUs.",
    )
    min_gbps: Annotated[int, Whole(limits.GBPS, "Gb/s")] = Field(
        default=0,
        description="RDMA ports at least this fast, in Gb/s. More than 0 implies RDMA.",
    )
