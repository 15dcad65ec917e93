"""THE predicate: may this task run on this machine, and if not, why?

The worker's admission asks it before a claim, and so does whoever explains to a person why a job waits: one rule,
one set of sentences, with the numbers. Integers everywhere (thousandths of a core, bytes): ten times a tenth of a
core is one core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.job import reasons
from stado_like.job.terms import Ask


@dataclass(frozen=True, slots=True)
class Machine:
    """What a worker has free now: live measurement, less what its tasks reserve."""

    worker: str
    host: str
    free_cpu_millis: int
    free_memory_bytes: int
    free_gpus: int
    running: int
    taken_whole: bool = False
    closed: str = ""
    """Why it takes no work at all (cordoned, out of disk); empty when it does."""
    labels: Mapping[str, str] = field(default_factory=dict)
    abilities: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    """The words by which the tasks it holds keep their like away."""


def why_not(machine: Machine, ask: Ask) -> tuple[str, ...]:
    """Every reason that keeps the task off this machine; empty: it fits. Sentences of the per-machine table."""
    found = []
    if machine.closed:
        found.append(machine.closed)
    if ask.pinned_host and ask.pinned_host not in (machine.worker, machine.host):
        found.append(reasons.PINNED_ELSEWHERE)
    if ask.names and not {machine.worker, machine.host} & set(ask.names):
        found.append(reasons.PINNED_ELSEWHERE)
    found += [reasons.lacks_label(k, v) for k, v in ask.labels.items() if machine.labels.get(k) != v]
    if ask.apart and ask.apart in machine.apart:
        found.append(reasons.ANOTHER_WORKER_HERE)
    found += [sentence for ability, sentence in ask.needs.items() if ability not in machine.abilities]
    if machine.taken_whole:
        found.append(reasons.TAKEN_WHOLE)
    elif ask.exclusive and machine.running:
        found.append(reasons.NOT_IDLE)
    if ask.cpu_millis > machine.free_cpu_millis:
        found.append(reasons.insufficient_cpu(cores(ask.cpu_millis), cores(machine.free_cpu_millis)))
    if ask.memory_bytes > machine.free_memory_bytes:
        found.append(reasons.insufficient_memory(ask.memory_bytes, machine.free_memory_bytes))
    if ask.gpus > machine.free_gpus:
        found.append(reasons.insufficient_gpus(ask.gpus, machine.free_gpus))
    return tuple(found)


def cores(millis: int) -> str:
    """`1500` -> `1.5`"""
    return f"{millis / 1000:.3f}".rstrip("0").rstrip(".")
