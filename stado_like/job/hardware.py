"""What a machine has besides cores and memory: GPUs and network ports, as its broadcast describes them, and what a task
asks of them.

A card is counted in ten-thousandths, so that shares of one add up exactly. A description may lack anything but a GPU's
id: what is not said is not known, and a task that asks for it is not placed on the guess that it is so (a maker that is
not said is the exception: such a GPU counts as NVIDIA).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

CARD: Final = 10_000
"""One whole GPU, and one whole machine, in ten-thousandths."""

GIB: Final = 1 << 30
SLACK_BYTES: Final = GIB // 2
"""An "80 GB" card reports 79.6."""

HEALTHY, AT_RISK, FAULTED = "healthy", "at-risk", "faulted"
HEALTH: Final = (HEALTHY, AT_RISK, FAULTED)
INFINIBAND, ROCE, ETHERNET = "infiniband", "roce", "ethernet"
PORT_KINDS: Final = (INFINIBAND, ROCE, ETHERNET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU. `trouble`: what a faulted one, or one at risk, reported. `free_share`: how much of it nobody holds."""

    id: str
    index: int = 0
    model: str = ""
    vendor: str = ""
    memory_bytes: int = 0
    health: str = HEALTHY
    trouble: str = ""
    nvlink_domain: str = ""
    free_share: int = CARD
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return self.health != FAULTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A network port. `kind`: infiniband, roce or ethernet."""

    kind: str
    gbps: int = 0
    active: bool = True
    name: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuKind:
    """Which GPUs a task takes. Everything empty: any that can be used."""

    models: tuple[str, ...] = ()
    vendor: str = ""
    min_memory_gb: int = 0
    healthy_only: bool = False
    ids: tuple[str, ...] = ()
    share_gb: int = 0
    """Only so much of each one's memory; 0: whole cards."""
    every: bool = False
    """Every GPU of the kind that is free on its machine; how many a task asks for is then the fewest it takes."""
    each_cpu_millis: int = 0
    each_memory_bytes: int = 0
    """With `every`: what each GPU brings with it. The task's own cores and memory are those of the fewest."""

    @property
    def is_any(self) -> bool:
        return self == ANY_GPU

    @property
    def at_least_gb(self) -> int:
        return max(self.min_memory_gb, self.share_gb)

    def is_met_by(self, device: Device) -> bool:
        """Whether the GPU is of this kind, whatever its health and whoever holds it."""
        if self.ids and device.id not in self.ids:
            return False
        if self.vendor and (device.vendor or "nvidia").lower() != self.vendor.lower():
            return False
        if self.models and not any(one.lower() in device.model.lower() for one in self.models):
            return False
        return not self.at_least_gb or device.memory_bytes + SLACK_BYTES >= self.at_least_gb * GIB

    def share_of(self, device: Device) -> int:
        """How much of the GPU the task takes; rounded up, so that nobody is promised what is not there."""
        if not self.share_gb:
            return CARD
        return min(CARD, -(-self.share_gb * GIB * CARD // device.memory_bytes)) if device.memory_bytes else CARD

    def __str__(self) -> str:
        """`nvidia H100 or H200 with at least 80 GB`"""
        words = [self.vendor] if self.vendor else []
        if self.models:
            words.append(" or ".join(self.models))
        if self.at_least_gb:
            words.append(f"with at least {self.at_least_gb} GB")
        return " ".join(words)


ANY_GPU: Final = GpuKind()


@dataclass(frozen=True, slots=True)
class PortAsk:
    """`kind`: `rdma` (InfiniBand or RoCE) or `infiniband`; empty: none is asked for. `gbps`: at least."""

    kind: str = ""
    gbps: int = 0

    def is_kind(self, port: Port) -> bool:
        return port.kind == INFINIBAND or (self.kind == "rdma" and port.kind == ROCE)

    def is_met_by(self, port: Port) -> bool:
        return port.active and self.is_kind(port) and port.gbps >= self.gbps


NO_PORT: Final = PortAsk()
