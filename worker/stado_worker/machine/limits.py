"""What the control groups allow this process: cores and bytes.

Not obvious because the limit is the smallest on the way from our group to the root, because version 1 writes "no
limit" as a number (9223372036854771712, the largest multiple of a page), and because the usage that both versions
report counts page cache, which the kernel gives back on demand. https://docs.kernel.org/admin-guide/cgroup-v2.html and
cgroup-v1/memory.html
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from stado_worker.machine.hierarchies import PROC, Hierarchy, hierarchies

UNLIMITED_FROM_BYTES = 1 << 60
"""No machine has an exbibyte; every kernel's way to write "no limit" lies above it."""


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """One group with a limit: what it may hold and what it holds that cannot be dropped. `used_bytes` None: not
    readable.
    """

    path: Path
    limit_bytes: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """`cpu_cores` and `memory_bytes` are None where nothing limits us."""

    cpu_cores: float | None
    memory_bytes: int | None
    memory_groups: tuple[MemoryGroup, ...] = ()

    def memory_left_bytes(self) -> int | None:
        """What may still be allocated before the tightest group is full; None where no group limits us."""
        left = [group.limit_bytes - (group.used_bytes or 0) for group in self.memory_groups]
        return max(0, min(left)) if left else None


def read_limits(proc: Path = PROC) -> Limits:
    """The limits that hold for this process now. Cheap (some ten small files): read again at every sample."""
    cores: list[float] = []
    groups: list[MemoryGroup] = []
    for tree in hierarchies(proc):
        if tree.version == 2 or "cpu" in tree.controllers:
            cores += [found for at in tree.upwards() if (found := _cpu_cores(at, tree.version)) is not None]
        if tree.version == 2 or "memory" in tree.controllers:
            groups += _memory_groups(tree)
    return Limits(
        cpu_cores=min(cores) if cores else None,
        memory_bytes=min(group.limit_bytes for group in groups) if groups else None,
        memory_groups=tuple(groups),
    )


@dataclass(frozen=True, slots=True)
class OomCounter:
    """A file that says how often the kernel killed for want of memory."""

    path: Path

    def read(self) -> int | None:
        return _named(str(self.path), "oom_kill")


def oom_counter(proc: Path = PROC) -> OomCounter | None:
    """The counter nearest to this process: our group's own (version 2, or version 1's memory.oom_control), else the
    machine's (/proc/vmstat). Finding it takes most of a millisecond, reading it a hundredth of that.
    """
    possible = [proc / "vmstat"]
    for tree in hierarchies(proc):
        if tree.version == 2:
            possible.insert(0, tree.group / "memory.events")
        elif "memory" in tree.controllers:
            possible.insert(0, tree.group / "memory.oom_control")
    return next((one for one in map(OomCounter, possible) if one.read() is not None), None)


def oom_kills(proc: Path = PROC) -> int | None:
    """How often the kernel killed for want of memory, as near to this process as a counter exists. A count that rose
    says that an out-of-memory kill happened; 137 alone does not. None: no counter.
    """
    counter = oom_counter(proc)
    return counter.read() if counter is not None else None


def _cpu_cores(group: Path, version: int) -> float | None:
    if version == 2:
        words = _text(group / "cpu.max").split()
        if len(words) != 2 or words[0] == "max":
            return None
        quota, period = _whole(words[0]), _whole(words[1])
    else:
        quota, period = _whole(_text(group / "cpu.cfs_quota_us")), _whole(_text(group / "cpu.cfs_period_us"))
    if quota is None or period is None or quota <= 0 or period <= 0:
        return None
    return quota / period


def _memory_groups(tree: Hierarchy) -> list[MemoryGroup]:
    found: list[MemoryGroup] = []
    for at in tree.upwards():
        limit = _whole(_text(at / ("memory.max" if tree.version == 2 else "memory.limit_in_bytes")))
        if limit is not None and 0 <= limit < UNLIMITED_FROM_BYTES:
            found.append(MemoryGroup(at, limit, _used_bytes(at, tree.version)))
    if tree.version == 1:
        # Groups above our mount point cannot be opened, but the kernel folds their limits into this line.
        above = _named(tree.group / "memory.stat", "hierarchical_memory_limit")
        seen = min((group.limit_bytes for group in found), default=UNLIMITED_FROM_BYTES)
        if above is not None and above < seen:
            found.append(MemoryGroup(tree.group, above, _used_bytes(tree.group, 1)))
    return found


def _used_bytes(group: Path, version: int) -> int | None:
    """Usage without the page cache. `cache` would not do: it counts shared memory, which nobody can drop."""
    prefix = "total_" if version == 1 else ""
    usage = _whole(_text(group / ("memory.current" if version == 2 else "memory.usage_in_bytes")))
    if usage is None:
        return None
    stat = group / "memory.stat"
    cached = sum(_named(stat, prefix + name) or 0 for name in ("inactive_file", "active_file"))
    return max(0, usage - cached)


def _named(file: Path | str, name: str) -> int | None:
    for line in _text(file).splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _whole(value)
    return None


def _whole(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _text(file: Path | str) -> str:
    """The file's text; empty where the group has no such file (a controller that is not on) or it may not be read."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            read = b""
            while piece := os.read(fd, 1 << 16):
                read += piece
        finally:
            os.close(fd)
        return read.decode()
    except OSError:
        return ""
