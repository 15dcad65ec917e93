"""`output_file` on a real worker: a link to the log while the task runs, a file of its own after any end."""

from __future__ import annotations

import os
import signal

import pytest

from stado_like.job.keys import AttemptId
from stado_like.job.states import Outcome
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial


def test_file_follows_the_log_and_stays_when_the_task_is_over(rig: Rig) -> None:
    rig.worker("w1", "--cpus", "1", "--memory", "1GiB")
    path, gate = rig.folder / "train-0.out", rig.folder / "gate"
    script = f"echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo second"
    j = rig.submit("train", script, task={"output_file": f"{rig.folder}/%x-%t.out"})
    until(lambda: path.is_symlink() and path.read_bytes() == b"first\n", 10, "the file shows what was written so far")
    gate.touch()
    assert rig.end(j).outcome is Outcome.COMPLETED
    assert not path.is_symlink()
    assert path.read_bytes() == b"first\nsecond\n"


def test_file_of_a_dead_supervisor_is_made_whole_by_its_agent(rig: Rig) -> None:
    worker = rig.worker("w1", "--cpus", "1", "--memory", "1GiB")
    path = rig.folder / "out"
    task = {"output_file": str(path), "restart_policy": "Never"}
    j = rig.submit("lost", "echo said; sleep 60", task=task)
    until(lambda: path.is_symlink() and path.read_bytes() == b"said\n", 10, "it runs")
    os.kill(worker.supervisor(AttemptId(j, 0, 1)), signal.SIGKILL)
    assert rig.end(j).outcome is Outcome.DOWN
    assert not path.is_symlink()
    assert path.read_bytes() == b"said\n"
