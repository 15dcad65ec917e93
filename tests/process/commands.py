"""A command started and ended by a supervisor, for tests: with a control group of its own, and without."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from stado_worker.shim.cgroup import AttemptGroup
from stado_worker.shim.exit_status import decode
from stado_worker.shim.process import Child, Tree, start

ENV = {"PATH": os.environ["PATH"]}
NAME = f"stado-test-process-{os.getpid()}"


def _group_possible() -> bool:
    group = AttemptGroup.make(NAME + "-probe")
    if group is None:
        return False
    return group.remove()


WAYS = [
    pytest.param(
        True, id="cgroup", marks=pytest.mark.skipif(not _group_possible(), reason="no group can be made here")
    ),
    pytest.param(False, id="descendants"),
]


def run(
    command: list[str], cwd: Path, *, grouped: bool = False, env: dict[str, str] | None = None
) -> tuple[Child, Tree]:
    """Start in the calling supervisor, output to `<cwd>/log`."""
    group = AttemptGroup.join(f"{NAME}-{os.getpid()}") if grouped else None
    assert (group is not None) == grouped
    log = os.open(cwd / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    child = start(command, cwd=str(cwd), env=env or ENV, log_fd=log, group=group, attempt_id=f"t.{cwd.name}.1")
    os.close(log)
    return child, Tree(child, group)


def finish(tree: Tree, within_s: float = 5.0) -> dict[str, Any]:
    ended = tree.kill_and_reap(within_s)
    removed = tree.group.remove() if tree.group is not None else True
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert ended.status is not None
    end = decode(ended.status)
    return {
        "exit": end.exit_code,
        "signal": end.signal_name,
        "leftovers": ended.leftovers,
        "stuck": list(ended.stuck),
        "removed": removed,
    }
