"""How a total of GPUs is split into tasks, where the run leaves that to the scheduler.

On the best network on which there is room for it now, and there on the fewest machines: a run that is spread thin over
a fast fabric finishes, one that crosses Ethernet to save a machine waits for its gradients. One task per machine, the
same number of GPUs on each. Decided once, from the machines as they are: whatever is free later does not change it.

A run that takes every free GPU of its machines (`every`) names only the fewest it takes in all: there the number of
machines is chosen, and each must have an even part of them free.

Each number of machines that divides the total is tried as if it had been asked for, by the same search that will place
it, so what is chosen here can be placed on the board it was chosen from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from stado_like.job import reasons
from stado_like.job import reasons_placement as says
from stado_like.job.ids import AttemptId
from stado_like.job.shape import fewest_each
from stado_like.job.terms import Ask
from stado_like.planning.board import Member, Spot, Unit
from stado_like.planning.cards import usable_cards
from stado_like.planning.fit import Kept, Machine, fits
from stado_like.planning.networks import NODE
from stado_like.planning.placing import Shaped
from stado_like.planning.topology import NOBODY, Assigned, Unassigned, assign

MOST_TASKS: Final = 4096


@dataclass(frozen=True, slots=True)
class CannotShape:
    """`reason`: the whole sentence, `Cannot plan workers: …`, or which network it waits for."""

    reason: str


def choose(unit: Unit, spots: Sequence[Spot], now: float, *, kept: Mapping[str, Kept] = NOBODY) -> Shaped | CannotShape:
    """The split of a unit whose `shape` says what to split (`demands.to_split`)."""
    asked, total = unit.shape.get, unit.shape.get("gpus", 0)
    if asked("every_machine") and not asked("machines"):
        return _every_machine(unit, spots, total)
    splits = list(_splits(unit, total))
    if not splits:
        return CannotShape(reasons.cannot_plan(_uneven(unit, total)))
    best: tuple[tuple[int, int], Shaped] | None = None
    for tasks, each in splits:
        if best is not None and best[0][0] == NODE:
            break
        found = assign(_at_once(shaped(unit, tasks, each)), spots, now, kept=kept)
        if isinstance(found, Assigned) and (best is None or (found.network.is_as_good_as, tasks) < best[0]):
            best = (
                (found.network.is_as_good_as, tasks),
                Shaped(unit.job, tasks, each, _why(unit, tasks, each, found), unit.group),
            )
    if best is None:
        return CannotShape(reasons.cannot_plan(_no_room(unit, spots, splits)))
    chosen = best[1]
    waits = assign(shaped(unit, chosen.tasks, chosen.gpus_each), spots, now, kept=kept)
    return CannotShape(waits.reason) if isinstance(waits, Unassigned) else chosen


def _at_once(unit: Unit) -> Unit:
    return replace(unit, near=replace(unit.near, patience_s=0))


def shaped(unit: Unit, tasks: int, each: int) -> Unit:
    """The unit as it is once it is split so: one task per machine, ranks from 0."""
    first = unit.members[0]
    ask = _ask_of_each(unit, first.ask, tasks, each)
    members = tuple(Member(AttemptId(unit.job, rank, first.attempt.n), ask) for rank in range(tasks))
    return replace(unit, members=members, shape={}, near=replace(unit.near, min_nodes=0, max_nodes=0))


def _ask_of_each(unit: Unit, ask: Ask, tasks: int, each: int) -> Ask:
    asked = unit.shape.get
    return replace(
        ask,
        gpus=each,
        cpu_millis=asked("per_gpu_cpu_millis", 0) * each or ask.cpu_millis,
        memory_bytes=asked("per_gpu_memory_bytes", 0) * each or ask.memory_bytes,
        apart=ask.apart or (f"{unit.job.workspace}.{unit.job.name}/{unit.group}" if tasks > 1 else ""),
    )


# ---- the splits that may be


def _splits(unit: Unit, total: int) -> Iterator[tuple[int, int]]:
    """Tasks and the GPUs of each, the fewest tasks first."""
    asked = unit.shape.get
    fewest = asked("machines") or max(1, asked("min_nodes", 0))
    most = asked("machines") or asked("max_nodes") or (total or fewest)
    if asked("every"):
        yield from _splits_of_every(unit, fewest, max(fewest, min(most, total or fewest, MOST_TASKS)))
        return
    if not total:
        yield fewest, 0
        return
    for tasks in range(fewest, min(most, total, MOST_TASKS) + 1):
        each = total // tasks
        if total % tasks or each < asked("min_per_machine", 0):
            continue
        if not asked("per_node") or not each & (each - 1):
            yield tasks, each


def _splits_of_every(unit: Unit, fewest: int, most: int) -> Iterator[tuple[int, int]]:
    """Of several numbers of tasks that need as much on each machine, the smallest."""
    before = 0
    for tasks in range(fewest, most + 1):
        each = _at_least(unit, tasks)
        if each != before:
            yield tasks, each
        before = each


def _at_least(unit: Unit, tasks: int) -> int:
    asked = unit.shape.get
    return fewest_each({"count": asked("gpus", 0), "min_per_machine": asked("min_per_machine", 0)}, tasks)


def _uneven(unit: Unit, total: int) -> str:
    """No number of machines does: said of the fewest that would be used."""
    asked = unit.shape.get
    fewest = asked("machines") or max(1, asked("min_nodes", 0))
    if asked("per_node") and total % fewest == 0:
        return says.not_a_power(total, fewest)
    return says.uneven(total, fewest)


def _no_room(unit: Unit, spots: Sequence[Spot], splits: Sequence[tuple[int, int]]) -> str:
    """Of a group that no machine takes even a part of, that is said; else how much the largest one could take."""
    least = _ask_of_each(unit, unit.members[0].ask, 1, min(each for _, each in splits))
    if unit.group and not any(fits(spot.machine, least) for spot in spots):
        return says.no_host_for_group(unit.group)
    tasks, each = splits[0]
    return says.no_way_to_run(unit.shape.get("gpus", 0) or tasks * each, _largest(unit, spots))


def _every_machine(unit: Unit, spots: Sequence[Spot], total: int) -> Shaped | CannotShape:
    """One task on every machine that can take one: as many as there are, and the GPUs evenly on them."""
    every = bool(unit.shape.get("every"))
    able = [spot.machine for spot in spots if spot.machine.worker not in unit.avoid]
    before = -1
    tasks = sum(not machine.closed for machine in able)
    while tasks and tasks != before and (every or total % tasks == 0):
        each = _at_least(unit, tasks) if every else total // tasks
        before, tasks = tasks, sum(fits(machine, _ask_of_each(unit, unit.members[0].ask, 1, each)) for machine in able)
    if not tasks:
        return CannotShape(reasons.cannot_plan(says.no_way_to_run(total, _largest(unit, spots))))
    if total % tasks and not every:
        return CannotShape(reasons.cannot_plan(says.uneven(total, tasks)))
    each = _at_least(unit, tasks) if every else total // tasks
    return Shaped(unit.job, tasks, each, f"every machine that can take one: {_size(unit, tasks, each)}", unit.group)


# ---- words


def _why(unit: Unit, tasks: int, each: int, found: Assigned) -> str:
    """`2 machines × 8 GPUs on InfiniBand fabric ib-0`"""
    size = _size(unit, tasks, each)
    return f"{size} on {found.network}" if tasks > 1 else size


def _size(unit: Unit, tasks: int, each: int) -> str:
    machines = "1 machine" if tasks == 1 else f"{tasks} machines"
    if unit.shape.get("every"):
        return f"{machines} × every free GPU (at least {each})"
    return f"{machines} × {each} GPU{'' if each == 1 else 's'}" if each else machines


def _largest(unit: Unit, spots: Sequence[Spot]) -> int:
    """The most GPUs of the kind that one machine has free now, whatever else keeps the run off it."""
    ask = unit.members[0].ask
    return max((_free_of_kind(spot.machine, ask) for spot in spots if not spot.machine.closed), default=0)


def _free_of_kind(machine: Machine, ask: Ask) -> int:
    kind = ask.gpu_kind
    return sum(one.free_share >= kind.share_of(one) for one in usable_cards(machine.cards, kind))
