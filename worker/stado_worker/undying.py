"""Processes that outlived SIGKILL: in the kernel with a device that does not answer, or not ours to kill.

Their attempt ends all the same, for nothing would come of waiting, and it runs again elsewhere. But the machine has not
got its room back, and whoever was to have it (a run for which the attempt was preempted) must not start beside them. So
their room stays taken, and the machine takes nothing new: one that cannot be rid of a process cannot be trusted with
its devices. Both end when the processes do.

A supervisor notes them in the attempt's folder before it reports the end, so that neither its death nor the agent's
forgets them; that they are still the same processes is told by when they started.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stado_like.errors import BadRecord
from stado_like.job import codec, reasons
from stado_like.job.terms import Ask
from stado_worker.shim.attempt_dir import AttemptDir, attempt_dirs
from stado_worker.shim.process_table import same_process, started_ticks

Process = tuple[int, int | None]


def note(folder: AttemptDir, pids: Iterable[int], boot_id: str) -> None:
    """On disk, if that can be: a full disk must not keep an end from being told."""
    left = [[pid, started_ticks(pid)] for pid in pids]
    if left:
        with suppress(OSError):
            folder.write_stuck({"boot_id": boot_id, "processes": left})


@dataclass(frozen=True, slots=True)
class _Left:
    folder: AttemptDir
    ask: Ask
    processes: tuple[Process, ...]


@dataclass(slots=True)
class Undying:
    """What is left of attempts that ended on this machine."""

    _left: dict[str, _Left] = field(default_factory=dict)

    def ended(self, folder: AttemptDir, ask: Ask, pids: Iterable[int], boot_id: str) -> None:
        """An attempt has ended. `pids`: what would not die when its remains were removed; its supervisor may have noted
        more."""
        note(folder, pids, boot_id)
        left = {pid: started_ticks(pid) for pid in pids} | dict(_noted(folder, boot_id))
        if left:
            self._left[folder.attempt_id] = _Left(folder, ask, tuple(left.items()))
            self.look()

    def recover(self, attempts: Path, boot_id: str) -> None:
        """What an earlier agent of this machine knew."""
        for folder in attempt_dirs(attempts):
            if folder.is_done() and _noted(folder, boot_id):
                self.ended(folder, _ask_of(folder), (), boot_id)

    def look(self) -> None:
        """Forget who is gone. One of whom that cannot be told is there."""
        for name, one in tuple(self._left.items()):
            alive = tuple(process for process in one.processes if same_process(*process) is not False)
            if alive:
                self._left[name] = _Left(one.folder, one.ask, alive)
            else:
                del self._left[name]

    @property
    def reserved(self) -> list[tuple[AttemptDir, Ask]]:
        """The room that has not come back."""
        return [(one.folder, one.ask) for one in self._left.values()]

    @property
    def why(self) -> str:
        """Why the machine takes nothing; empty: nothing is left."""
        if not self._left:
            return ""
        return reasons.would_not_die(self._left, (pid for one in self._left.values() for pid, _ in one.processes))


def _noted(folder: AttemptDir, boot_id: str) -> tuple[Process, ...]:
    """After a reboot, and where it cannot be read, nobody."""
    try:
        plain = folder.read_stuck()
        if plain is None or plain["boot_id"] != boot_id:
            return ()
        return tuple((int(pid), None if started is None else int(started)) for pid, started in plain["processes"])
    except (BadRecord, KeyError, TypeError, ValueError):
        return ()


def _ask_of(folder: AttemptDir) -> Ask:
    """What was reserved; the whole machine, where that cannot be read."""
    try:
        plain = folder.read_claim() or {}
        return codec.from_plain(Ask, plain["ask"], str(folder.path / "claim.json"))
    except (BadRecord, KeyError, TypeError, ValueError):
        return Ask(0, 0, 0, exclusive=True)
