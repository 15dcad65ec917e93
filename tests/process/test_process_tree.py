"""Whole trees, signalled and killed: children that hide, hold on, ignore signals or outlive their parents."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stado_worker.shim import process_table
from tests.process.as_supervisor import as_supervisor, dead, pids_in, wait_until
from tests.process.commands import WAYS, finish, run

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and trees as Linux has them"),
]


@pytest.mark.parametrize("grouped", WAYS)
def test_leader_gone_grandchild_holds_output_is_over_at_once(tmp_path: Path, grouped: bool) -> None:
    """Case: the time limit passes and the runner hangs, for a grandchild keeps stdout open: `sh -c 'sleep 300 & exit
    0'` is over within 2 s of the leader's exit, the leftover group killed, its number noted.
    """

    def work() -> Any:
        child, tree = run(["sh", "-c", "sleep 300 & echo $! > pids; exit 0"], tmp_path, grouped=grouped)
        assert child.wait(5) is not None
        since = time.monotonic()
        end = finish(tree, 2.0)
        return [end, time.monotonic() - since < 2.0]

    assert as_supervisor(work) == [{"exit": 0, "signal": None, "leftovers": 1, "stuck": [], "removed": True}, True]
    assert dead(pids_in(tmp_path / "pids", 1))


@pytest.mark.parametrize("grouped", WAYS)
def test_setsid_grandchildren_die_with_the_tree(tmp_path: Path, grouped: bool) -> None:
    """Children that called setsid twice over, and one whose parent is gone, are of the tree all the same."""
    script = (
        "setsid sh -c 'echo $$ >> pids; setsid sleep 301 & echo $! >> pids; wait' &"
        "(setsid sh -c 'echo $$ >> pids; exec sleep 302' &) ; wait"
    )

    def work() -> Any:
        child, tree = run(["sh", "-c", script], tmp_path, grouped=grouped)
        pids = pids_in(tmp_path / "pids", 3)
        assert set(pids) < tree.alive_pids()
        assert child.poll() is None
        return finish(tree)

    end = as_supervisor(work)
    assert (end["exit"], end["signal"], end["stuck"], end["removed"]) == (137, "SIGKILL", [], True)
    assert end["leftovers"] >= 3
    assert dead(pids_in(tmp_path / "pids", 3))


@pytest.mark.parametrize("grouped", WAYS)
def test_term_ignored_then_killed(tmp_path: Path, grouped: bool) -> None:
    """Case: a child that ignores SIGTERM: the room stays taken until the whole group is gone."""

    def work() -> Any:
        script = "trap '' TERM; echo ready > ready; while :; do sleep 1; done"
        child, tree = run(["sh", "-c", script], tmp_path, grouped=grouped)
        wait_until((tmp_path / "ready").exists)
        assert tree.signal(signal.SIGTERM)
        assert child.wait(0.3) is None
        assert tree.alive_pids()
        return finish(tree)

    end = as_supervisor(work)
    assert (end["exit"], end["signal"], end["stuck"]) == (137, "SIGKILL", [])


def test_signal_reaches_the_whole_group(tmp_path: Path) -> None:
    script = "sh -c 'trap \"echo inner >> got; exit 3\" TERM; echo >> ready; while :; do sleep 0.05; done' & " + (
        "trap 'echo outer >> got; wait; exit 4' TERM; echo >> ready; wait"
    )

    def work() -> Any:
        child, tree = run(["sh", "-c", script], tmp_path)
        wait_until(lambda: (tmp_path / "ready").exists() and (tmp_path / "ready").read_text().count("\n") == 2)
        assert tree.signal(signal.SIGTERM)
        assert child.wait(5) is not None
        return finish(tree)

    assert as_supervisor(work)["exit"] == 4
    assert sorted((tmp_path / "got").read_text().split()) == ["inner", "outer"]


def test_zombie_leader_counts_as_exited(tmp_path: Path) -> None:
    """Case: a stop says 0 stopped although all are dead: a zombie leader is treated as exited."""

    def work() -> Any:
        child, tree = run(["sh", "-c", "exit 5"], tmp_path)
        wait_until(lambda: not process_table.is_alive(child.pid))
        assert Path(f"/proc/{child.pid}").exists(), "it is a zombie, and keeps its pid until it is reaped"
        assert tree.alive_pids() == set()
        assert process_table.same_process(child.pid, child.started) is False
        assert child.poll() == 5 << 8
        end = finish(tree)
        assert not tree.signal(signal.SIGTERM), "its pid may name another process now"
        return end

    assert as_supervisor(work)["exit"] == 5


@pytest.mark.parametrize(
    ("script", "exit_code", "signal_name"),
    [("exit 137", 137, None), ("kill -15 $$", 143, "SIGTERM"), ("kill -9 $$", 137, "SIGKILL")],
)
def test_exit_137_by_itself_and_death_by_signal_differ(
    tmp_path: Path, script: str, exit_code: int, signal_name: str | None
) -> None:
    """Case: a step that was killed recorded as success: SIGKILLed is failed, exit 137, signal SIGKILL."""

    def work() -> Any:
        child, tree = run(["sh", "-c", script], tmp_path)
        assert child.wait(5) is not None
        return finish(tree)

    end = as_supervisor(work)
    assert (end["exit"], end["signal"]) == (exit_code, signal_name)


def test_orphans_are_reaped_while_the_leader_runs(tmp_path: Path) -> None:
    def work() -> Any:
        child, tree = run(
            ["sh", "-c", "(sh -c 'echo $$ >> pids' &); (sh -c 'echo $$ >> pids' &); exec sleep 303"], tmp_path
        )
        pids = pids_in(tmp_path / "pids", 2)

        def gone() -> bool:
            tree.reap_orphans()
            return not any(Path(f"/proc/{pid}").exists() for pid in pids)

        wait_until(gone)
        assert child.poll() is None
        return finish(tree)

    assert as_supervisor(work)["leftovers"] == 0


@pytest.mark.parametrize("grouped", WAYS)
def test_a_tree_that_forks_away_is_caught(tmp_path: Path, grouped: bool) -> None:
    """Each process starts its successor in a new session and ends: no look at pids is ever up to date."""
    script = (
        "import os, time\n"
        "while True:\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid(); open('hops', 'a').write('x'); time.sleep(0.003)\n"
    )

    def work() -> Any:
        child, tree = run([sys.executable, "-S", "-c", script], tmp_path, grouped=grouped)
        wait_until(lambda: (tmp_path / "hops").exists() and (tmp_path / "hops").stat().st_size > 20)
        assert child.wait(5) == 0
        return finish(tree)

    end = as_supervisor(work)
    assert (end["exit"], end["stuck"]) == (0, [])
    assert end["leftovers"] >= 1
