"""A control group per attempt, so that its whole tree can be killed, whatever its members did to get away.

Not obvious because nothing else holds them: a process group is left by setsid, PDEATHSIG reaches one process, and a
subreaper ends with the supervisor. A group on the version 2 tree needs no controllers for this, so it works on hybrid
machines and in any subtree we may write.

The supervisor joins the group before it starts the command: every descendant is then born inside, and the start needs
no code between fork and exec (vfork: twice the throughput). To kill the others at the end it steps out again and kills
the whole group with one write, which no fork outruns.
"""

from __future__ import annotations

import errno
import hashlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stado_like.ambient import REAL, Ambient
from stado_worker.machine.hierarchies import PROC, version_two

PREFIX = "stado-"
MOST_GROUPS_LOOKED_AT = 20_000
_REFUSED = frozenset(
    getattr(errno, name) for name in ("EACCES", "EPERM", "EROFS", "ENOSPC", "EAGAIN", "EBUSY", "EOPNOTSUPP", "ENOENT")
)
"""What a kernel answers where groups may not be made or entered: then there is none, and the fallback is used."""


def group_name(attempt_path: Path) -> str:
    """The group of the attempt kept in this folder. The folder's path is part of it: two workers on one machine with
    different stores may run attempts of the same id.
    """
    mark = hashlib.sha256(os.fsencode(attempt_path)).hexdigest()[:10]
    return f"{PREFIX}{attempt_path.name[:180]}-{mark}"


@dataclass(frozen=True, slots=True)
class AttemptGroup:
    path: Path

    @classmethod
    def make(cls, name: str, proc: Path = PROC) -> AttemptGroup | None:
        """A group below our own, or None where none can be made (no version 2 tree, no right to write in it)."""
        tree = version_two(proc)
        if tree is None:
            return None
        path = tree.group / name
        try:
            path.mkdir()
        except FileExistsError:
            pass
        except OSError as error:
            if error.errno in _REFUSED:
                return None
            raise
        return cls(path)

    @classmethod
    def join(cls, name: str) -> AttemptGroup | None:
        """Make the group and move the calling process into it; None where either is refused."""
        group = cls.make(name)
        if group is None or group.enter(os.getpid()):
            return group
        group.remove()
        return None

    @classmethod
    def sweep(cls, proc: Path = PROC) -> int:
        """Remove the empty groups that killed supervisors left beside us. One that is in use refuses."""
        tree = version_two(proc)
        removed = 0
        for path in tree.group.glob(f"{PREFIX}*") if tree is not None else ():
            try:
                path.rmdir()
                removed += 1
            except OSError:
                continue
        return removed

    @classmethod
    def beside_us(cls, name: str, proc: Path = PROC) -> AttemptGroup | None:
        """The group of that name below our own, where our supervisors make theirs; no search."""
        tree = version_two(proc)
        if tree is None or not (tree.group / name).is_dir():
            return None
        return cls(tree.group / name)

    @classmethod
    def find(cls, name: str, proc: Path = PROC) -> AttemptGroup | None:
        """The group of that name, wherever it lies: the worker that made it may have been started from another group
        than we.
        """
        tree = version_two(proc)
        if tree is None:
            return None
        near = tree.group / name
        if near.is_dir():
            return cls(near)
        for looked_at, (path, folders, _) in enumerate(os.walk(tree.mount)):
            if name in folders:
                return cls(Path(path) / name)
            if looked_at >= MOST_GROUPS_LOOKED_AT:
                break
        return None

    def enter(self, pid: int) -> bool:
        """Move a process, all its threads, into the group. False where the kernel refuses."""
        return _write(self.path / "cgroup.procs", str(pid))

    def step_out(self, pid: int) -> bool:
        """Move a process back to the group above."""
        return _write(self.path.parent / "cgroup.procs", str(pid))

    def pids(self) -> list[int]:
        """The living members, of groups below too. Zombies are not among them."""
        found: list[int] = []
        for path in [self.path] if self._is_single() else self._groups():
            try:
                fd = os.open(f"{path}/cgroup.procs", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    text = _read_all(fd)
                finally:
                    os.close(fd)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENODEV):
                    continue  # removed while we looked
                raise
            # 0 stands for a process of a pid namespace we cannot see.
            found += [int(word) for word in text.split() if word != b"0"]
        return found

    def _is_single(self) -> bool:
        """Whether no group lies below, as most tasks leave it: the kernel counts a link for each. A walk through an
        empty folder was a tenth of what a short task cost."""
        try:
            return os.stat(self.path).st_nlink == 2
        except OSError:
            return False

    def kill_others(self, keep_pid: int, within_s: float = 5.0, ambient: Ambient = REAL) -> list[int]:
        """Kill every member but `keep_pid`, until none is left. Returns those that would not die in time."""
        if set(self.pids()) <= {keep_pid}:
            return []
        if self._can_kill() and self.step_out(keep_pid):
            return self.kill_all(within_s, ambient)
        return self._kill_until_gone(keep_pid, within_s, ambient)

    def kill_all(self, within_s: float = 5.0, ambient: Ambient = REAL) -> list[int]:
        """Kill every member, until none is left. Returns those that would not die in time."""
        return self._kill_until_gone(None, within_s, ambient)

    def remove(self) -> bool:
        """Remove the group and the groups below it; a caller that is still inside steps out first. False: somebody is
        still inside.
        """
        own = os.getpid()
        if own in self.pids():
            self.step_out(own)
        for path in sorted(self._groups(), key=lambda one: len(one.parts), reverse=True):
            try:
                path.rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno in (errno.EBUSY, errno.ENOTEMPTY):
                    return False
                raise
        return True

    def oom_kills(self) -> int | None:
        """How often the kernel killed in here for want of memory; None where the memory controller is not on."""
        try:
            fd = os.open(f"{self.path}/memory.events", os.O_RDONLY | os.O_CLOEXEC)
            try:
                lines = _read_all(fd).splitlines()
            finally:
                os.close(fd)
        except OSError:
            return None
        return next((int(line.split()[1]) for line in lines if line.startswith(b"oom_kill ")), None)

    def _can_kill(self) -> bool:
        """Since Linux 5.14."""
        return (self.path / "cgroup.kill").exists()

    def _kill_until_gone(self, keep_pid: int | None, within_s: float, ambient: Ambient) -> list[int]:
        deadline_s = ambient.boot_s() + within_s
        wait_s = 0.0005
        while True:
            left = [pid for pid in self.pids() if pid != keep_pid]
            if not left:
                return []
            if ambient.boot_s() >= deadline_s:
                return left
            if keep_pid is not None or not self._can_kill() or not _write(self.path / "cgroup.kill", "1"):
                _kill_each(left)
            ambient.sleep(wait_s)
            wait_s = min(2 * wait_s, 0.02)

    def _groups(self) -> Iterator[Path]:
        for path, _, _ in os.walk(self.path):
            yield Path(path)


def _read_all(fd: int) -> bytes:
    text = b""
    while more := os.read(fd, 1 << 16):
        text += more
    return text


def _kill_each(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue  # gone, or not ours to signal: then it is still a member at the next look, and reported


def _write(file: Path, text: str) -> bool:
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _REFUSED:
            return False
        raise
    try:
        os.write(fd, text.encode())
    except ProcessLookupError:  # the process ended before it could be moved: it needs no group
        return True
    except OSError as error:
        if error.errno in _REFUSED:
            return False
        raise
    finally:
        os.close(fd)
    return True
