"""Starting a task's command and killing all of it.

Not obvious because the leader is the least of it: children leave its group by setsid, outlive it, hold its output,
ignore signals. So the whole tree is known by one of three means, the first that works: the attempt's control group;
else all descendants of the supervisor, which is a subreaper (an orphan of the tree becomes its child); and after a
dead supervisor every process whose environment holds the attempt's id. An ended leader is left a zombie until the end:
while it is one, its pid and its group's number name nobody else.

How the command is forked is `forking`'s question.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stado_like.ambient import REAL, Ambient
from stado_worker.shim import forking, process_table
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.could_not_start import (
    NOT_EXECUTABLE,
    CouldNotStart,
    StartFault,
    check_directory,
    explain,
)
from stado_worker.shim.exit_status import encode_wait_status

__all__ = [
    "Child",
    "CouldNotStart",
    "Ended",
    "Killed",
    "StartFault",
    "Tree",
    "become_subreaper",
    "kill_attempt",
    "start",
]

ATTEMPT_ID = "STADO_ATTEMPT_ID"
_LIBC: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37


def become_subreaper() -> bool:
    """Adopt the orphans of our tree from now on. False where the system has no such thing (macOS)."""
    return _LIBC is not None and _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def _is_subreaper() -> bool:
    if _LIBC is None:
        return False
    answer = ctypes.c_int(0)
    return _LIBC.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0 and answer.value == 1


@dataclass(slots=True)
class Child:
    """The leader of a task: first process of a session and group of its own. `started`: `process_table.started_ticks`.

    `pidfd` becomes readable when it ends; None where the system has none.
    """

    pid: int
    started: int | None
    pidfd: int | None
    status: int | None = None
    reaped: bool = False
    _popen: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def poll(self) -> int | None:
        """The wait status once it ended, else None. It stays a zombie until the tree is reaped."""
        if self.status is None and not self.reaped:
            if not hasattr(os, "waitid"):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.note_reaped(status)
                return self.status
            seen = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if seen is not None:
                self.status = encode_wait_status(seen.si_code, seen.si_status)
        return self.status

    def wait(self, within_s: float, ambient: Ambient = REAL) -> int | None:
        """The wait status, or None when it still ran after `within_s`."""
        deadline_s = ambient.boot_s() + within_s
        while self.poll() is None:
            left_s = deadline_s - ambient.boot_s()
            if left_s <= 0:
                return None
            if self.pidfd is None:
                ambient.sleep(min(left_s, 0.01))
            else:
                poller = select.poll()
                poller.register(self.pidfd, select.POLLIN)
                poller.poll(left_s * 1000)
        return self.status

    def note_reaped(self, status: int) -> None:
        """Its status was collected: from now on its pid may name another process."""
        self.status, self.reaped = status, True
        if self._popen is not None:
            self._popen.returncode = os.waitstatus_to_exitcode(status)  # or subprocess would wait for it again

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


def start(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log_fd: int,
    group: AttemptGroup | None,
    attempt_id: str,
    ambient: Ambient = REAL,
    dated: bool = True,
) -> Child:
    """Start `command` in a session of its own, nothing on its standard input, both outputs to `log_fd` (opened to
    append).

    With a `group`, the caller must be a member already. `dated`: look up when it started, which costs a short task
    three percent. Raises CouldNotStart.
    """
    host = ambient.host
    check_directory(cwd, host)
    marked = {**env, ATTEMPT_ID: attempt_id}
    try:
        if group is not None and forking.is_ready():
            pid, popen = forking.spawned(command, cwd, marked, log_fd), None
        else:
            popen = forking.popened(command, cwd, marked, log_fd, dies_with_us=group is None)
            pid = popen.pid
    except OSError as error:
        raise explain(error, command, cwd, marked, host) from error
    except ValueError as error:  # a NUL byte, or text that has no bytes
        raise CouldNotStart(
            f"Cannot execute {command[0]!r} on {host}: an argument or variable cannot be passed on ({error})",
            "Arguments and variables may not hold NUL characters",
            fault=StartFault.NOT_EXECUTABLE,
            command_exit=NOT_EXECUTABLE,
        ) from error
    started = process_table.started_ticks(pid) if dated else None
    return Child(pid, started, _pidfd(pid), _popen=popen)


def _pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:  # a kernel before 5.3, or a filter that refuses the call: `wait` polls instead
        return None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a tree ended. `status`: the leader's wait status, None when it would not die. `leftovers`: how many other
    processes were still alive and had to be killed. `stuck`: those that are alive still (in the kernel, or not ours to
    kill).
    """

    status: int | None
    leftovers: int
    stuck: tuple[int, ...]


class Tree:
    """All processes of one running task, seen by its supervisor. The supervisor has no other children."""

    def __init__(self, child: Child, group: AttemptGroup | None, *, ambient: Ambient = REAL) -> None:
        self.child = child
        self.group = group
        self._ambient = ambient
        self._subreaper = _is_subreaper()

    def signal(self, number: int) -> bool:
        """Send a signal to the leader's whole process group. False: nobody is left in it, or the leader was reaped."""
        if self.child.reaped:
            return False
        try:
            os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def alive_pids(self) -> set[int]:
        """Every living process of the tree; zombies are not alive."""
        if self.group is not None:
            found = set(self.group.pids()) - {os.getpid()}
            if found:
                return found
        return process_table.descendants([os.getpid()])

    def reap_orphans(self) -> None:
        """Collect ended orphans of a running task, so that it does not fill the process table. The leader stays."""
        if not hasattr(os, "waitid"):
            return
        while True:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if seen is None or seen.si_pid == self.child.pid:
                return
            os.waitpid(seen.si_pid, os.WNOHANG)

    def kill_and_reap(self, within_s: float) -> Ended:
        """SIGKILL the whole tree, collect every child, until nobody is left or `within_s` passed.

        For a leader that ended by itself as for one that is to be killed: its own status is kept either way.
        """
        deadline_s = self._ambient.boot_s() + within_s
        seen: set[int] = set()
        wait_s = 0.0005
        if not self._subreaper and self.group is None:
            self.signal(signal.SIGKILL)  # orphans of the leader are not ours to find: at least the whole group goes
        while True:
            children_left = self._reap()
            # A subreaper without children has no descendants either: the common end needs no look at the process table.
            alive = self.alive_pids() if children_left or self._members() else set()
            if not alive and not children_left:
                return self._ended(seen, set())
            seen |= alive
            left_s = deadline_s - self._ambient.boot_s()
            if left_s <= 0:
                return self._ended(seen, alive)
            if self._members() and self.group is not None:
                self.group.kill_others(os.getpid(), min(left_s, 0.1), self._ambient)
            else:
                for pid in alive:
                    process_table.kill(pid)
            self._ambient.sleep(wait_s)
            wait_s = min(2 * wait_s, 0.02)

    def _members(self) -> set[int]:
        return set(self.group.pids()) - {os.getpid()} if self.group is not None else set()

    def _ended(self, seen: set[int], stuck: set[int]) -> Ended:
        return Ended(self.child.status, len(seen - {self.child.pid}), tuple(sorted(stuck)))

    def _reap(self) -> bool:
        """Collect what ended. True while a living child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child.pid:
                self.child.note_reaped(status)


@dataclass(frozen=True, slots=True)
class Killed:
    """What `kill_attempt` found. `stuck`: alive still when the time was up."""

    killed: tuple[int, ...]
    stuck: tuple[int, ...]


def kill_attempt(
    attempt_id: str,
    group_name: str | None,
    *,
    leader: tuple[int, int | None] | None = None,
    marks: Mapping[str, str] | None = None,
    within_s: float = 5.0,
    ambient: Ambient = REAL,
) -> Killed:
    """Kill what is left of an attempt whose supervisor is gone: its control group, then every process that carries its
    id, what descends from those, and the leader (pid, start time) if it is still that process.

    `marks`: more of the environment that must match, such as STADO_STOP_FILE: attempts of other stores on this machine
    may have the same id. Never touches this process or what is above it.
    """
    deadline_s = ambient.boot_s() + within_s
    wanted = {ATTEMPT_ID: attempt_id, **(marks or {})}
    spared = process_table.ancestors_and_self()
    seen: set[int] = set()
    group = AttemptGroup.find(group_name) if group_name is not None else None
    if group is not None:
        seen |= set(group.pids())
        group.kill_all(within_s, ambient)
        group.remove()
    wait_s, clean_looks = 0.0005, 0
    while True:
        carrying = process_table.carrying(wanted) - spared
        roots = carrying | ({leader[0]} if leader is not None and process_table.same_process(*leader) else set())
        alive = roots | (process_table.descendants(roots) - spared if roots else set())
        if group is not None:
            alive |= set(group.pids())
        clean_looks = 0 if alive else clean_looks + 1
        seen |= alive
        # Whoever forked during a look may be missing from it: after a kill, nobody is left only when two looks say so.
        if clean_looks == 2 or (clean_looks == 1 and not seen):
            return Killed(tuple(sorted(seen)), ())
        if ambient.boot_s() >= deadline_s:
            return Killed(tuple(sorted(seen - alive)), tuple(sorted(alive)))
        for pid in alive:
            process_table.kill(pid, wanted if pid in carrying else None)
        ambient.sleep(wait_s)
        wait_s = min(2 * wait_s, 0.02)
