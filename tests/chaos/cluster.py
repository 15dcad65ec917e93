"""The machines of a campaign: workers with a state directory each, resident coordinators, and ticks as of cron.

Whatever was killed is started again after a moment. Processes are named by pid and start time (psutil), so that nothing
is ever signalled that was not started here.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from stado_like.errors import BadRecord
from stado_worker.shim import process_table
from stado_worker.shim.attempt_dir import AttemptDir, attempt_dirs
from tests.process.rig import PYTHON, Rig, WorkerProcess

STORE_AWAY = 5
HELD = (0, 4, 6)


@dataclass(slots=True)
class Running:
    """A supervisor that lives, with the attempt it runs and the pid of the attempt's process (None: not started)."""

    attempt: str
    supervisor: psutil.Process
    leader: psutil.Process | None


@dataclass
class Cluster:
    """`ended`: processes that nobody had killed and that ended with what they should not end with."""

    rig: Rig
    states: dict[str, Path]
    coordinators_wanted: int = 2
    workers: dict[str, WorkerProcess] = field(default_factory=dict)
    coordinators: list[subprocess.Popen[bytes] | None] = field(default_factory=list)
    cron: subprocess.Popen[bytes] | None = None
    due: dict[str, float] = field(default_factory=dict)
    killed: set[int] = field(default_factory=set)
    starts: int = 0
    ended: list[str] = field(default_factory=list)

    def start(self) -> None:
        for worker in self.states:
            self._start_worker(worker)
        self.coordinators = [self._coordinator(number) for number in range(self.coordinators_wanted)]

    def _start_worker(self, worker: str) -> None:
        self.starts += 1
        room = ("--cpus", "2", "--memory", "2GiB")
        self.workers[worker] = self.rig.worker(worker, *room, state=self.states[worker], ready=False)

    def _coordinator(self, number: int) -> subprocess.Popen[bytes]:
        return self._command(f"coordinator-{number}", "scheduler", "run", "--interval", "2s")

    def _command(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        self.starts += 1
        with (self.rig.folder / f"{name}.log").open("ab") as output:
            return subprocess.Popen(
                [PYTHON, "-m", "stado_cli.main", "--store", self.rig.url, *arguments],
                env=self.rig.env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.rig.folder,
                start_new_session=True,
            )

    def tick_as_cron_does(self) -> None:
        """One tick, unless the last one still runs."""
        if self.cron is not None and self.cron.poll() is None:
            return
        self._said_well("cron tick", self.cron, (*HELD, STORE_AWAY))
        self.cron = self._command("cron", "scheduler", "tick", "--cron")

    # ---- what was killed comes back

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        self.killed.add(process.pid)
        process.kill()

    def tend(self, back_after_s: Callable[[], float]) -> None:
        """Start again what is gone, `back_after_s` after it was found so, or when `due` says."""
        now_s = time.monotonic()
        for worker, started in list(self.workers.items()):
            if started.process.poll() is None:
                continue
            if worker not in self.due:
                self._said_well(worker, started.process, (0, STORE_AWAY), started.said)
                self.due[worker] = now_s + back_after_s()
            if now_s >= self.due[worker]:
                del self.due[worker]
                self._start_worker(worker)
        for number, process in enumerate(self.coordinators):
            name = f"coordinator-{number}"
            if process is None or process.poll() is None:
                continue
            if name not in self.due:
                self._said_well(name, process, (STORE_AWAY,))
                self.due[name] = now_s + back_after_s()
            if now_s >= self.due[name]:
                del self.due[name]
                self.coordinators[number] = self._coordinator(number)

    def _said_well(
        self,
        name: str,
        process: subprocess.Popen[bytes] | None,
        allowed: tuple[int, ...],
        said: Callable[[], str] = lambda: "",
    ) -> None:
        if process is None or process.pid in self.killed or process.returncode in allowed:
            return
        self.ended.append(f"{name} ended by itself with {process.returncode}: {said()[-2000:]}")

    # ---- looking

    def alive(self) -> list[str]:
        return [worker for worker, started in self.workers.items() if started.process.poll() is None]

    def agent(self, worker: str) -> psutil.Process | None:
        started = self.workers[worker].process
        if started.poll() is not None:
            return None
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(started.pid)
        return None

    def nursery(self, worker: str) -> psutil.Process | None:
        agent = self.agent(worker)
        if agent is None:
            return None
        with suppress(psutil.Error):
            for child in agent.children():
                if "stado_worker.nursery" in child.cmdline():
                    return child
        return None

    def running(self, worker: str) -> list[Running]:
        found = []
        for folder in self.folders(worker):
            with suppress(BadRecord, OSError, psutil.Error):
                if not folder.is_done() and folder.is_alive():
                    found.append(_running(folder))
        return found

    def folders(self, worker: str) -> list[AttemptDir]:
        return attempt_dirs(self.states[worker] / worker / "attempts")


def _running(folder: AttemptDir) -> Running:
    """Raises BadRecord, psutil.Error: it cannot be told, or is gone."""
    proc = folder.read_proc()
    if proc is None:
        raise BadRecord(f"{folder.path} has no proc.json yet")
    supervisor = psutil.Process(proc["pid"])
    if "stado_worker.nursery" not in supervisor.cmdline():
        raise psutil.NoSuchProcess(supervisor.pid)
    leader = proc.get("leader")
    if leader is None or not process_table.same_process(leader[0], leader[1]):
        return Running(folder.attempt_id, supervisor, None)
    return Running(folder.attempt_id, supervisor, psutil.Process(leader[0]))
