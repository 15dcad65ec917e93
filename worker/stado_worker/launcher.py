"""How an agent has supervisors started, nudged, and their remains removed: one small protocol.

The real one here forks through the nursery and holds a pidfd per supervisor, which becomes readable at its end. The
simulator has its own. A supervisor's life is never judged by its pid: `AttemptDir.is_alive` asks the lock. The
pidfd only says *when* to ask.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from stado_like.ambient import REAL, Ambient
from stado_like.errors import BadRecord
from stado_like.job.keys import AttemptId
from stado_worker.nursery import KIND, Nursery
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.block_ran import rank_folder, ranks_in, read_ran
from stado_worker.shim.cgroup import group_name
from stado_worker.shim.process import kill_attempt

WARM_IDLE_S = 5.0
MESSAGE_BYTES = 65_536


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
        """Kill what an attempt left on this machine, its supervisor too should it live. Returns the pids that would
        not die."""
        ...


@dataclass(slots=True)
class _Warm:
    """A supervisor process that has finished a short task and waits for another."""

    channel: socket.socket
    since_s: float
    group: str


@dataclass(slots=True)
class NurseryLauncher:
    """Supervisors of this machine.

    Each one started by us has a channel, registered in the agent's `selector` with its attempt's id: readable means
    that the attempt has ended (the process says that it is idle, or is gone). An adopted one has a pidfd instead.
    """

    nursery: Nursery
    selector: selectors.BaseSelector
    ambient: Ambient = REAL
    _channels: dict[str, socket.socket] = field(default_factory=dict)
    _pidfds: dict[str, int] = field(default_factory=dict)
    _warm: list[_Warm] = field(default_factory=list)
    _groups: dict[str, str] = field(default_factory=dict)
    """Attempt -> its supervisor's control group: known here too, for a task may remove its own folder."""
    _went_on: set[str] = field(default_factory=set)
    """Attempts that were begun in a block, whose supervisor's channel is theirs by now."""

    def launch(self, folder: AttemptDir) -> None:
        self.forget(folder)
        channel, group = self._hand_to_a_warm_one(folder)
        if channel is None:
            group = group_name(folder.path)
            channel, theirs = socket.socketpair(socket.AF_UNIX, KIND)
            try:
                self.nursery.launch(folder.path, theirs)
            except BaseException:
                channel.close()
                raise
            finally:
                theirs.close()
        self._channels[folder.attempt_id] = channel
        self._groups[folder.attempt_id] = group
        self.selector.register(channel, selectors.EVENT_READ, folder.attempt_id)

    def _hand_to_a_warm_one(self, folder: AttemptDir) -> tuple[socket.socket | None, str]:
        """An idle supervisor that took the attempt. One that died with the message unread leaves the attempt
        without a launch, which the agent notices like any other supervisor that never came to life."""
        while self._warm:
            warm = self._warm.pop()
            try:
                warm.channel.sendall(orjson.dumps({"attempt_dir": str(folder.path)}) + b"\n")
                return warm.channel, warm.group
            except OSError:
                warm.channel.close()
        return None, ""

    def adopt(self, folder: AttemptDir) -> None:
        if folder.attempt_id in self._went_on:
            self._went_on.discard(folder.attempt_id)
            return  # the channel of its block tells of it
        self.forget(folder)
        self._groups[folder.attempt_id] = folder.group_name() or ""
        pid = _proc(folder).get("pid")
        if not isinstance(pid, int) or not hasattr(os, "pidfd_open"):
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
        channel = self._channels.pop(folder.attempt_id, None)
        if channel is not None:
            self.selector.unregister(channel)
            self._keep_warm(channel, folder)
        elif fd is None:
            self._groups.pop(folder.attempt_id, None)  # the last word on this attempt

    def _keep_warm(self, channel: socket.socket, folder: AttemptDir) -> None:
        try:
            said = channel.recv(MESSAGE_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            said = b""
        told = orjson.loads(said) if said else {}
        group = self._groups.get(folder.attempt_id, "")
        if told.get("idle") == str(folder.path):
            self._warm.append(_Warm(channel, self.ambient.boot_s(), group))
        elif "goes_on" in told:
            rank = os.path.basename(told["goes_on"])
            self._channels[rank], self._groups[rank] = channel, group
            self._went_on.add(rank)
            self.selector.register(channel, selectors.EVENT_READ, rank)
        else:
            channel.close()

    def trim(self) -> None:
        """Let idle supervisors go after some seconds; they end at end of file."""
        now_s = self.ambient.boot_s()
        kept = [one for one in self._warm if now_s - one.since_s <= WARM_IDLE_S]
        for one in self._warm:
            if one not in kept:
                one.channel.close()
        self._warm = kept

    def nudge(self, folder: AttemptDir) -> None:
        """Only once `proc.json` stands: before that the signal has no handler yet and would kill it."""
        pid = _proc(folder).get("pid")
        if not isinstance(pid, int) or not folder.is_alive():
            return
        try:
            os.kill(pid, signal.SIGUSR1)
        except ProcessLookupError:
            return

    def remove_remains(self, folder: AttemptDir) -> tuple[int, ...]:
        self._kill_supervisor(folder)
        leader = _proc(folder).get("leader")
        killed = kill_attempt(
            folder.attempt_id,
            folder.group_name() or self._groups.get(folder.attempt_id) or None,
            leader=(leader[0], leader[1]) if leader else None,
            marks={"STADO_STOP_FILE": str(folder.stop)},
            ambient=self.ambient,
        )
        return killed.stuck + self._kill_rank(folder)

    def _kill_rank(self, folder: AttemptDir) -> tuple[int, ...]:
        """Of a block: what is left of the rank that had begun. Its processes carry its own id."""
        ran = read_ran(folder)
        ranks = ranks_in(folder) if ran is not None else None
        if ran is None or ranks is None:
            return ()
        begun = [ran.begun] if ran.whole else [one for one in ranks if one not in ran.ended]
        stuck: tuple[int, ...] = ()
        for one in begun:
            if one is None:
                continue
            rank = rank_folder(folder.path.parent, AttemptId.parse(folder.attempt_id), one)
            if rank.path.exists():
                marks = {"STADO_STOP_FILE": str(rank.stop)}
                stuck += kill_attempt(rank.attempt_id, None, marks=marks, ambient=self.ambient).stuck
        return stuck

    def _kill_supervisor(self, folder: AttemptDir) -> None:
        """Only one that holds the lock of this very attempt: a warm one may be at another by now."""
        pid = _proc(folder).get("pid")
        if isinstance(pid, int) and folder.is_alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _proc(folder: AttemptDir) -> dict[str, Any]:
    """What the supervisor said of itself; nothing where that cannot be read: group and environment tell as well."""
    try:
        return folder.read_proc() or {}
    except BadRecord:
        return {}
