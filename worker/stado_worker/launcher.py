"""How an agent has supervisors started, nudged, and their remains removed: one small protocol.

The real one here forks through the nursery and holds a pidfd per supervisor, which becomes readable at its end. The simulator has its own.
A supervisor's life is never judged by its pid: `AttemptDir.is_alive` asks the lock. The pidfd only says *when* to ask.
"""

from __future__ import annotations

import os
import selectors
import signal
from dataclasses import dataclass, field
from typing import Protocol

from stado_like.ambient import REAL, Ambient
from stado_worker.nursery import Nursery
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.cgroup import group_name
from stado_worker.shim.process import kill_attempt


class Launcher(Protocol):
    def launch(self, folder: AttemptDir) -> None:
        """Have a supervisor started. Raises `NurseryFailed` (none was) or `LaunchUnknown` (perhaps)."""
        ...

    def adopt(self, folder: AttemptDir) -> None:
        """Watch a supervisor that an earlier agent started."""
        ...

    def forget(self, folder: AttemptDir) -> None: ...

    def nudge(self, folder: AttemptDir) -> None:
        """Tell a supervisor that there is news."""
        ...

    def remove_remains(self, folder: AttemptDir) -> tuple[int, ...]:
        """Kill what a dead supervisor left. Returns the pids that would not die."""
        ...


@dataclass(slots=True)
class NurseryLauncher:
    """Supervisors of this machine. `selector` is the agent's: pidfds are registered in it with their attempt's id."""

    nursery: Nursery
    selector: selectors.BaseSelector
    ambient: Ambient = REAL
    _pidfds: dict[str, int] = field(default_factory=dict)

    def launch(self, folder: AttemptDir) -> None:
        self._watch(folder, self.nursery.launch(folder.path))

    def adopt(self, folder: AttemptDir) -> None:
        pid = (folder.read_proc() or {}).get("pid")
        if isinstance(pid, int):
            self._watch(folder, pid)

    def _watch(self, folder: AttemptDir, pid: int) -> None:
        self.forget(folder)
        if not hasattr(os, "pidfd_open"):
            return
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            return  # gone already, or no pidfds here: the agent asks the lock now and then anyway
        self._pidfds[folder.attempt_id] = fd
        self.selector.register(fd, selectors.EVENT_READ, folder.attempt_id)

    def forget(self, folder: AttemptDir) -> None:
        fd = self._pidfds.pop(folder.attempt_id, None)
        if fd is not None:
            self.selector.unregister(fd)
            os.close(fd)

    def nudge(self, folder: AttemptDir) -> None:
        """Only once `proc.json` stands: before that the signal has no handler yet and would kill it."""
        pid = (folder.read_proc() or {}).get("pid")
        if not isinstance(pid, int) or not folder.is_alive():
            return
        try:
            os.kill(pid, signal.SIGUSR1)
        except ProcessLookupError:
            return

    def remove_remains(self, folder: AttemptDir) -> tuple[int, ...]:
        proc = folder.read_proc() or {}
        leader = proc.get("leader")
        killed = kill_attempt(
            folder.attempt_id,
            group_name(folder.path),
            leader=(leader[0], leader[1]) if leader else None,
            marks={"STADO_STOP_FILE": str(folder.stop)},
            ambient=self.ambient,
        )
        return killed.stuck
