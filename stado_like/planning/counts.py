"""How many tasks of one ask a machine takes: `fit.copies`, for whoever asks it of thousands of machines many times.

What of the answer changes while a plan is made are a few numbers. The rest (labels that the machine insists on, what it
is able to do, its ports) is asked of the predicate once for each sort of machine. Asks of which that is not so (single
GPUs, models, shares, names, whole machines) are left to the predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stado_like.job.terms import Ask
from stado_like.planning.fit import ACCEPTS, Kept, Machine, copies, fits, whole_cards

ENDLESS = 1 << 60
Sorts = Mapping[str, int]
"""By worker: which sort of machine it is, of those that answer alike whatever is free there."""


def sorts_of(machines: Iterable[Machine]) -> Sorts:
    numbers: dict[tuple[object, ...], int] = {}
    return {one.worker: numbers.setdefault(_sort(one), len(numbers)) for one in machines}


def _sort(machine: Machine) -> tuple[object, ...]:
    ports = tuple((one.kind, one.gbps, one.active) for one in machine.ports)
    return machine.labels.get(ACCEPTS), machine.abilities, ports


class Counts:
    """Of one ask, `most` at the most. `answers`: by sort, what asks that are alike but for the word by which they keep
    apart learnt before."""

    def __init__(self, ask: Ask, most: int, sorts: Sorts, answers: dict[int, bool]) -> None:
        self._ask, self._most, self._sorts, self._answers = ask, most, sorts, answers
        kind = ask.gpu_kind
        special = ask.node_share or ask.exclusive or ask.names or ask.pinned_host or ACCEPTS in ask.labels
        self._is_numbers = bool(sorts) and not special and (not ask.gpus or kind.is_any)
        self._labels = tuple(ask.labels.items())

    def on(self, machine: Machine, kept: Kept | None = None) -> int:
        """`kept`: room that is held for others. The cheap comparisons first: most machines are full."""
        ask, cpu, memory = self._ask, machine.free_cpu_millis, machine.free_memory_bytes
        if machine.closed or ask.cpu_millis > cpu or ask.memory_bytes > memory:
            return 0
        if ask.gpus > machine.free_gpus and not machine.gpus:
            return 0
        if not self._is_numbers:
            return copies(machine, ask, self._most, kept)
        if machine.taken_whole or (ask.apart and ask.apart in machine.apart) or not self._is_allowed(machine):
            return 0
        gpus = whole_cards(machine.gpus) if machine.gpus and ask.gpus else machine.free_gpus
        if kept is not None:
            cpu, memory, gpus = cpu - kept.cpu_millis, memory - kept.memory_bytes, gpus - kept.gpus
            if kept.whole:
                return 0
        found = 1 if ask.apart else self._most
        if ask.cpu_millis:
            found = min(found, cpu // ask.cpu_millis)
        if ask.memory_bytes:
            found = min(found, memory // ask.memory_bytes)
        if ask.gpus:
            found = min(found, gpus // ask.gpus)
        return max(0, found)

    def _is_allowed(self, machine: Machine) -> bool:
        for name, value in self._labels:
            if machine.labels.get(name) != value:
                return False
        sort = self._sorts[machine.worker]
        if sort not in self._answers:
            roomy = replace(
                machine,
                free_cpu_millis=ENDLESS,
                free_memory_bytes=ENDLESS,
                free_gpus=ENDLESS,
                gpus=(),
                apart=frozenset(),
            )
            self._answers[sort] = fits(roomy, self._ask)
        return self._answers[sort]
