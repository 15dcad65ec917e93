"""How a command is forked, which decides how many short ones a machine starts.

Where the control group gives death with the supervisor (the agent kills the group), it is started by vfork, which
forbids code between fork and exec: by `posix_spawn` in a process that was made ready for it, else by `subprocess`.
Without a group by fork, PDEATHSIG, and a look at the parent's pid, for a parent that died before the signal was asked
for. PDEATHSIG reaches the leader only, and fires when the forking *thread* ends: start commands from a thread that
lives as long as the task.

Either way the command has a session of its own, nothing on its standard input, both outputs on the log, and of ours
no other descriptor, no blocked and no ignored signal.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

_LIBC: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
_RESTORED = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ") if hasattr(signal, name)]
"""What Python ignores, and restores in what `subprocess` starts."""


def popened(
    command: Sequence[str], cwd: str, env: Mapping[str, str], log_fd: int, *, dies_with_us: bool
) -> subprocess.Popen[bytes]:
    """`dies_with_us`: by PDEATHSIG, which costs a fork instead of a vfork."""
    before_exec = _belt(os.getpid()) if dies_with_us else None
    with _clean_signals():
        return subprocess.Popen(
            list(command),
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            close_fds=True,
            restore_signals=True,
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509 - takes no lock and imports nothing: safe beside other threads
        )


def spawned(command: Sequence[str], cwd: str, env: Mapping[str, str], log_fd: int) -> int:
    """The same in a process that `make_ready` was called in, at a third of the cost to us: what `subprocess` does
    beside the vfork is twice the work of it. The directory is changed here and back, for a spawn knows no other way: a
    supervisor names everything by its whole path."""
    opened = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    actions = [opened, (os.POSIX_SPAWN_DUP2, log_fd, 1), (os.POSIX_SPAWN_DUP2, log_fd, 2)]
    failed: OSError | None = None
    os.chdir(cwd)
    try:
        for path in _candidates(command[0], env):
            try:
                return os.posix_spawn(
                    path, list(command), env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=_RESTORED
                )
            except (FileNotFoundError, NotADirectoryError) as absent:
                failed = failed or absent
            except OSError as refused:  # what is there and cannot run is told rather than what is not there
                absent_before = isinstance(failed, (FileNotFoundError, NotADirectoryError))
                failed = refused if failed is None or absent_before else failed
    finally:
        os.chdir("/")
    raise failed or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])


def _candidates(name: str, env: Mapping[str, str]) -> list[str]:
    """Where a command may lie, as `subprocess` looks for it: in the directories of its own PATH."""
    if "/" in name:
        return [name]
    possible = [os.path.join(folder, name) for folder in os.get_exec_path(env)]
    return [path for path in possible if os.path.lexists(path)]


def _belt(parent_pid: int) -> Callable[[], None]:
    """Runs in the child between fork and exec: only calls that were prepared before."""

    def die_with_parent() -> None:
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent_pid:
            os.kill(os.getpid(), signal.SIGKILL)

    return die_with_parent


def ignore(_number: int, _frame: FrameType | None) -> None:
    """A handler that does nothing: for us the signal is ignored, and it does not survive exec."""


def make_ready(*more: signal.Signals) -> None:
    """For a process that starts commands again and again: what it ignores, and `more`, it ignores by a handler from
    now on, nothing is blocked, and no descriptor but the first three outlives an exec. Starting then need not look
    through all signals and descriptors: that was a fifth of what a short task cost. Whoever calls this keeps to it."""
    for number in {*_ignored(), *more}:
        signal.signal(number, ignore)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for fd in [int(name) for name in os.listdir("/dev/fd")]:
        with suppress(OSError):  # the one of the listing itself is closed by now
            if fd > 2:
                os.set_inheritable(fd, False)
    _ready.add(os.getpid())


_ready: set[int] = set()
"""This process, once it called `make_ready`; a pid, for a fork starts anew."""


def is_ready() -> bool:
    return os.getpid() in _ready


def _ignored() -> list[int]:
    return [
        number
        for number in signal.valid_signals()
        if number not in _RESTORED and signal.getsignal(number) is signal.SIG_IGN
    ]


@contextmanager
def _clean_signals() -> Iterator[None]:
    """While a command is started: nothing blocked, and nothing ignored but what `subprocess` restores itself.

    Ignored signals would stay ignored in the command (a worker started by `nohup` or in a shell's background); a
    handler does not survive exec.
    """
    if is_ready():
        yield
        return
    ignored = _ignored()
    for number in ignored:
        signal.signal(number, ignore)
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
