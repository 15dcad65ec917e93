"""What the kernel says of an ended process."""

from __future__ import annotations

import os
import signal

import pytest

from stado_worker.shim.exit_status import Exit, decode, encode_wait_status


def test_code_and_signal_are_told_apart() -> None:
    assert decode(0) == Exit(0, None)
    assert decode(137 << 8) == Exit(137, None)
    assert decode(signal.SIGKILL) == Exit(137, "SIGKILL")
    assert decode(signal.SIGSEGV | 0x80) == Exit(139, "SIGSEGV"), "with a core dump"


def test_real_time_signals_have_a_name_too() -> None:
    assert decode(signal.SIGRTMIN + 3) == Exit(128 + signal.SIGRTMIN + 3, "SIGRTMIN+3")


def test_stopped_is_no_end() -> None:
    with pytest.raises(ValueError, match="not an end"):
        decode(0x137F)


@pytest.mark.parametrize("status", [0, 1 << 8, 255 << 8, 9, 15, 11 | 0x80])
def test_both_ways_of_waiting_say_the_same(status: int) -> None:
    if os.WIFEXITED(status):
        code, value = os.CLD_EXITED, os.WEXITSTATUS(status)
    else:
        code, value = (os.CLD_DUMPED if os.WCOREDUMP(status) else os.CLD_KILLED), os.WTERMSIG(status)
    assert encode_wait_status(code, value) == status
