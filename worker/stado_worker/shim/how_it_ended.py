"""How a command ended that nobody stopped, in the words of a record. Pure."""

from __future__ import annotations

from stado_like.job import reasons
from stado_like.job.states import Cause
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.runner import Gone


def how_it_ended(gone: Gone) -> tuple[Cause, str, Exit | None, tuple[str, ...]]:
    """Its cause, the reason, its exit, and notes for people."""
    exited, notes = gone.exit, notes_of(gone)
    if exited is not None and exited.exit_code == 0:
        if gone.out_of_memory:  # of a child, which it took in its stride
            notes = (*notes, reasons.OOM_KILLED)
        return Cause.NONE, reasons.exited(0), exited, notes
    reason = reasons.OOM_KILLED if gone.out_of_memory else _exit_reason(exited)
    return Cause.FAILURE, reason, exited, notes


def notes_of(gone: Gone) -> tuple[str, ...]:
    notes = []
    if gone.leftovers:
        notes.append(f"{gone.leftovers} processes outlived the command and were killed")
    if gone.stuck:
        notes.append(f"processes {', '.join(map(str, gone.stuck))} would not die")
    return tuple(notes)


def _exit_reason(exited: Exit | None) -> str:
    if exited is None:
        return "Its process would not end, even killed"
    if exited.signal_name is not None:
        return reasons.killed_by(exited.signal_name, exited.exit_code)
    return reasons.exited(exited.exit_code)
