"""What control does with a process tree, as one small protocol: the real one here, a scripted one in the simulator."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stado_like.ambient import Ambient
from stado_worker.shim import process_table
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.could_not_start import CouldNotStart, StartFault
from stado_worker.shim.exit_status import Exit, decode
from stado_worker.shim.oom import OomWatch
from stado_worker.shim.preparing import Prepared
from stado_worker.shim.process import Child, Tree, start


@dataclass(frozen=True, slots=True)
class Gone:
    """The tree is gone, or would not go. `leftovers`: processes that outlived the leader and were killed; `stuck`:
    pids still there."""

    exit: Exit | None
    leftovers: int = 0
    stuck: tuple[int, ...] = ()
    out_of_memory: bool = False


class Runner(Protocol):
    def prepared(self, ready: Prepared) -> None:
        """Where the command runs and what is added to its environment, once that is known."""
        ...

    def tell(self, variables: Mapping[str, str]) -> None:
        """What is added to its environment last; the job's own word for it stands."""
        ...

    def start(self) -> None:
        """Raises `CouldNotStart`."""
        ...

    @property
    def leader(self) -> tuple[int, int | None] | None:
        """Pid and start time, for whoever cleans up after a dead supervisor; None where something else tells."""
        ...

    def leader_exit(self) -> Exit | None:
        """How the leader ended, or None while it runs."""
        ...

    def others_alive(self) -> bool:
        """Whether anything of the tree besides the leader lives."""
        ...

    def signal(self, name: str) -> None: ...

    def finish(self, within_s: float) -> Gone:
        """Kill and collect what is left of the whole tree."""
        ...

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...

    def wait_fd(self) -> int | None:
        """Readable when the leader has ended."""
        ...


class ProcessRunner:
    """A command of this machine."""

    _dated = True

    def __init__(
        self,
        folder: AttemptDir,
        command: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        group: AttemptGroup | None,
        ambient: Ambient,
        opened: Callable[[str], None] = lambda cwd: None,
    ) -> None:
        """`opened` is told the working directory once the log is there, before the command starts."""
        self._folder = folder
        self._command = command
        self._cwd = cwd
        self._env = env
        self._group = group
        self._ambient = ambient
        self._opened = opened
        self._child: Child | None = None
        self._tree: Tree | None = None
        self._oom: OomWatch | None = None

    def prepared(self, ready: Prepared) -> None:
        self._cwd = ready.cwd
        self._env = {**self._env, **ready.env}

    def tell(self, variables: Mapping[str, str]) -> None:
        self._env = {**variables, **self._env}

    def start(self) -> None:
        try:
            log_fd = self._folder.open_log()
        except OSError as error:
            raise CouldNotStart(
                f"The output of {self._folder.attempt_id} has nowhere to go on {self._ambient.host}: {error}",
                "See that machine's disk",
                fault=StartFault.MACHINE,
                command_exit=None,
            ) from error
        try:
            self._opened(self._cwd)
            self._oom = self._watch()
            self._child = start(
                self._command,
                cwd=self._cwd,
                env=self._env,
                log_fd=log_fd,
                group=self._group,
                attempt_id=self._folder.attempt_id,
                ambient=self._ambient,
                dated=False,
            )
        finally:
            os.close(log_fd)
        self._tree = Tree(self._child, self._group, ambient=self._ambient)

    def _watch(self) -> OomWatch:
        return OomWatch(self._group, self._ambient)

    @property
    def leader(self) -> tuple[int, int | None] | None:
        """Pid and start time, for whoever cleans up after a dead supervisor."""
        if self._child is None:
            return None
        if self._child.started is None and self._dated:
            self._child.started = process_table.started_ticks(self._child.pid)
        return self._child.pid, self._child.started

    def leader_exit(self) -> Exit | None:
        status = self._child.poll() if self._child is not None else None
        if status is None and self._tree is not None:
            self._tree.reap_orphans()
            if self._oom is not None:
                self._oom.look()
        return decode(status) if status is not None else None

    def others_alive(self) -> bool:
        if self._tree is None or self._child is None:
            return False
        return bool(self._tree.alive_pids() - {self._child.pid})

    def signal(self, name: str) -> None:
        if self._tree is not None:
            self._tree.signal(getattr(signal, name))

    def finish(self, within_s: float) -> Gone:
        if self._tree is None or self._child is None:
            return Gone(None)
        before = self._child.poll()
        ended = self._tree.kill_and_reap(within_s)
        oom = self._oom is not None and self._oom.happened(decode(before) if before is not None else None)
        self._child.close()
        return Gone(decode(ended.status) if ended.status is not None else None, ended.leftovers, ended.stuck, oom)

    def freeze(self) -> None:
        self.signal("SIGSTOP")

    def thaw(self) -> None:
        self.signal("SIGCONT")

    def wait_fd(self) -> int | None:
        return self._child.pidfd if self._child is not None else None
