"""The nursery: quick, and safe to lose. Killed, stopped, left behind: no task notices, nothing starts twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from stado_like.errors import Conflict
from stado_worker.machine.identity import WorkerHome
from stado_worker.nursery import LaunchUnknown, Nursery, NurseryFailed
from stado_worker.shim import process_table
from stado_worker.shim.attempt_dir import AttemptDir
from tests.process.as_supervisor import wait_until

pytestmark = pytest.mark.serial
ROOT = Path(__file__).resolve().parents[2]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}


def nursery(entry: str, tmp_path: Path, answer_s: float = 10.0) -> Nursery:
    return Nursery(
        entry=f"tests.process.nursery_entries:{entry}",
        prepare="file:///somewhere",
        log_path=tmp_path / "nursery.log",
        answer_s=answer_s,
        env=ENV,
    )


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[AttemptDir]:
    made = AttemptDir.make(tmp_path / "attempts", "default.t.1.00000.000001")
    yield made
    (made.path / "end").touch()
    wait_until(lambda: not made.is_alive())


def test_supervisor_is_on_its_own(tmp_path: Path, attempt: AttemptDir) -> None:
    """A session of its own, nothing of the nursery's or agent's open, no signal ignored but what Python ignores."""
    house = nursery("report", tmp_path)
    house.start()
    with open(tmp_path / "open", "w") as _held:
        pid = house.launch(attempt.path)
    wait_until((attempt.path / "report").exists)
    found = json.loads((attempt.path / "report").read_text())
    assert (found["pid"], found["sid"]) == (pid, pid)
    assert found["prepared"] == ["file:///somewhere"]
    assert set(found["descriptors"]) == {"0", "1", "2"}
    assert found["descriptors"]["2"] == str(attempt.supervisor_log)
    assert set(found["ignored"]) == {signal.SIGPIPE, signal.SIGXFSZ}
    house.close()


def test_no_zombie_of_an_ended_or_killed_supervisor(tmp_path: Path) -> None:
    for entry in ("report", "die_of_signal", "fail"):
        house = nursery(entry, tmp_path)
        house.start()
        attempts = [AttemptDir.make(tmp_path / entry, f"a{number}") for number in range(3)]
        pids = [house.launch(one.path) for one in attempts]
        for pid in pids:
            wait_until(partial(_absent, Path(f"/proc/{pid}")))
        assert house.is_alive()
        house.close()
    assert "this supervisor breaks" in (tmp_path / "fail" / "a0" / "supervisor.log").read_text()


def test_killed_nursery_is_replaced_and_harms_no_task(tmp_path: Path, attempt: AttemptDir) -> None:
    house = nursery("live", tmp_path)
    house.start()
    supervisor = house.launch(attempt.path)
    wait_until(lambda: attempt.read_proc() is not None)
    first = house.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    second = AttemptDir.make(tmp_path / "attempts", "b")
    other = house.launch(second.path)
    assert house.pid not in (None, first)
    assert process_table.is_alive(supervisor)
    assert attempt.is_alive()
    wait_until(second.is_alive)
    assert other != supervisor
    (second.path / "end").touch()
    house.close()
    assert attempt.is_alive(), "a closed nursery harms none either"
    wait_until(lambda: not second.is_alive())


def test_stopped_nursery_does_not_hang_a_launch_and_starts_nothing_twice(tmp_path: Path, attempt: AttemptDir) -> None:
    house = nursery("once", tmp_path, answer_s=0.3)
    house.start()
    stopped = house.pid
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    since = time.monotonic()
    with pytest.raises(LaunchUnknown, match="may or may not"):
        house.launch(attempt.path)
    assert time.monotonic() - since < 5
    assert house.is_alive()
    assert house.pid != stopped
    house.launch(attempt.path)
    wait_until((attempt.path / "started").exists)
    assert not process_table.is_alive(stopped)
    house.close()


def test_old_nursery_wakes_after_its_agent_was_replaced(tmp_path: Path, attempt: AttemptDir) -> None:
    """It reads the old message and forks, and the launch-once guard makes that supervisor do nothing."""
    code = (
        "import os, signal, sys; from pathlib import Path; from stado_worker.nursery import Nursery\n"
        "n = Nursery(entry='tests.process.nursery_entries:once', answer_s=60); n.start()\n"
        "os.kill(n.pid, signal.SIGSTOP); print(n.pid, flush=True); n.launch(Path(sys.argv[1]))"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(attempt.path)], env=ENV, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        old = int(agent.stdout.readline())
        # The agent has sent its message once it sleeps in poll; a kill before that would show nothing.
        wait_until(lambda: "poll" in Path(f"/proc/{agent.pid}/wchan").read_text() or _queued(agent.pid))
        agent.kill()
    house = nursery("once", tmp_path)
    house.start()
    house.launch(attempt.path)
    wait_until((attempt.path / "started").exists)
    os.kill(old, signal.SIGCONT)
    wait_until(lambda: not process_table.is_alive(old))
    house.close()
    wait_until(lambda: len(list(attempt.path.glob("seen.*"))) == 2)
    assert (attempt.path / "started").read_text().count("\n") == 1


def _queued(pid: int) -> bool:
    """Whether the process waits in a system call of the poll family (where the kernel does not name the place)."""
    number = Path(f"/proc/{pid}/syscall").read_text().split()[0]
    return number in ("7", "271", "73")


def test_ends_with_its_agent_and_not_by_a_signal_for_the_whole_group(tmp_path: Path, attempt: AttemptDir) -> None:
    code = (
        "import sys, time; from pathlib import Path; from stado_worker.nursery import Nursery\n"
        "n = Nursery(entry='tests.process.nursery_entries:live'); n.start(); s = n.launch(Path(sys.argv[1]))\n"
        "print(n.pid, s, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(attempt.path)], env=ENV, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        house, supervisor = map(int, agent.stdout.readline().split())
        wait_until(attempt.is_alive)
        assert os.getsid(house) == house
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(house, number)
        wait_until(lambda: _pending(house) == 0)
        assert process_table.is_alive(house)
        agent.kill()
    wait_until(lambda: not process_table.is_alive(house))
    assert process_table.is_alive(supervisor)
    assert attempt.is_alive()


def _pending(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd")))


def test_a_restarted_agent_is_not_refused_while_tasks_run(tmp_path: Path, attempt: AttemptDir) -> None:
    """Locks are inherited by fork with their open file: neither nursery nor supervisor may keep the worker's."""
    code = (
        "import sys, time; from pathlib import Path; from stado_worker.nursery import Nursery\n"
        "from stado_worker.machine.identity import WorkerHome\n"
        "lock = WorkerHome(Path(sys.argv[2]), 'w').lock_worker_id()\n"
        "n = Nursery(entry='tests.process.nursery_entries:live'); n.start(); n.launch(Path(sys.argv[1]))\n"
        "print('up', flush=True); time.sleep(60)"
    )
    home = WorkerHome(tmp_path / "state", "w")
    command = [sys.executable, "-c", code, str(attempt.path), str(home.state_home)]
    with subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"up\n"
        wait_until(attempt.is_alive)
        with pytest.raises(Conflict, match=rf"already runs on .*\(pid {agent.pid}, host "):
            home.lock_worker_id()
        agent.kill()
    home.lock_worker_id().release()
    assert attempt.is_alive()


def test_an_entry_that_cannot_be_imported_is_told(tmp_path: Path) -> None:
    house = nursery("no_such_entry", tmp_path)
    with pytest.raises(NurseryFailed, match="no attribute 'no_such_entry'"):
        house.start()
    assert (house.pid, house.fileno()) == (None, -1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_nursery_killed_or_stopped_while_it_starts_is_replaced_once(tmp_path: Path, number: signal.Signals) -> None:
    entry = "tests.process.nursery_entries:report"
    house = Nursery(entry=entry, prepare=f"once {int(number)} {tmp_path / 'hit'}", start_s=4, env=ENV)
    house.start()
    assert house.is_alive()
    house.close()


def test_fileno_becomes_readable_when_it_dies(tmp_path: Path) -> None:
    import select

    house = nursery("report", tmp_path)
    house.start()
    assert house.pid is not None
    poller = select.poll()
    poller.register(house.fileno(), select.POLLIN)
    assert poller.poll(0) == []
    os.kill(house.pid, signal.SIGKILL)
    assert poller.poll(5000) != []
    wait_until(lambda: not house.is_alive())
    house.close()


@pytest.mark.parametrize("entry", ["run_true", "run_true_ungrouped"])
def test_a_whole_attempt_through_the_nursery(tmp_path: Path, attempt: AttemptDir, entry: str) -> None:
    house = nursery(entry, tmp_path)
    house.start()
    house.launch(attempt.path)
    wait_until(attempt.is_done)
    assert attempt.read_done() == {"status": 0}
    house.close()


def _absent(path: Path) -> bool:
    return not path.exists()
