"""Whether a running task still shows signs of work: its log, its progress, its checkpoints.

Not obvious because silence is counted in time in which the task could have spoken. A machine that was suspended, a
tree that we froze ourselves, an I/O thread that hung in a request: none of that is the task's silence, so a gap
between two looks counts as a few looks and no more. And because a checkpoint may lie in a directory or be written
straight to the store, both are looked at before a task is called stalled; a store that does not answer is no evidence.

A stalled task is marked, and unmarked when it writes again. Where its run says so it is stopped instead, with grace,
and restarted like one that failed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from stado_like.ambient import Ambient
from stado_like.job import reasons
from stado_like.job.states import Cause, TaskState
from stado_like.job.terms import Stall
from stado_worker.shim.life import Gate, Life
from stado_worker.shim.progress import ProgressFile

LOOK_EVERY_S = 10.0
LOOK_AT_LEAST_S = 0.25
GAP_LOOKS = 3
"""As so many looks a longer gap counts."""
ASK_STORE_EVERY_S = 60.0
MOST_FILES = 2_000


class Watch:
    """Reads the progress file, and judges the silence where `stall` says what counts as one. Belongs to the I/O
    thread."""

    def __init__(
        self,
        life: Life,
        ambient: Ambient,
        progress: ProgressFile,
        log_size: Callable[[], int],
        *,
        stall: Stall | None = None,
        checkpoint_dir: Path | None = None,
        checkpoint_age_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`checkpoint_dir`: where the program saves; `checkpoint_age_s`: age of the newest object under this attempt's
        own checkpoints in the store, which may raise `StoreError`."""
        self.progress = progress
        self._life = life
        self._ambient = ambient
        self._log_size = log_size
        self._stall = stall
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_age_s = checkpoint_age_s
        self.cadence_s = LOOK_EVERY_S
        if stall is not None:
            self.cadence_s = min(LOOK_EVERY_S, max(LOOK_AT_LEAST_S, stall.after_s / 4))
        self._looked_s = ambient.boot_s()
        self._seen_log = 0
        self._silent_s = 0.0
        self._asked_store_s: float | None = None

    def look(self) -> None:
        """Raises `StoreError` when the store could not be asked: nothing was judged then."""
        now_s = self._ambient.boot_s()
        passed_s = min(now_s - self._looked_s, GAP_LOOKS * self.cadence_s)
        self._looked_s = now_s
        life = self._life
        signed = self.progress.look(life.now())
        size = self._log_size()
        signed, self._seen_log = signed or size != self._seen_log, size
        if self._stall is None:
            return
        if life.state is not TaskState.RUNNING:
            self._silent_s = 0.0
            return
        if signed:
            self._sign(0.0)
            return
        if life.gate is not Gate.ASKED:
            self._silent_s += passed_s
        if self._silent_s >= self._stall.after_s:
            self._judge(self._stall)

    def _sign(self, age_s: float) -> None:
        """It worked `age_s` ago."""
        before_s, self._silent_s = self._silent_s, age_s
        if self._life.stalled:
            self._life.unmark_stalled(reasons.writes_again(before_s))

    def _judge(self, stall: Stall) -> None:
        age_s = self._newest_checkpoint_s(stall)
        if age_s is not None and age_s < self._silent_s:
            self._sign(max(0.0, age_s))
        if self._silent_s < stall.after_s or self._life.stalled:
            return
        since = self._life.now() - self._silent_s
        self._life.mark_stalled(since, stall.after_s, reasons.stalled(stall.after_s))
        if stall.restart:
            self._life.ask_stop(Cause.STALLED, reasons.stalled_restarted(stall.after_s))

    def _newest_checkpoint_s(self, stall: Stall) -> float | None:
        found = [_age_s(self._checkpoint_dir, self._ambient.wall_s())]
        now_s = self._ambient.boot_s()
        again_s = max(ASK_STORE_EVERY_S, stall.after_s / 4)
        if self._asked_store_s is None or not self._life.stalled or now_s - self._asked_store_s >= again_s:
            found.append(self._checkpoint_age_s())
            self._asked_store_s = now_s
        return min((one for one in found if one is not None), default=None)


def _age_s(directory: Path | None, wall_s: float) -> float | None:
    """How long ago the newest file in it was written, as far as the first 2,000 tell. A time to come counts as now."""
    if directory is None:
        return None
    newest: float | None = None
    left = MOST_FILES
    waiting = [directory]
    while waiting and left > 0:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    changed_s = entry.stat(follow_symlinks=False).st_mtime
                    newest = changed_s if newest is None else max(newest, changed_s)
        except OSError:
            continue  # it went away while we looked, or is closed to us: the other signs remain
    return None if newest is None else max(0.0, wall_s - newest)
