"""How many cores this process may use, and how busy they are.

Not obvious because the machine's core count is the wrong answer in a container (a quota), under `taskset` or a batch
system (an affinity mask), and because busyness is a difference of counters: one reading says nothing, and two readings
less than half a second apart say little (the kernel counts in steps of 10 ms).
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import psutil

from stado_worker.machine.limits import Limits


@dataclass(frozen=True, slots=True)
class BusyReading:
    """Core-seconds spent working since boot, over the cores this process may run on."""

    busy_core_s: float
    cores: int


def allowed_cpus() -> frozenset[int]:
    """The numbers of the cores this process may run on (`taskset`, cpuset groups); all of them where it cannot be
    asked.
    """
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def total_millis(limits: Limits) -> int:
    """Thousandths of a core that this process may use: its affinity, or its quota where that is less."""
    millis = 1000 * len(allowed_cpus())
    if limits.cpu_cores is not None:
        millis = min(millis, int(limits.cpu_cores * 1000))
    return millis


def read_busy() -> BusyReading:
    """Counted over allowed cores only: on a shared machine the neighbours' cores are not our load."""
    allowed = allowed_cpus()
    per_cpu = psutil.cpu_times(percpu=True)
    chosen = [times for number, times in enumerate(per_cpu) if number in allowed] or per_cpu
    busy = sum(_busy_s(times) for times in chosen)
    return BusyReading(busy, len(chosen))


def _busy_s(times: object) -> float:
    """User, system and interrupts. Guest time is counted by the kernel within user; waiting for a disk is not work."""
    names = ("user", "nice", "system", "irq", "softirq", "steal")
    return float(sum(getattr(times, name, 0.0) for name in names))
