"""Room that is kept for the head of the queue, and who may use it all the same.

The head is the first work that does not fit and could. It gets the machines on which it can start first, and the moment
when: from the ends that time limits promise. Others may pass it (EASY backfill: Lifka, "The ANL/IBM SP scheduling
system", 1995) if they end before that moment, or fit beside it: then they cannot delay it. Where no end is known there
is no moment, and only what leaves the head's whole room alone may pass.

One head is not always enough. A task that waits for the one machine with GPUs must not be the reason for which a large
job among the machines without them is passed by small ones for ever. So work that waits is a head as well on those
machines that nothing ahead of it could use, if it can start on them alone. Heads never meet, no machine has two holds,
and nothing that is ahead of a head can come to want its room: what it was told stays true. (One head for each set of
machines that no earlier *head* could use was tried: work that waits behind one head and could use the machines of the
next started there first, and broke that one's promise.) As in EASY only the first at a machine is protected, and
everyone becomes the first.

A plan and a worker ask the same question, `passes`: the worker once more, right before it claims, with what it knows
better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Hold, Running, Unit
from stado_like.planning.fit import Kept, Machine, fits, takes
from stado_like.planning.leaving import leaving
from stado_like.planning.queue_order import is_ahead


@dataclass(frozen=True, slots=True)
class Passer:
    """Work that would use a machine with a hold."""

    job: JobId
    priority: int
    created_ms: int
    ask: Ask
    time_limit_s: int | None = None


def passes(hold: Hold, one: Passer, machine: Machine, running: Sequence[Running], now: float) -> bool:
    """Whether the hold lets the work onto its machine. That it fits there now is another question. `running`: what has
    room there."""
    if one.job == hold.job or is_ahead(one, hold) or ends_in_time(hold, one.time_limit_s, now):
        return True
    return fits_beside(hold, one.ask, at_start(hold, machine, running))


def ends_in_time(hold: Hold, time_limit_s: int | None, now: float) -> bool:
    if not hold.starts_at or time_limit_s is None:
        return False
    return now + time_limit_s <= hold.starts_at  # guard: ends in time


def at_start(hold: Hold, machine: Machine, running: Iterable[Running]) -> Machine:
    """The machine when the hold's job starts: without what ends by then. No start is known: as it is now."""
    if not hold.starts_at:
        return machine
    gone: list[Running] = []
    left: list[Running] = []
    for one in running:
        (gone if known_end(one) <= hold.starts_at else left).append(one)
    return leaving(machine, gone, left)


def known_end(one: Running) -> float:
    """When a task's room comes back at the latest; infinity: nobody knows. What is being stopped comes first."""
    if one.stopping:
        return 0.0
    return float("inf") if one.ends_by is None else one.ends_by


def fits_beside(hold: Hold, ask: Ask, then: Machine) -> bool:
    """Only what the work asks for counts: a task without GPUs passes a head that lacks nothing else."""
    if hold.whole or ask.exclusive:
        return False
    if hold.gpus and ask.gpus and are_mixed(then):
        return False
    return fits(then, ask, Kept(hold.cpu_millis, hold.memory_bytes, hold.gpus))  # guard: fits beside


def are_mixed(machine: Machine) -> bool:
    """Its GPUs differ, and a hold says only how many it needs."""
    return len({(one.vendor, one.model, one.health) for one in machine.gpus}) > 1


def kept_now(hold: Hold, machine: Machine, then: Machine) -> Kept:
    """What of the machine as it is now must stay free: the hold, less what comes back until its job starts. `then`: the
    machine at that moment."""
    gpus = max(0, hold.gpus - (then.free_gpus - machine.free_gpus))
    return Kept(
        cpu_millis=max(0, hold.cpu_millis - (then.free_cpu_millis - machine.free_cpu_millis)),
        memory_bytes=max(0, hold.memory_bytes - (then.free_memory_bytes - machine.free_memory_bytes)),
        gpus=len(machine.gpus) if hold.gpus and are_mixed(machine) else gpus,
        whole=hold.whole,
    )


def holds_for(
    unit: Unit, where: Mapping[AttemptId, str], machines: Mapping[str, Machine], starts_at: float
) -> tuple[Hold, ...]:
    """One hold for each machine of `where`, in an order of its own: equal plans have equal holds."""
    asks: defaultdict[str, list[Ask]] = defaultdict(list)
    for member in unit.members:
        if member.attempt in where:
            asks[where[member.attempt]].append(member.ask)
    found = []
    for worker in sorted(asks):
        room = [takes(machines[worker], ask) for ask in asks[worker]]
        found.append(
            Hold(
                job=unit.job,
                worker=worker,
                cpu_millis=sum(cpu for cpu, _ in room),
                memory_bytes=sum(memory for _, memory in room),
                gpus=sum(ask.gpus for ask in asks[worker]),
                priority=unit.priority,
                starts_at=starts_at,
                whole=any(ask.exclusive for ask in asks[worker]),
                created_ms=unit.created_ms,
            )
        )
    return tuple(found)


def in_one_order(holds: Iterable[Hold]) -> tuple[Hold, ...]:
    return tuple(sorted(holds, key=lambda one: (one.worker, one.job)))
