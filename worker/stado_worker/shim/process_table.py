"""What the system says of processes: which live, which descend from which, which carry a mark.

Not obvious because a pid is a weak name: it is reused, a zombie keeps it, and a look at it may come too late. So
"alive" excludes zombies, a process is named by pid *and* start time, a start time that cannot be read is "unknown" and
never "another process", and a signal goes through a descriptor of the very process that was looked at where the system
has one.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path

PROC = Path("/proc")
STAT_BYTES = 4096


def started_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot (field 22 of /proc/<pid>/stat); None: cannot be told.

    psutil's create_time would not do: it adds the boot time, which moves when the clock is set.
    """
    fields = _stat_fields(pid)
    if fields is not None:
        return int(fields[19])
    if PROC.is_dir():
        return None
    import psutil  # where there is no /proc; each supervisor would carry it

    try:
        return int(psutil.Process(pid).create_time() * 1000)
    except psutil.Error:
        return None


def same_process(pid: int, started: int | None) -> bool | None:
    """True: still that process, alive. False: ended (a zombie has), or the pid names another. None: cannot be told."""
    if not is_alive(pid):
        return False
    now = started_ticks(pid)
    if started is None or now is None:
        return None
    return now == started


def is_alive(pid: int) -> bool:
    """Whether such a process lives; a zombie does not."""
    fields = _stat_fields(pid)
    if fields is not None:
        return fields[0] not in ("Z", "X", "x")
    if PROC.is_dir():
        return False
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(roots: Iterable[int]) -> set[int]:
    """The living processes below `roots` (without them), at one look. Whoever forks meanwhile may be missing: look
    again.
    """
    below: dict[int, list[int]] = {}
    for pid, parent in _parents().items():
        below.setdefault(parent, []).append(pid)
    found: set[int] = set()
    ahead = list(roots)
    while ahead:
        for child in below.get(ahead.pop(), ()):
            if child not in found:
                found.add(child)
                ahead.append(child)
    return {pid for pid in found if is_alive(pid)}


def ancestors_and_self() -> set[int]:
    """This process and everything above it: never to be killed, whatever marks it carries."""
    parents = _parents()
    found = {os.getpid()}
    at: int | None = os.getpid()
    while at is not None and (at := parents.get(at)) is not None and at not in found:
        found.add(at)
    return found


def carrying(marks: Mapping[str, str]) -> set[int]:
    """The living processes whose environment, as it was when they were exec'ed, holds every one of `marks`.

    Processes of other users cannot be read and are left out (ours run as we do), and so are zombies: their environment
    reads as empty. Nothing where there is no /proc.
    """
    wanted = [os.fsencode(f"{name}={value}") for name, value in marks.items()]
    return {pid for pid in _pids() if _environment_holds(pid, wanted)}


def kill(pid: int, marks: Mapping[str, str] | None = None) -> None:
    """SIGKILL. With `marks`, only when the process still carries them: looked at again after it is held by a
    descriptor, so that a reused pid is spared.
    """
    if not hasattr(os, "pidfd_open"):
        _kill_by_pid(pid)
        return
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except OSError:  # a kernel before 5.3, or a filter that refuses the call
        _kill_by_pid(pid)
        return
    try:
        if marks and not _environment_holds(pid, [os.fsencode(f"{name}={value}") for name, value in marks.items()]):
            return
        signal.pidfd_send_signal(fd, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # gone, or not ours to signal: the caller looks again and reports who is left
    finally:
        os.close(fd)


def _kill_by_pid(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _environment_holds(pid: int, wanted: list[bytes]) -> bool:
    try:
        entries = set((PROC / str(pid) / "environ").read_bytes().split(b"\0"))
    except OSError:
        return False
    return all(entry in entries for entry in wanted)


def _parents() -> dict[int, int]:
    """pid -> parent's pid, of every process of the machine."""
    if not PROC.is_dir():
        import psutil

        return {one.pid: one.info["ppid"] for one in psutil.process_iter(["ppid"])}
    found: dict[int, int] = {}
    for pid in _pids():
        fields = _stat_fields(pid)
        if fields is not None:
            found[pid] = int(fields[1])
    return found


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except FileNotFoundError:
        return []


def _stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the third (state) on. The second, the name, may hold blanks and brackets."""
    try:
        fd = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.read(fd, STAT_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)
    return text[text.rindex(b")") + 2 :].decode().split()
