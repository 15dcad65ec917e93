"""What the tests let the nursery call in place of a supervisor."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.cgroup import AttemptGroup, group_name
from stado_worker.shim.process import Tree, become_subreaper, start

prepared: list[str] = []


def prepare(text: str) -> None:
    """`once <signal> <file>`: that signal comes at the first start."""
    prepared.append(text)
    if text.startswith("once "):
        _, number, place = text.split(" ", 2)
        file = Path(place)
        if not file.exists():
            file.touch()
            os.kill(os.getpid(), int(number))


def report(attempt_dir: str) -> None:
    """Write down what a supervisor finds itself to be."""
    there = Path(attempt_dir)
    descriptors = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptors[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the descriptor of this very listing
            continue
    found = {
        "pid": os.getpid(),
        "sid": os.getsid(0),
        "prepared": prepared,
        "descriptors": descriptors,
        "ignored": [int(n) for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN],
    }
    (there / "report.tmp").write_text(json.dumps(found))
    os.rename(there / "report.tmp", there / "report")


def live(attempt_dir: str) -> None:
    """Hold the attempt's lock until a file `end` appears."""
    attempt = AttemptDir(Path(attempt_dir))
    lock = attempt.take_alive()
    if not attempt.create_launch(f"pid {os.getpid()}"):
        return
    attempt.write_proc({"pid": os.getpid()})
    while not (attempt.path / "end").exists():
        time.sleep(0.01)
    lock.release()


def once(attempt_dir: str) -> None:
    """Append a line if, and only if, this one may start the attempt."""
    attempt = AttemptDir(Path(attempt_dir))
    if attempt.create_launch(str(os.getpid())):
        with open(attempt.path / "started", "a") as file:
            file.write(f"{os.getpid()}\n")
    (attempt.path / f"seen.{os.getpid()}").touch()


def fail(attempt_dir: str) -> None:
    raise RuntimeError("this supervisor breaks")


def die_of_signal(attempt_dir: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_true(attempt_dir: str, grouped: bool = True) -> None:
    """The shortest whole attempt: group, command, everything reaped, a file that says when the command was started."""
    attempt = AttemptDir(Path(attempt_dir))
    attempt.take_alive()
    attempt.create_launch("run_true")
    become_subreaper()
    group = AttemptGroup.join(group_name(attempt.path)) if grouped else None
    log = attempt.open_log()
    child = start(["/bin/true"], cwd="/", env={}, log_fd=log, group=group, attempt_id=attempt.attempt_id)
    child.wait(10)
    ended = Tree(child, group).kill_and_reap(5)
    if group is not None:
        group.remove()
    attempt.write_done({"status": ended.status})


def run_true_ungrouped(attempt_dir: str) -> None:
    run_true(attempt_dir, grouped=False)
