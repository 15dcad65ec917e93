"""The file `$STADO_PROGRESS`: what a task says of how far it is, read again only when it changed.

Not obvious because programs write it in two ways. Some append a line per step, for weeks; some write the whole small
file anew each time, also with fewer bytes or the same number of them. So a small file is read whole at every change,
and a large one is read on from where reading stopped, a bounded part at a time. A last line without its end may be
half written: it counts once the file has rested, or the task has ended.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stado_like.job.pairs import Pairs, Value, readable, step_of
from stado_like.job.straggler import sampled

WHOLE_BYTES = 64 * 1024
AT_ONCE_BYTES = 256 * 1024
LONGEST_LINE_BYTES = 8 * 1024
Stamp = tuple[int, int, int]


class ProgressFile:
    """`step` samples cover `window_s`; 0: none are kept, nobody compares this task with others."""

    def __init__(self, path: Path, *, window_s: float = 0.0) -> None:
        self._path = path
        self._window_s = window_s
        self._pairs = Pairs()
        self._offset = 0
        self._rest = b""
        self._stamp: Stamp | None = None
        self._unread = False
        self.values: dict[str, Value] = {}
        self.at = 0.0
        self.steps: tuple[tuple[float, float], ...] = ()

    @property
    def ignored(self) -> int:
        """How many words were no pairs, or had no room."""
        return self._pairs.ignored + len(self._pairs.left_out)

    def look(self, now: float, *, ended: bool = False) -> bool:
        """Read what is new; whether the task wrote to it. `now`: store time. A file that cannot be read says
        nothing: that is no trouble of the task's."""
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            told = os.fstat(file)
            if not stat.S_ISREG(told.st_mode):
                return False
            stamp = (told.st_ino, told.st_size, told.st_mtime_ns)
            changed = stamp != self._stamp
            if not changed and not self._unread and not self._rest:
                return False
            self._read(file, told.st_size, anew=self._stamp is None or stamp[0] != self._stamp[0], changed=changed)
            self._stamp = stamp
        except OSError:
            return False
        finally:
            os.close(file)
        if self._rest and not self._unread and (ended or not changed):
            self._pairs.words(readable(self._rest))
            self._rest = b""
        self._note(now)
        return changed

    def _read(self, file: int, size: int, *, anew: bool, changed: bool) -> None:
        if changed and (anew or size <= WHOLE_BYTES or size < self._offset):
            self._pairs, self._offset, self._rest = Pairs(), 0, b""
        read = os.pread(file, AT_ONCE_BYTES, self._offset)
        self._offset += len(read)
        self._unread = self._offset < size
        whole, _, rest = (self._rest + read).rpartition(b"\n")
        for line in whole.splitlines():
            self._pairs.words(readable(line[:LONGEST_LINE_BYTES]))
        if len(rest) > LONGEST_LINE_BYTES:  # no line of ours: forgotten, or it would be kept for ever
            self._pairs.ignored += 1
            rest = b""
        self._rest = rest

    def _note(self, now: float) -> None:
        values = self._pairs.typed()
        if values == self.values:
            return
        self.values, self.at = values, now
        step = step_of(values)
        if step is not None and self._window_s:
            self.steps = sampled(self.steps, now, step, self._window_s)

    def read_to_end(self, now: float, *, most_rounds: int = 64) -> None:
        """What is left after the task has ended: all of it, or the first 16 MiB."""
        for _ in range(most_rounds):
            self.look(now, ended=True)
            if not self._unread:
                return
