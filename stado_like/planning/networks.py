"""Where machines are to each other: the levels that rules speak of, and the networks that tasks on them share.

Racks, fabrics and sites are labels, under our name for them or the one that people bring from elsewhere; NVLink domains
are what the GPUs report. A label that is not set is not known. For a rule (`keep_within`, `spread`) such a machine does
not serve; for the question which network two machines share, those with InfiniBand and no fabric set share one unnamed
fabric, since whoever has a single fabric has no reason to name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from stado_like.job.hardware import INFINIBAND, ROCE
from stado_like.planning.board import Near
from stado_like.planning.fit import Machine

OURS: Final = "topology.stado.io/"
BROUGHT: Final = "topology.astraeus.io/"
SHOWN: Final = {"nvlink_domain": "NVLink domain", "node": "machine"}
"""Levels that sentences call otherwise."""

NODE, NVLINK, IB, ROCE_FABRIC, RACK, SITE, ANYWHERE = range(7)
"""From the tightest network to the loosest; from RACK on it is Ethernet."""

_LEVEL: Final = {NVLINK: "nvlink_domain", RACK: "rack", SITE: "site"}
_ALLOWED: Final = {
    "nvlink": (NODE, NVLINK),
    "infiniband": (NODE, NVLINK, IB),
    "rdma": (NODE, NVLINK, IB, ROCE_FABRIC),
    "auto": (NODE, NVLINK, IB, ROCE_FABRIC, RACK, SITE, ANYWHERE),
}


@dataclass(frozen=True, slots=True, order=True)
class Network:
    """What a unit's tasks share. Compares from the tightest to the loosest."""

    rank: int
    name: str = ""

    def __str__(self) -> str:
        """`InfiniBand fabric ib-0`, `Ethernet`"""
        if self.rank == NODE:
            return f"one machine, {self.name}"
        if self.rank == NVLINK:
            return f"NVLink domain {self.name}"
        if self.rank in (IB, ROCE_FABRIC):
            kind = "InfiniBand" if self.rank == IB else "RoCE"
            return f"{kind} fabric {self.name}" if self.name else kind
        return "Ethernet"

    @property
    def is_as_good_as(self) -> int:
        """Equal for networks of one speed."""
        return min(self.rank, RACK)

    @property
    def level(self) -> tuple[str, str]:
        """How a sentence names it: `("fabric", "ib-0")`."""
        words = {NODE: "machine", NVLINK: "NVLink domain", IB: "fabric", ROCE_FABRIC: "fabric", RACK: "rack"}
        return words.get(self.rank, "site"), self.name or ("InfiniBand" if self.rank == IB else "RoCE")


_OLDER: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "SameRack": ("rack", ""),
        "SameNvlinkDomain": ("nvlink_domain", ""),
        "SpreadRacks": ("", "rack"),
        "SpreadFabrics": ("", "fabric"),
    }
)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def near_of(resources: Mapping[str, Any]) -> Near:
    """The rules of a template's `requested_resources`, older form and newer; where both say something, the newer."""
    topology = (resources.get("topology") or _NOTHING).get
    network = (resources.get("network") or _NOTHING).get
    within, spread = _OLDER.get(resources.get("placement") or "", ("", ""))
    if topology("keep_within") or topology("spread"):
        within, spread = topology("keep_within") or "", topology("spread") or ""
    return Near(
        keep_within=within,
        spread=spread,
        min_nodes=topology("min_nodes") or 0,
        max_nodes=topology("max_nodes") or 0,
        patience_s=topology("patience_seconds") or 0,
        interconnect=network("interconnect") or "auto",
        min_gbps=network("min_gbps") or 0,
    )


def label_of(level: str) -> str:
    """The label that a person is told to set."""
    return BROUGHT + level


def name_at(machine: Machine, level: str) -> str:
    """Which node, NVLink domain, fabric, rack or site the machine is; empty: not known."""
    if level == "node":
        return machine.worker
    if level == "nvlink_domain":
        domains = {one.nvlink_domain for one in machine.gpus if one.usable} if machine.gpus else set()
        return domains.pop() if len(domains) == 1 else ""
    return machine.labels.get(OURS + level) or machine.labels.get(BROUGHT + level) or ""


def allowed(near: Near) -> tuple[int, ...]:
    """The ranks of networks that a unit may run on."""
    wanted = "rdma" if near.interconnect == "auto" and near.min_gbps else near.interconnect
    return _ALLOWED.get(wanted, _ALLOWED["auto"])


def name_on(machine: Machine, rank: int, min_gbps: int = 0) -> str | None:
    """The name of the machine's network of that rank; None: it is on none, or nobody knows on which."""
    if rank == ANYWHERE:
        return ""
    if rank == NODE:
        return machine.worker
    if rank in (IB, ROCE_FABRIC):
        kind = INFINIBAND if rank == IB else ROCE
        for port in machine.ports:
            if port.kind == kind and port.active and port.gbps >= min_gbps:
                return name_at(machine, "fabric")
        return None
    return name_at(machine, _LEVEL[rank]) or None
