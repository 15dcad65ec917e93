"""What the kernel says of an ended process, as the record keeps it.

Not obvious because 137 has two meanings: a process that called exit(137) and one that SIGKILL ended. Only the kernel's
status tells them apart, so `signal_name` is set from it and never from the number. Pure.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exit:
    """`exit_code` is 0..255; `signal_name` only when a signal ended the process, and then the code is 128 + its
    number.
    """

    exit_code: int
    signal_name: str | None = None


def decode(wait_status: int) -> Exit:
    """From the status of waitpid. Raises ValueError for a process that was only stopped or continued: it has not
    ended.
    """
    if os.WIFSIGNALED(wait_status):
        number = os.WTERMSIG(wait_status)
        return Exit(128 + number, signal_name(number))
    if os.WIFEXITED(wait_status):
        return Exit(os.WEXITSTATUS(wait_status))
    raise ValueError(f"wait status {wait_status:#x} is not an end")


def encode_wait_status(code: int, status: int) -> int:
    """From waitid's `si_code` and `si_status` to the status of waitpid, which keeps both in one number."""
    if code == os.CLD_EXITED:
        return (status & 0xFF) << 8
    if code == os.CLD_KILLED:
        return status & 0x7F
    if code == os.CLD_DUMPED:
        return (status & 0x7F) | 0x80
    raise ValueError(f"si_code {code} is not an end")


def signal_name(number: int) -> str:
    """`SIGTERM` for 15; real-time signals have no names of their own in Python beyond the first and the last."""
    try:
        return signal.Signals(number).name
    except ValueError:
        first = getattr(signal, "SIGRTMIN", None)
        if first is not None and number > first:
            return f"SIGRTMIN+{number - first}"
        return f"signal {number}"
