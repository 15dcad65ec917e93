"""Run a function in a process of its own that stands where a supervisor stands: a subreaper with no other children.

`waitpid(-1)` and "all descendants" would be about the test runner's own children otherwise.
"""

from __future__ import annotations

import json
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stado_worker.shim import process_table
from stado_worker.shim.process import become_subreaper


def as_supervisor(work: Callable[[], Any], *, within_s: float = 20.0) -> Any:
    """What `work` returned (as JSON), having run in a forked subreaper. Fails with its traceback."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        os.setsid()
        try:
            become_subreaper()
            answer = {"value": work()}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        os.write(write_end, json.dumps(answer).encode())
        os._exit(0)
    os.close(write_end)
    try:
        wait_until(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, within_s)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        body = os.read(read_end, 1 << 20)
        os.close(read_end)
    answer = json.loads(body)
    assert "error" not in answer, answer["error"]
    return answer["value"]


def wait_until(condition: Callable[[], object], within_s: float = 10.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not so within {within_s} s"
        time.sleep(0.005)


def pids_in(file: Path, count: int) -> list[int]:
    """The pids that processes of a test appended to `file`, once there are `count` of them."""

    def found() -> list[int]:
        return [int(word) for word in file.read_text().split()] if file.exists() else []

    wait_until(lambda: len(found()) >= count)
    return found()


def dead(pids: list[int]) -> bool:
    return not any(process_table.is_alive(pid) for pid in pids)
