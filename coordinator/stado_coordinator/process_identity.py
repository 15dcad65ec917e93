"""Whether the process that a lock names still runs, as far as this host can tell.

A pid alone says nothing: pids are used again, and after a reboot they begin anew. So a lock also names the boot, the
pid namespace (two containers of one host name count their processes apart) and the moment at which the process began.
Whatever cannot be compared is unknown, and unknown is never "gone".
"""

from __future__ import annotations

import os
from enum import Enum

import psutil

from stado_like.ambient import Ambient
from stado_like.job.records import TickLock

SAME_START_S = 2.0


class Holder(Enum):
    ALIVE = "alive"
    GONE = "gone"
    ELSEWHERE = "elsewhere"


def started_at(pid: int) -> float | None:
    """When the process began, in this machine's own time; None: it cannot be told (or there is no such process)."""
    try:
        return psutil.Process(pid).create_time()
    except (psutil.Error, OSError):
        return None


def pid_namespace() -> str:
    """A name for the numbering in which this process's pid has a meaning; empty where the system has none."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def holder_of(lock: TickLock, ambient: Ambient) -> Holder:
    """What can be seen from here of the process that holds `lock`."""
    if lock.host != ambient.host:
        return Holder.ELSEWHERE
    if lock.boot_id and ambient.boot_id and lock.boot_id != ambient.boot_id:
        return Holder.GONE  # this host was started again since
    theirs = lock.extra.get("pid_namespace", "")
    ours = pid_namespace()
    if theirs and ours and theirs != ours:
        return Holder.ELSEWHERE
    if _is_dead(lock.pid):
        return Holder.GONE
    began = started_at(lock.pid)
    if began is not None and lock.started_at and abs(began - lock.started_at) > SAME_START_S:
        return Holder.GONE  # the pid is another program's now
    return Holder.ALIVE


def _is_dead(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, OSError):
        return False
