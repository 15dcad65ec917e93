"""The commands of a block's ranks on this machine: each with a folder, an environment and an output of its own.

Not obvious because it is what a short task costs: nothing of the job is read again for a rank, what all ranks share is
put together once, and a folder has no more files than its command makes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from stado_like.ambient import Ambient
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.could_not_start import CouldNotStart, StartFault
from stado_worker.shim.environment import build
from stado_worker.shim.oom import OomWatch
from stado_worker.shim.process_table import started_ticks
from stado_worker.shim.runner import Gone, ProcessRunner
from stado_worker.shim.task import Read, carried, told
from stado_worker.shim.workplace import SCRATCH


class Ranks:
    """Called with a rank: its runner, not yet started. Raises `CouldNotStart`."""

    def __init__(
        self,
        read: Read,
        folder: AttemptDir,
        from_worker: Mapping[str, str],
        group: AttemptGroup | None,
        ambient: Ambient,
    ) -> None:
        self._read = read
        self._attempts = folder.path.parent
        self._from_worker = from_worker
        self._group = group
        self._ambient = ambient
        self._oom: OomWatch | None = None

    def __call__(self, rank: int) -> ProcessRunner:
        read = carried(self._read, rank)
        folder = AttemptDir(self._attempts / str(read.a))
        try:
            _make(folder.path)
            cwd = read.terms.workdir or read.terms.cwd or _scratch(folder.path)
        except OSError as error:
            raise CouldNotStart(
                f"{read.a} has no folder on {self._ambient.host}: {error}",
                "See that machine's disk",
                fault=StartFault.MACHINE,
                command_exit=None,
            ) from error
        said = told(read, f"{folder.path}/stop", str(folder.path), self._ambient.host)
        env = build(self._from_worker, read.terms.env, said)
        return RankRunner(folder, read.terms.command, cwd, env, self._group, self._ambient, self)

    def watch(self) -> OomWatch:
        """A counter of the whole machine is read once for all of them, until one ends otherwise than with exit 0."""
        if self._oom is None or self._oom.is_exact:
            self._oom = OomWatch(self._group, self._ambient)
        return self._oom

    def ended(self, gone: Gone) -> None:
        if gone.exit is None or gone.exit.exit_code != 0:
            self._oom = None


class RankRunner(ProcessRunner):
    """To kill what a rank left behind, a supervisor steps out of its control group: the next is born in it again."""

    _dated = False  # whoever cleans up finds it by its group or its environment

    def __init__(
        self,
        folder: AttemptDir,
        command: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        group: AttemptGroup | None,
        ambient: Ambient,
        ranks: Ranks,
    ) -> None:
        super().__init__(folder, command, cwd, env, group, ambient)
        self._ranks = ranks

    def _watch(self) -> OomWatch:
        return self._ranks.watch()

    @property
    def leader(self) -> tuple[int, int | None] | None:
        """Asked for when it goes on."""
        child = self._child
        return (child.pid, started_ticks(child.pid)) if child is not None and not child.reaped else None

    def finish(self, within_s: float) -> Gone:
        gone = super().finish(within_s)
        self._ranks.ended(gone)
        if gone.leftovers and self._group is not None:
            self._group.enter(self._ambient.pid)  # takes ten milliseconds on a machine that rests: not every time
        return gone


def _make(path: Path) -> None:
    """Raises OSError. What lies there of a claim of long ago that came to nothing goes."""
    try:
        os.mkdir(path)
    except FileExistsError:
        if not AttemptDir(path).is_done():
            raise
        shutil.rmtree(path)
        os.mkdir(path)


def _scratch(path: Path) -> str:
    scratch = f"{path}/{SCRATCH}"
    os.mkdir(scratch)
    return scratch
