"""What is left of an attempt whose supervisor was killed, and that nobody else is touched."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from stado_worker.machine.hierarchies import version_two
from stado_worker.shim import process_table
from stado_worker.shim.forking import _belt
from stado_worker.shim.process import kill_attempt, start
from tests.process.as_supervisor import as_supervisor, dead, pids_in, wait_until
from tests.process.commands import ENV, NAME, WAYS, finish, run

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and trees as Linux has them"),
]


def test_belt_leader_dies_with_its_supervisor(tmp_path: Path) -> None:
    """Without a control group the leader asks the kernel to die with the supervisor."""
    pid_file = tmp_path / "leader"

    def work() -> Any:
        child, _tree = run(["sleep", "304"], tmp_path)
        pid_file.write_text(str(child.pid))
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ValueError, match="Expecting value"):
        as_supervisor(work)
    wait_until(lambda: dead(pids_in(pid_file, 1)))


@pytest.mark.parametrize("grouped", WAYS)
def test_kill_attempt_after_a_dead_supervisor_leaves_nothing(tmp_path: Path, grouped: bool) -> None:
    """kill -9 of a supervisor whose children called setsid: nothing of it is left. Case: orphans survive a killed
    worker.
    """
    script = (
        "echo $$ >> pids; setsid sleep 305 & echo $! >> pids; (setsid sh -c 'echo $$ >> pids; exec sleep 306' &) ; wait"
    )

    def work() -> Any:
        run(["sh", "-c", script], tmp_path, grouped=grouped)
        pids_in(tmp_path / "pids", 3)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ValueError, match="Expecting value"):
        as_supervisor(work)
    pids = pids_in(tmp_path / "pids", 3)
    survivors = [pid for pid in pids if process_table.is_alive(pid)]
    assert set(pids[1:]) & set(survivors), (
        "children in sessions of their own outlive a plain kill -9: or this test shows nothing"
    )
    names = [path.name for path in _groups_of_this_test()]
    assert len(names) == (1 if grouped else 0)
    found = kill_attempt(f"t.{tmp_path.name}.1", names[0] if names else None)
    assert found.stuck == ()
    # The leader is not looked for: without a group it may die of its belt at any moment.
    assert set(pids[1:]) & set(survivors) <= set(found.killed)
    assert dead(pids)
    assert _groups_of_this_test() == []
    assert kill_attempt(f"t.{tmp_path.name}.1", names[0] if names else None).killed == ()


def _groups_of_this_test() -> list[Path]:
    tree = version_two()
    return sorted(tree.group.glob(f"{NAME}-[0-9]*")) if tree is not None else []


def test_kill_attempt_spares_the_same_id_of_another_store(tmp_path: Path) -> None:
    """Two workers on one machine with different stores may run attempts of one id: the stop file's path tells them
    apart.
    """

    def work() -> Any:
        ours, tree = run(["sleep", "307"], tmp_path, env={**ENV, "STADO_STOP_FILE": "/ours"})
        log = os.open(os.devnull, os.O_WRONLY)
        env = {**ENV, "STADO_STOP_FILE": "/theirs"}
        theirs = start(["sleep", "308"], cwd="/", env=env, log_fd=log, group=None, attempt_id=f"t.{tmp_path.name}.1")
        found = kill_attempt(f"t.{tmp_path.name}.1", None, marks={"STADO_STOP_FILE": "/ours"})
        assert found.killed == (ours.pid,)
        assert theirs.poll() is None
        return finish(tree)

    assert as_supervisor(work)["leftovers"] == 1


def test_kill_attempt_finds_children_that_dropped_the_environment(tmp_path: Path) -> None:
    def work() -> Any:
        _child, tree = run(["sh", "-c", "env -i /bin/sleep 309 & echo $! >> pids; wait"], tmp_path)
        pids = pids_in(tmp_path / "pids", 1)
        found = kill_attempt(f"t.{tmp_path.name}.1", None)
        assert set(pids) <= set(found.killed)
        return finish(tree)

    assert as_supervisor(work)["leftovers"] == 0


def test_an_unreadable_start_time_is_unknown_not_reused() -> None:
    """Case: a live process declared reused, for its start time was unreadable on one side: that is "unknown"."""
    own = process_table.started_ticks(os.getpid())
    assert process_table.same_process(os.getpid(), own) is True
    assert process_table.same_process(os.getpid(), None) is None
    assert process_table.same_process(os.getpid(), (own or 0) + 1) is False


def test_belt_a_parent_that_died_first_takes_the_child_along() -> None:
    """The signal is asked for after the fork; a parent that was gone by then would never send it."""
    pid = os.fork()
    if pid == 0:
        _belt(os.getppid() + 1)()
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
