"""A group per attempt: found by whoever looks, killed whole, removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stado_worker.machine.hierarchies import version_two
from stado_worker.shim import cgroup, process_table
from stado_worker.shim.cgroup import AttemptGroup, group_name
from tests.process.as_supervisor import as_supervisor, dead, pids_in, wait_until

pytestmark = pytest.mark.serial


@pytest.fixture
def group(tmp_path: Path) -> Iterator[AttemptGroup]:
    made = AttemptGroup.make(group_name(tmp_path))
    if made is None:
        pytest.skip("no group can be made here")
    yield made
    if made.path.exists():
        assert made.kill_all() == []
        assert made.remove()


def _into(group: AttemptGroup, command: list[str], cwd: Path) -> subprocess.Popen[bytes]:
    """Started inside: the shell waits until it was moved."""
    process = subprocess.Popen(["sh", "-c", 'read _; exec "$@"', "sh", *command], stdin=subprocess.PIPE, cwd=cwd)
    assert group.enter(process.pid)
    assert process.stdin is not None
    process.stdin.close()
    return process


def test_two_stores_of_one_machine_have_two_groups() -> None:
    one, other = (group_name(Path(f"/state/{worker}/attempts/default.train.1.00000.000001")) for worker in "ab")
    assert one != other
    assert one.startswith("stado-default.train.1.00000.000001-")
    assert len(group_name(Path("/state/attempts") / ("x" * 400))) < 255


def test_kill_all_catches_children_that_called_setsid(group: AttemptGroup, tmp_path: Path) -> None:
    script = "setsid sh -c 'echo $$ >> pids; exec sleep 311' & setsid sh -c 'echo $$ >> pids; exec sleep 312' & wait"
    with _into(group, ["sh", "-c", script], tmp_path) as leader:
        pids = pids_in(tmp_path / "pids", 2)
        assert set(pids) | {leader.pid} <= set(group.pids())
        assert AttemptGroup.find(group.path.name) == group, "a restarted agent finds it by name"
        assert not group.remove(), "somebody is inside"
        assert group.kill_all() == []
        assert leader.wait(5) == -signal.SIGKILL
    assert dead(pids)
    assert group.remove()
    assert AttemptGroup.find(group.path.name) is None


@pytest.mark.parametrize("kernel_kills", [True, False], ids=["cgroup.kill", "signal by signal"])
def test_kill_others_spares_the_caller(
    group: AttemptGroup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel_kills: bool
) -> None:
    monkeypatch.setattr(cgroup.AttemptGroup, "_can_kill", lambda _self: kernel_kills)

    def work() -> list[object]:
        assert group.enter(os.getpid())
        process = subprocess.Popen(["sh", "-c", "setsid sleep 313 & sleep 314"])
        wait_until(lambda: len(group.pids()) == 4)
        assert group.kill_others(os.getpid()) == []
        process.wait()
        return [group.pids() in ([], [os.getpid()]), process.returncode, group.remove()]

    assert as_supervisor(work) == [True, -signal.SIGKILL, True]


def test_groups_below_go_too(group: AttemptGroup, tmp_path: Path) -> None:
    """A task that makes groups of its own (a worker run inside a task does) hides nobody."""
    inner = AttemptGroup(group.path / "inner")
    inner.path.mkdir()
    with _into(inner, ["sleep", "315"], tmp_path) as process:
        assert group.pids() == [process.pid]
        assert group.kill_all() == []
        process.wait(5)
    assert group.remove()
    assert not group.path.exists()


def test_zombies_are_no_members(group: AttemptGroup, tmp_path: Path) -> None:
    process = _into(group, ["true"], tmp_path)
    wait_until(lambda: not process_table.is_alive(process.pid))
    assert group.pids() == []
    process.wait()


def test_no_tree_no_group(tmp_path: Path) -> None:
    """Without control groups (or /proc) there is none, and the caller falls back."""
    assert AttemptGroup.make("stado-x", proc=tmp_path) is None
    assert AttemptGroup.find("stado-x", proc=tmp_path) is None
    process = tmp_path / "self"
    process.mkdir()
    (process / "cgroup").write_text("0::/\n")
    (process / "mountinfo").write_text("30 23 0:26 / /proc/version rw - cgroup2 cgroup2 rw\n")
    assert AttemptGroup.find("stado-x", proc=tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="gives a subtree to another user")
def test_a_subtree_given_to_an_ordinary_user_is_enough(group: AttemptGroup) -> None:
    """As systemd's Delegate=yes does: the user owns the folder and its cgroup.procs, nothing above."""
    for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
        os.chown(group.path / name, 65534, 65534)

    def work() -> list[object]:
        assert group.enter(os.getpid())
        os.setgid(65534)
        os.setuid(65534)
        own = AttemptGroup.join("stado-delegated")
        assert own is not None
        process = subprocess.Popen(["sh", "-c", "setsid sleep 316 & sleep 317"])
        wait_until(lambda: len(own.pids()) == 4)
        left = own.kill_others(os.getpid())
        process.wait()
        return [own.path.parent == group.path, left, process.returncode, own.remove()]

    assert as_supervisor(work) == [True, [], -signal.SIGKILL, True]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs another user")
def test_refused_to_others_is_none() -> None:
    """Unprivileged, in a tree that is not ours: no group, and no error."""
    if version_two() is None:
        pytest.skip("no version 2 tree")

    def work() -> object:
        os.setgid(65534)
        os.setuid(65534)
        return AttemptGroup.join("stado-not-allowed") is None

    assert as_supervisor(work)
