"""What a template demands of its machine beyond room, and what of it only a placement can decide.

Three lists keep the promise that nothing runs as something else than was asked. An *ability* is asked of one machine
(containers, drives): a worker that does not announce it is passed over, with the sentence that stands beside it here.
Hardware (a kind of GPU, a port, a share of a machine) is compared with what the machine says it has. What concerns
several tasks at once (a gang, a rack for all of them) no worker can judge by itself: such tasks wait in `queued/held`
for a placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.hardware import CARD, NO_PORT, GpuKind, PortAsk
from stado_like.job.shape import Shape

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

CONTAINER, SANDBOX, EGRESS, DRIVES = "container", "sandbox", "egress", "drives"
VOLUMES, USER, SECURITY = "volumes", "user", "security"


def needs_of(template: Mapping[str, Any]) -> dict[str, str]:
    """Abilities that a machine must have, each with what a machine without it says."""
    found: dict[str, str] = {}
    image = template.get("image")
    if image:
        found[CONTAINER] = says.no_containers(image)
    if template.get("isolation", "standard") == "sandbox":
        found[SANDBOX] = says.no_sandbox("no gVisor")
    if _restricts(template.get("network") or _NOTHING):
        found[EGRESS] = says.no_egress("no container runtime on the node network")
    if template.get("datavolume_refs"):
        found[DRIVES] = says.no_drive(template["datavolume_refs"][0]["name"])
    if not image:
        found |= _of_processes(template)
    return found


def _of_processes(template: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    if template.get("volumes"):
        found[VOLUMES] = says.NO_VOLUMES
    if template.get("user"):
        found[USER] = says.no_other_user(template["user"])
    security = template.get("security_context") or _NOTHING
    if any(value for name, value in security.items() if value not in ("private",)):
        found[SECURITY] = says.NO_SECURITY_CONTEXT
    return found


def gpu_kind_of(resources: Mapping[str, Any]) -> GpuKind:
    """Which GPUs the tasks of a template take."""
    gpus = (resources.get("gpu_requests") or _NOTHING).get
    every = gpus("policy", "BestEffort") == "All"
    each = (resources.get("per_gpu") or _NOTHING) if every else _NOTHING
    return GpuKind(
        models=tuple(gpus("models") or ()),
        vendor=gpus("vendor") or "",
        min_memory_gb=gpus("min_memory_gb") or 0,
        healthy_only=gpus("healthy_only", False),
        ids=tuple(gpus("ids") or ()),
        share_gb=gpus("memory_gb") or 0,
        every=every,
        each_cpu_millis=round(each.get("cpu_cores", 0) * 1000),
        each_memory_bytes=each.get("memory_bytes", 0),
    )


def ports_of(resources: Mapping[str, Any]) -> PortAsk:
    """Which ports each machine must have. A speed alone asks for RDMA."""
    network = resources.get("network") or _NOTHING
    wanted, gbps = network.get("interconnect", "auto"), network.get("min_gbps", 0)
    if wanted in ("rdma", "infiniband"):
        return PortAsk(wanted, gbps)
    return PortAsk("rdma", gbps) if gbps else NO_PORT


def node_share_of(resources: Mapping[str, Any]) -> int:
    """`node_fraction` in ten-thousandths of a machine; a share that is smaller than one of them is one."""
    fraction = resources.get("node_fraction") or 0
    return max(1, round(fraction * CARD)) if fraction else 0


def to_split(resources: Mapping[str, Any]) -> dict[str, int]:
    """A total that the scheduler splits into tasks, as a unit carries it: whole numbers under the names of the
    specification. `per_node`: a power of two on each; `every`: every free GPU of each, `gpus` of them at least;
    `every_machine`: one task on every machine that can take one. `per_gpu_*`: what each GPU brings with it."""
    gpus = (resources.get("gpu_requests") or _NOTHING).get
    topology = (resources.get("topology") or _NOTHING).get
    chosen = resources.get("node_selection") or _NOTHING
    per_gpu = resources.get("per_gpu") or _NOTHING
    said = {
        "gpus": gpus("count", 0),
        "min_nodes": topology("min_nodes") or 0,
        "max_nodes": topology("max_nodes") or 0,
        "min_per_machine": gpus("min_per_machine") or 0,
        "per_node": int(gpus("policy") == "PerNode"),
        "every": int(gpus("policy") == "All"),
        "every_machine": int(chosen.get("mode") == "All"),
        "machines": resources.get("machines") or chosen.get("count") or 0,
        "per_gpu_cpu_millis": round(per_gpu.get("cpu_cores", 0) * 1000),
        "per_gpu_memory_bytes": per_gpu.get("memory_bytes", 0),
    }
    return {name: value for name, value in said.items() if value}


def _restricts(network: Mapping[str, Any]) -> bool:
    egress = network.get("egress") or _NOTHING
    return bool(egress.get("default", "allow") == "deny" or egress.get("cluster", "all") != "all")


def why_held(spec: Mapping[str, Any], resources: Mapping[str, Any], shape: Shape, tasks: int) -> str:
    """Why only a placement may start a template's tasks, as its waiting tasks say it; empty: any worker they fit."""
    if shape.trouble:
        return reasons.cannot_plan(shape.trouble)
    if not shape.decided:
        return reasons.WAITING_TO_BE_CREATED
    together = spec.get("start", "Independent") != "Independent"
    whole = spec.get("on_failure", "RestartTask") == "RestartJob" and tasks > 1
    topology = resources.get("topology") or _NOTHING
    near = topology.get("keep_within", "node") != "node" or topology.get("spread", "node") != "node"
    older = resources.get("placement", "Any") not in ("Any", "TightestNetwork")
    linked = (resources.get("network") or _NOTHING).get("interconnect") == "nvlink" and tasks > 1
    if together or whole or (tasks > 1 and (near or older or topology.get("max_nodes"))) or linked:
        return reasons.WAITING_TO_START
    kept = topology.get("keep_within") == "node" and tasks > 1
    return reasons.WAITING_TO_START if kept else ""
