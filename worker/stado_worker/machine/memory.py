"""How much memory this machine has, may use, and what our tasks have already taken.

Not obvious because a host's figures are wrong inside a control group (86 % of 64 GiB is no comfort under a limit of 4
GiB), and because the memory that a running task has taken already shows in "available": taking its whole reservation
off again counts it twice.
"""

from __future__ import annotations

import resource
from collections.abc import Iterable
from pathlib import Path

import psutil

from stado_worker.machine.hierarchies import PROC
from stado_worker.machine.limits import Limits


def total_bytes(limits: Limits) -> int:
    """What the machine has, or what our control group may hold where that is less."""
    host = int(psutil.virtual_memory().total)
    return min(host, limits.memory_bytes) if limits.memory_bytes is not None else host


def available_bytes(limits: Limits) -> int:
    """What can be allocated now without swapping and without meeting a limit."""
    host = int(psutil.virtual_memory().available)
    left = limits.memory_left_bytes()
    return min(host, left) if left is not None else host


def resident_bytes(pids: Iterable[int], proc: Path = PROC) -> int:
    """Bytes of memory that these processes hold. Shared pages count once per process, so this is an upper bound;
    processes that ended meanwhile count nothing.
    """
    if not proc.is_dir():
        return sum(_resident_elsewhere(pid) for pid in pids)
    page = resource.getpagesize()
    total = 0
    for pid in pids:
        try:
            fields = (proc / str(pid) / "statm").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += int(fields[1]) * page
    return total


def growth_bytes(tasks: Iterable[tuple[int, int]]) -> int:
    """What running tasks may still take: the sum over (reserved, used) of what each has left. A task above its
    reservation has nothing left, and its excess already shows in what is available; it must not be credited to the
    others.
    """
    return sum(max(0, reserved - used) for reserved, used in tasks)


def _resident_elsewhere(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
