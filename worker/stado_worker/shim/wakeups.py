"""What wakes the control thread of a supervisor: a signal, the other thread, the end of the command.

Made once per process, for all the tasks that it serves one after another: a pipe, a selector and a handler for each
were a tenth of what a short task cost. A wake-up that was meant for the task before costs the next one a look.
"""

from __future__ import annotations

import os
import selectors
import signal
from types import FrameType


class Wakeups:
    """`nudged`: SIGUSR1 came: there is news of this attempt."""

    def __init__(self) -> None:
        self.nudged = False
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._read, selectors.EVENT_READ)
        signal.signal(signal.SIGUSR1, self._nudged)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def close(self) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        self._selector.close()
        os.close(self._read)
        os.close(self._write)

    def _nudged(self, _number: int, _frame: FrameType | None) -> None:
        """Runs between two instructions of the control thread, which may hold any lock: the pipe does the rest."""
        self.nudged = True

    def wake(self) -> None:
        try:
            os.write(self._write, b"w")
        except BlockingIOError:
            return  # full of wake-ups already

    def watch(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def forget(self, fd: int) -> None:
        """Also after `fd` was closed: the kernel has forgotten it then, and the selector passes over that."""
        self._selector.unregister(fd)

    def wait(self, most_s: float) -> bool:
        """Until something happens. True: somebody woke us, or a signal did."""
        woken = any(key.fd == self._read for key, _ in self._selector.select(most_s))
        if woken:
            self._drain()
        return woken

    def _drain(self) -> None:
        try:
            while os.read(self._read, 512):
                pass
        except BlockingIOError:
            return
