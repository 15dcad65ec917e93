"""The parts of a job's terms: what one task asks of a machine, its groups, what it waits for, when it stands still.

Apart from `terms` only for its length; whoever needs them imports them from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from stado_like.job.hardware import ANY_GPU, NO_PORT, GpuKind, PortAsk
from stado_like.job.spec import limits


@dataclass(frozen=True, slots=True)
class Ask:
    """What one task needs of one machine."""

    cpu_millis: int
    memory_bytes: int
    gpus: int
    exclusive: bool = False
    pinned_host: str = ""
    names: tuple[str, ...] = ()
    """Only machines of these names; empty: any."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only machines that carry every one of these."""
    apart: str = ""
    """Never on a machine that holds a task with the same word here; empty: with anybody."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Abilities the machine must have, each with what a machine without it says."""
    gpu_kind: GpuKind = ANY_GPU
    """Which GPUs; any, where it says nothing."""
    ports: PortAsk = NO_PORT
    node_share: int = 0
    """Ten-thousandths of the machine's cores and memory, instead of so many; 0: so many."""
    devices: tuple[str, ...] = ()
    """The ids of the GPUs chosen for it on its machine; empty until it is claimed, or where nobody described any."""

    @property
    def is_picky(self) -> bool:
        """More than cores, memory and GPUs: an entry's name alone does not say it."""
        here = self.exclusive or self.pinned_host or self.names or self.labels or self.apart or self.needs
        return bool(here or self.node_share or self.ports.kind or not self.gpu_kind.is_any)

    def among(self, devices: tuple[str, ...]) -> Ask:
        """The GPUs that a tick chose, and judged a quota by, for what takes every free one: no others, though more
        should be free by now. Whatever asks for a number chooses its own."""
        if not devices or not self.gpu_kind.every:
            return self
        return replace(self, gpu_kind=replace(self.gpu_kind, ids=devices))

    def on(self, devices: tuple[str, ...]) -> Ask:
        """With the GPUs that it was given."""
        return self.taking(len(devices), devices) if devices else self

    def taking(self, count: int, devices: tuple[str, ...]) -> Ask:
        """With so many GPUs. What takes every free one asks, from then on, for what it took."""
        kind = self.gpu_kind
        if not kind.every:
            return replace(self, devices=devices)
        return replace(
            self,
            gpus=count,
            cpu_millis=kind.each_cpu_millis * count or self.cpu_millis,
            memory_bytes=kind.each_memory_bytes * count or self.memory_bytes,
            gpu_kind=replace(kind, every=False, each_cpu_millis=0, each_memory_bytes=0),
            devices=devices,
        )


@dataclass(frozen=True, slots=True)
class Dependency:
    """A group that must be up first: `condition` Running or Healthy."""

    group: str
    condition: str


@dataclass(frozen=True, slots=True)
class Group:
    """Ranks `first` to `first + tasks - 1`, all of one template. A job without groups is one group without a name."""

    name: str
    first: int
    tasks: int
    depends_on: tuple[Dependency, ...] = ()

    @property
    def ranks(self) -> range:
        return range(self.first, self.first + self.tasks)


@dataclass(frozen=True, slots=True)
class After:
    """A job that must have ended so (`Completed`, `Failed`, `Ended`) before this one starts."""

    job: str
    state: str


class LimitWarning(NamedTuple):
    """A signal that warns of the time limit, so many seconds before it."""

    signal: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Stall:
    """A task that shows no sign of work for `after_s` is stalled, and with `restart` started again."""

    after_s: int
    restart: bool = False


@dataclass(frozen=True, slots=True)
class Straggling:
    """A task counts as the one its group waits for once its step lags the median by `behind_steps` for `after_s`."""

    behind_steps: int = limits.DEFAULT_STRAGGLER_STEPS
    after_s: int = limits.DEFAULT_STRAGGLER_AFTER_S
