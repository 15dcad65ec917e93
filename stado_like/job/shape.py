"""How many tasks a worker template stands for, as far as that follows from the specification alone.

`gpu_requests.count` is the run's total, and a run may leave it to the scheduler how that total is split. What says the
number by itself: `machines`, `node_selection.count`, or names to choose exactly; without any of them one GPU or none is
one task. The rest depends on the machines there are, and is decided when they are known.

With `policy: All` the number of GPUs is never said: a task takes those that are free where it lands. `count` is then
the fewest that the run takes in all, and each task's fewest is its even part of them.

A total that the said number cannot divide is not an error of the document (`machines` excepted, where it is refused at
submit): the job waits, and says `Cannot plan workers: …`, because nothing runs as something else than was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from stado_like.job.reasons_placement import not_a_power, uneven

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shape:
    """`tasks` of `gpus_each`, or of so many at least (`policy: All`). `decided` False: the scheduler will choose, and
    what stands here is one task with the whole total. `trouble`: why the total cannot be split so, in the words after
    `Cannot plan workers: `."""

    tasks: int
    gpus_each: int
    decided: bool = True
    trouble: str = ""


def shape_of(resources: Mapping[str, Any], *, together: bool = False) -> Shape:
    """The shape of one template's `requested_resources`. `together`: a gang, whose total the
    scheduler may spread over machines; an independent task with several GPUs has them on one machine."""
    gpus = resources.get("gpu_requests") or _NOTHING
    total, policy = gpus.get("count", 0), gpus.get("policy", "BestEffort")
    tasks = _said(resources)
    if policy == "All":
        return _of_every_gpu(resources, tasks)
    if tasks is None:
        return Shape(1, total, decided=False)
    if not tasks:
        topology = resources.get("topology") or _NOTHING
        by_choice = topology.get("min_nodes", 0) > 1 or (total > 1 and (together or policy == "PerNode"))
        return Shape(1, total, decided=not by_choice)
    if total % tasks:
        return Shape(tasks, 0, trouble=uneven(total, tasks))
    each = total // tasks
    if policy == "PerNode" and each & (each - 1):
        return Shape(tasks, 0, trouble=not_a_power(total, tasks))
    return Shape(tasks, each)


def _of_every_gpu(resources: Mapping[str, Any], tasks: int | None) -> Shape:
    gpus, topology = resources.get("gpu_requests") or _NOTHING, resources.get("topology") or _NOTHING
    if tasks:
        return Shape(tasks, fewest_each(gpus, tasks))
    by_choice = tasks is None or topology.get("min_nodes", 0) > 1 or gpus.get("count", 0) > 1
    return Shape(1, fewest_each(gpus, 1), decided=not by_choice)


def fewest_each(gpus: Mapping[str, Any], tasks: int) -> int:
    """How many GPUs must be free for one of so many tasks that take every free one: an even part of the run's
    `count`, rounded up, `min_per_machine`, and one."""
    count, least = int(gpus.get("count") or 0), int(gpus.get("min_per_machine") or 0)
    return max(1, least, -(-count // tasks))


def copy_of(resources: Mapping[str, Any]) -> Shape:
    """The shape of each copy of an array: one task with the whole of what its template asks."""
    gpus = resources.get("gpu_requests") or _NOTHING
    return Shape(1, fewest_each(gpus, 1) if gpus.get("policy") == "All" else gpus.get("count", 0))


def _said(resources: Mapping[str, Any]) -> int | None:
    """The number of tasks that the document says; 0: none; None: it depends on the machines there are."""
    chosen = resources.get("node_selection") or _NOTHING
    mode = chosen.get("mode", "Exact")
    if mode == "All":
        return None
    topology = resources.get("topology") or _NOTHING
    low, high = topology.get("min_nodes", 0), topology.get("max_nodes", 0)
    if resources.get("machines"):
        return int(resources["machines"])
    if chosen.get("count"):
        return int(chosen["count"])
    if mode == "Exact" and chosen.get("names"):
        return len(chosen["names"])
    return int(low) if low and low == high else 0
