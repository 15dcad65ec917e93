"""What of a machine decides whether work may run there, beside names, labels and the amounts of cores and memory: for
machines that are equal in it, the predicate need be asked once.

A cluster has thousands of machines and few kinds of them, so this is what keeps a plan from asking for every pair. Not
obvious is whom it does not hold for: work that names single GPUs, takes every one, or a share of a machine, asks for
numbers that are no trait (`is_answered_by_traits`).
"""

from __future__ import annotations

from stado_like.job.terms import Ask
from stado_like.planning.fit import ACCEPTS, Machine

Trait = tuple[object, ...]


def trait_of(machine: Machine) -> Trait:
    gpus = tuple(sorted((one.vendor, one.model, one.memory_bytes, one.health, one.free_share) for one in machine.gpus))
    return (
        bool(machine.closed),
        machine.taken_whole,
        machine.running > 0,
        machine.labels.get(ACCEPTS),
        machine.abilities,
        machine.apart,
        machine.free_gpus,
        gpus,
        tuple((one.kind, one.gbps, one.active) for one in machine.ports),
    )


def is_answered_by_traits(ask: Ask) -> bool:
    """Whether two machines of equal traits, both of the names and labels that the ask wants and with its cores and
    memory free, answer it alike."""
    return not (ask.node_share or ask.gpu_kind.ids or ask.gpu_kind.every)
