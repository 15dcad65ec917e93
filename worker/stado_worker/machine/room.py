"""How much of this machine is free for another task.

Not obvious because our own tasks show up twice: as reservations and as load. Taking both off refused the second
default task of an idle two-core machine in three samples of four. So load counts only in so far as it is *foreign*:
mean busy cores over ten seconds minus mean reserved cores over the same ten seconds, less a quarter core for our own
overhead.

    free cores  = total - reserved - max(0, foreign - 0.25)
    free memory = min(available on the host, left below the control group's limit) - what our tasks may still grow into
                  and never more than total - reserved

Where a person says `--cpus` or `--memory`, that is the total and load is ignored.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from stado_worker.machine import cpu, memory
from stado_worker.machine.limits import read_limits

WINDOW_S = 10.0
SAMPLE_EVERY_S = 0.5
MEMORY_EVERY_S = 0.1
"""Memory is a state, not a difference of counters: it may be read more often, so that a task that ended frees its room
at once.
"""

OWN_OVERHEAD_CORES = 0.25


@dataclass(frozen=True, slots=True)
class Total:
    """What a worker offers, nothing taken off."""

    cpu_millis: int
    memory_bytes: int
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Free:
    """What another task may still take. Never negative: a machine that is overloaded has nothing free, not less."""

    cpu_millis: int
    memory_bytes: int


class Sampler(Protocol):
    """Where the live figures come from; tests hand in their own."""

    def busy(self) -> cpu.BusyReading: ...
    def available_bytes(self) -> int: ...


class LiveSampler:
    """This machine. Limits are read again each time: a container's may be changed while it runs."""

    def busy(self) -> cpu.BusyReading:
        return cpu.read_busy()

    def available_bytes(self) -> int:
        return memory.available_bytes(read_limits())


def measure(*, cpus: float | None = None, memory_bytes: int | None = None) -> Total:
    """What this machine offers: what a person said, else affinity, quota, installed memory and limits."""
    limits = read_limits()
    return Total(
        cpu_millis=round(cpus * 1000) if cpus is not None else cpu.total_millis(limits),
        memory_bytes=memory_bytes if memory_bytes is not None else memory.total_bytes(limits),
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    at_s: float
    busy_core_s: float
    reserved_core_s: float


class LiveRoom:
    """Free room, kept up to date by `sample`. `now_s` is any clock that never jumps.

    The constructor takes the first reading, so that the first difference can be formed half a second later. Until then
    foreign load is unknown and counted as none: a worker that just started on an idle machine must not make its first
    job wait.
    """

    def __init__(
        self,
        total: Total,
        now_s: float,
        *,
        cpus_given: bool = False,
        memory_given: bool = False,
        sampler: Sampler | None = None,
    ) -> None:
        self.total = total
        self._cpus_given = cpus_given
        self._memory_given = memory_given
        self._sampler: Sampler = sampler or LiveSampler()
        first = self._sampler.busy()
        self._cores_seen = first.cores
        self._available_bytes = self._sampler.available_bytes()
        self._memory_at_s = now_s
        self._samples: deque[_Sample] = deque([_Sample(now_s, first.busy_core_s, 0.0)])
        self._noted_at_s = now_s
        self._reserved_cores = 0.0
        self._reserved_core_s = 0.0

    def sample(self, now_s: float, reserved_cpu_millis: int) -> None:
        """Note what is reserved from now on and, at most every half second, read the machine. Call at every step and
        whenever a reservation changes.
        """
        self._reserved_core_s += self._reserved_cores * max(0.0, now_s - self._noted_at_s)
        self._noted_at_s = now_s
        self._reserved_cores = reserved_cpu_millis / 1000
        if not self._memory_given and now_s - self._memory_at_s >= MEMORY_EVERY_S:
            self._available_bytes, self._memory_at_s = self._sampler.available_bytes(), now_s
        if self._cpus_given or now_s - self._samples[-1].at_s < SAMPLE_EVERY_S:
            return
        reading = self._sampler.busy()
        self._cores_seen = reading.cores
        self._samples.append(_Sample(now_s, reading.busy_core_s, self._reserved_core_s))
        while len(self._samples) > 2 and self._samples[1].at_s <= now_s - WINDOW_S:
            self._samples.popleft()

    def foreign_cores(self) -> float:
        """Mean cores kept busy by others over the window; may be negative while our tasks idle."""
        first, last = self._samples[0], self._samples[-1]
        over_s = last.at_s - first.at_s
        if over_s <= 0:
            return 0.0
        return (last.busy_core_s - first.busy_core_s - (last.reserved_core_s - first.reserved_core_s)) / over_s

    def free_cpu_millis(self, reserved_cpu_millis: int) -> int:
        left = self.total.cpu_millis - reserved_cpu_millis
        if not self._cpus_given:
            foreign = max(0.0, self.foreign_cores() - OWN_OVERHEAD_CORES)
            # Under a quota the machine may have more cores than we may use: others' load costs us only what reaches us.
            unclaimed = 1000 * self._cores_seen - reserved_cpu_millis - round(1000 * foreign)
            left = min(left, unclaimed)
        return max(0, left)

    def free_memory_bytes(self, reserved_bytes: int, growth_bytes: int) -> int:
        """`growth_bytes`: what running tasks may still take (`memory.growth_bytes`)."""
        left = self.total.memory_bytes - reserved_bytes
        if not self._memory_given:
            left = min(left, self._available_bytes - growth_bytes)
        return max(0, left)

    def free(self, reserved_cpu_millis: int, reserved_bytes: int, growth_bytes: int) -> Free:
        return Free(self.free_cpu_millis(reserved_cpu_millis), self.free_memory_bytes(reserved_bytes, growth_bytes))
