"""What is done to a campaign, drawn from one seed: processes killed and stopped, machines paused and lost, the server
killed or stopped, the network lossy, a disk full. Each is written into the history with whom it hit and until when.

At most one machine is away at a time, and after every trouble of the store there is a while of peace, or nothing would
ever be seen to recover.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from tests.chaos.cluster import Cluster, Running
from tests.chaos.history import Harm, History, Strike
from tests.chaos.weather import STORMS, LossyProxy, RestartableServer, SmallDisk
from tests.chaos.wishes import Wishes

TTL_S = 10.0
AWAY_S = 9 * TTL_S
DEAF_S = 20 * TTL_S
PEACE_S = 15.0
DRAWS_MOST = 5
WEIGHTS = {
    Harm.AGENT_KILLED: 10,
    Harm.AGENT_TOLD_TO_STOP: 3,
    Harm.NURSERY_KILLED: 6,
    Harm.SUPERVISOR_KILLED: 18,
    Harm.TASK_KILLED: 10,
    Harm.COORDINATOR_KILLED: 8,
    Harm.TICK_KILLED: 8,
    Harm.AGENT_STOPPED: 5,
    Harm.SUPERVISOR_STOPPED: 8,
    Harm.SUPERVISOR_DEAF: 3,
    Harm.COORDINATOR_STOPPED: 3,
    Harm.MACHINE_PAUSED: 4,
    Harm.MACHINE_LOST: 4,
    Harm.DISK_FULL: 3,
    Harm.SERVER_KILLED: 6,
    Harm.SERVER_STOPPED: 4,
    Harm.WEATHER: 12,
    Harm.MACHINE_DRAINED: 8,
    Harm.MACHINE_CORDONED: 3,
    Harm.QUEUE_PAUSED: 2,
}
TAKEN_BACK_WITHIN_S = 60.0

Undo = Callable[[], object]
"""Taken back. False: it could not be, and is tried again."""


@dataclass
class Faults:
    cluster: Cluster
    history: History
    chance: random.Random
    server: RestartableServer | None = None
    network: LossyProxy | None = None
    disk: SmallDisk | None = None
    disk_of: str = ""
    machines_go: bool = True
    wishes: Wishes | None = None
    _undo: list[tuple[float, Strike, Undo]] = field(default_factory=list)
    _peace_until_s: float = 0.0

    # ---- one a second

    def strike(self) -> None:
        """One fault. What finds nobody to hit is drawn again, a few times."""
        before = len(self.history.strikes)
        for _ in range(DRAWS_MOST):
            self._draw()
            if len(self.history.strikes) > before:
                return

    def _draw(self) -> None:
        harm = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        match harm:
            case Harm.SERVER_KILLED | Harm.SERVER_STOPPED | Harm.WEATHER:
                self._trouble_the_store(harm)
            case Harm.DISK_FULL:
                self._fill_the_disk()
            case Harm.COORDINATOR_KILLED | Harm.COORDINATOR_STOPPED | Harm.TICK_KILLED:
                self._hit_a_coordinator(harm)
            case Harm.MACHINE_PAUSED | Harm.MACHINE_LOST:
                self._take_a_machine(harm)
            case Harm.MACHINE_DRAINED | Harm.MACHINE_CORDONED | Harm.QUEUE_PAUSED:
                self._wish(harm)
            case _:
                self._hit_a_process(harm)

    def heal_due(self) -> None:
        now_s = time.monotonic()
        due = [one for one in self._undo if one[0] <= now_s]
        self._undo = [one for one in self._undo if one[0] > now_s]
        for _, strike, undo in due:
            if undo() is False:
                self._later(1.0, strike, undo)
            else:
                strike.until = time.time()

    def heal_all(self) -> None:
        """Everything is taken back now; what needs the store, once that answers again."""
        deadline_s = time.monotonic() + TAKEN_BACK_WITHIN_S
        while self._undo:
            for _, strike, undo in [(0.0, strike, undo) for _, strike, undo in self._undo]:
                if undo() is not False:
                    strike.until = time.time()
                    self._undo = [one for one in self._undo if one[1] is not strike]
            if self._undo and time.monotonic() > deadline_s:
                names = ", ".join(strike.harm.value for _, strike, _ in self._undo)
                raise TimeoutError(f"not taken back within {TAKEN_BACK_WITHIN_S:g} s: {names}")
        self.cluster.due.clear()

    def _note(
        self, harm: Harm, worker: str = "", attempts: frozenset[str] = frozenset(), lasting_s: float = 0.0
    ) -> Strike:
        now = time.time()
        strike = Strike(harm, now, worker, attempts, 0.0 if lasting_s else now)
        self.history.strikes.append(strike)
        return strike

    def _later(self, seconds: float, strike: Strike, undo: Undo) -> None:
        self._undo.append((time.monotonic() + seconds, strike, undo))

    def _away(self) -> set[str]:
        """Workers whose machine is paused or lost now."""
        return {strike.worker for _, strike, _ in self._undo if strike.harm in (Harm.MACHINE_PAUSED, Harm.MACHINE_LOST)}

    # ---- processes

    def _hit_a_process(self, harm: Harm) -> None:
        workers = [worker for worker in self.cluster.alive() if worker not in self._away()]
        if not workers:
            return
        worker = self.chance.choice(workers)
        if harm in (Harm.AGENT_KILLED, Harm.AGENT_STOPPED, Harm.AGENT_TOLD_TO_STOP):
            self._hit_an_agent(harm, worker)
        elif harm is Harm.NURSERY_KILLED:
            nursery = self.cluster.nursery(worker)
            if nursery is not None:
                self._note(harm, worker)
                _kill(nursery)
        else:
            running = self.cluster.running(worker)
            if running:
                self._hit_an_attempt(harm, worker, self.chance.choice(running))

    def _hit_an_agent(self, harm: Harm, worker: str) -> None:
        agent = self.cluster.agent(worker)
        if agent is None:
            return
        if harm is Harm.AGENT_KILLED:
            self._note(harm, worker)
            self.cluster.kill(self.cluster.workers[worker].process)
            return
        if harm is Harm.AGENT_TOLD_TO_STOP:
            self._note(harm, worker)
            self.cluster.killed.add(agent.pid)  # before its handler stands the signal ends it as any other
            agent.terminate()
            return
        strike = self._note(harm, worker, lasting_s=2 * TTL_S)
        agent.suspend()
        self._later(2 * TTL_S, strike, lambda: _resume(agent))

    def _hit_an_attempt(self, harm: Harm, worker: str, one: Running) -> None:
        attempts = frozenset({one.attempt})
        if harm is Harm.TASK_KILLED:
            if one.leader is not None:
                self._note(harm, worker, attempts)
                _kill(one.leader)
        elif harm is Harm.SUPERVISOR_KILLED:
            self._note(harm, worker, attempts)
            _kill(one.supervisor)
        else:
            deaf = harm is Harm.SUPERVISOR_DEAF
            if deaf and (not self.machines_go or any(strike.harm is harm for _, strike, _ in self._undo)):
                return
            lasting_s = DEAF_S if deaf else 2 * TTL_S
            strike = self._note(harm, worker, attempts, lasting_s=lasting_s)
            with suppress(psutil.NoSuchProcess):
                one.supervisor.suspend()
            self._later(lasting_s, strike, lambda: _resume(one.supervisor))

    def _hit_a_coordinator(self, harm: Harm) -> None:
        if harm is Harm.TICK_KILLED:
            if self.cluster.cron is not None and self.cluster.cron.poll() is None:
                self._note(harm)
                self.cluster.kill(self.cluster.cron)
            return
        process = self.chance.choice(self.cluster.coordinators)
        if process is None or process.poll() is not None:
            return
        if harm is Harm.COORDINATOR_KILLED:
            self._note(harm)
            self.cluster.kill(process)
            return
        strike = self._note(harm, lasting_s=TTL_S)
        coordinator = psutil.Process(process.pid)
        coordinator.suspend()
        self._later(self.chance.uniform(5, 15), strike, lambda: _resume(coordinator))

    # ---- machines

    def _take_a_machine(self, harm: Harm) -> None:
        workers = self.cluster.alive()
        if not self.machines_go or self._away() or len(workers) < len(self.cluster.states):
            return
        worker = max(workers, key=lambda one: len(self.cluster.running(one)))
        agent, nursery, running = self.cluster.agent(worker), self.cluster.nursery(worker), self.cluster.running(worker)
        if agent is None:
            return
        strike = self._note(harm, worker, frozenset(one.attempt for one in running), lasting_s=AWAY_S)
        ours = [agent, *([nursery] if nursery is not None else []), *(one.supervisor for one in running)]
        if harm is Harm.MACHINE_PAUSED:
            # Its tasks go on: what a supervisor cannot see is what makes a zombie.
            for process in ours:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            self._later(AWAY_S, strike, lambda: _resume(*ours))
            return
        self.cluster.due[worker] = time.monotonic() + AWAY_S
        self.cluster.kill(self.cluster.workers[worker].process)
        for process in (*ours[1:], *(one.leader for one in running if one.leader is not None)):
            _kill(process)
        self._later(AWAY_S, strike, lambda: None)

    def _fill_the_disk(self) -> None:
        disk = self.disk
        if disk is None or not disk.usable or any(strike.harm is Harm.DISK_FULL for _, strike, _ in self._undo):
            return
        strike = self._note(Harm.DISK_FULL, self.disk_of, lasting_s=TTL_S)
        disk.fill()
        self._later(self.chance.uniform(5, 15), strike, disk.clear)

    # ---- what people want of machines

    def _wish(self, harm: Harm) -> None:
        wishes, workers = self.wishes, self.cluster.alive()
        away = time.monotonic() < self._peace_until_s - PEACE_S
        if wishes is None or not wishes.is_free(harm) or not workers or away:
            return  # while the store is away nobody can be asked
        busiest = max(workers, key=lambda one: (one not in self._away(), len(self.cluster.running(one))))
        worker = "" if harm is Harm.QUEUE_PAUSED else busiest
        lasting_s = self.chance.uniform(3, 8) if harm is Harm.QUEUE_PAUSED else self.chance.uniform(8, 25)
        strike = self._note(harm, worker, lasting_s=lasting_s)
        self._later(lasting_s, strike, wishes.ask(harm, worker))

    # ---- the store

    def _trouble_the_store(self, harm: Harm) -> None:
        if time.monotonic() < self._peace_until_s:
            return
        if harm is Harm.WEATHER:
            if self.network is None:
                return
            network, lasting_s = self.network, self.chance.uniform(4, 15)
            strike = self._note(harm, lasting_s=lasting_s)
            network.storm = self.chance.choice(STORMS)
            self._later(lasting_s, strike, lambda: setattr(network, "storm", ""))
        else:
            server = self.server
            if server is None:
                return
            killed = harm is Harm.SERVER_KILLED
            lasting_s = self.chance.uniform(0.5, 6) if killed else self.chance.uniform(10, 20)
            strike = self._note(harm, lasting_s=lasting_s)
            if killed:
                server.kill()
            else:
                server.suspend()
            self._later(lasting_s, strike, server.start if killed else server.resume)
        self._peace_until_s = time.monotonic() + lasting_s + PEACE_S


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()


def _resume(*processes: psutil.Process) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.resume()
