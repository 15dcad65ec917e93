"""A worker process around the agent's `step()`: its identity, its nursery, its signals, and the waiting between steps.

SIGTERM or Ctrl-C: stop claiming, take the broadcast away, and leave the tasks running; the next start adopts them.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from stado_like.ambient import REAL, Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, StoreError
from stado_like.job import keys
from stado_like.job.records import Capacity
from stado_like.store.meter import Meter
from stado_like.store.probe import ensure_trusted
from stado_like.store.url import open_store, poll_s
from stado_worker.agent import Agent, AgentOptions
from stado_worker.launcher import NurseryLauncher
from stado_worker.machine import identity
from stado_worker.machine.described import NO_HARDWARE, Hardware
from stado_worker.machine.identity import WorkerHome
from stado_worker.machine.room import LiveRoom, measure
from stado_worker.nursery import Nursery
from stado_worker.offer import Offer
from stado_worker.secrets.placing import remove_of_the_dead
from stado_worker.shim.attempt_dir import sweep
from stado_worker.shim.cgroup import AttemptGroup

SWEEP_FOLDERS_EVERY_S = 600.0
FRESH_S = 15.0
NURSERY_ANSWERS_S = 3.0
"""A fork takes milliseconds. The agent hears nothing while it waits, and replacing a nursery in vain costs little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What `stado worker start` was told. `cpus`, `memory_bytes`: taken as given, load ignored. `hardware`: GPUs and
    ports. `until_idle_s`: end after so long without work; `once`: end when what was claimed first has ended. Graces:
    None where the cluster decides."""

    store_url: str
    worker: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    cpus: float | None = None
    memory_bytes: int | None = None
    hardware: Hardware = NO_HARDWARE
    once: bool = False
    until_idle_s: float | None = None
    only_job: str = ""
    grace_s: int | None = None
    most_grace_s: int | None = None


class Worker:
    """One worker of this machine. `start()`, then `turn()` again and again, then `stop()`."""

    def __init__(
        self,
        options: WorkerOptions,
        *,
        state_dir: Path | None = None,
        ambient: Ambient = REAL,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._options = options
        self._ambient = ambient
        self._log = log
        home = state_dir or identity.state_home()
        self._home = WorkerHome(home, options.worker or identity.default_worker_id(home, ambient=ambient))
        self.meter = Meter()
        self._bucket = Bucket(open_store(options.store_url, meter=self.meter), ambient=ambient)
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._nursery: Nursery | None = None
        self._agent: Agent | None = None
        self._swept_s = ambient.boot_s()
        self.stopping = False

    @property
    def name(self) -> str:
        return self._home.worker_id

    @property
    def agent(self) -> Agent:
        assert self._agent is not None, "start() first"
        return self._agent

    def start(self) -> int:
        """Become this worker. Returns how many attempts were adopted.

        Raises `Conflict` (this id runs already, here or elsewhere), `StoreError`, `StoreUntrusted`.
        """
        self._lock = self._home.lock_worker_id(self._ambient)
        ensure_trusted(self._bucket.store)
        machine = identity.machine_id(self._home.state_home, ambient=self._ambient)
        self._refuse_a_double(machine)
        store_url = self._bucket.store.url
        gc.freeze()  # what is loaded by now stays: the collector need not walk it again and again
        AttemptGroup.sweep()
        self._nursery = Nursery(prepare=store_url, log_path=self._home.nursery_log, answer_s=NURSERY_ANSWERS_S)
        self._nursery.start()
        options = AgentOptions(
            worker=self.name,
            home=self._home,
            store_url=store_url,
            machine_id=machine,
            poll_s=poll_s(self._options.store_url),
            only_job=self._options.only_job,
            fsync="durable=0" not in store_url,
            grace_s=self._options.grace_s,
            most_grace_s=self._options.most_grace_s,
            address=self._options.address,
        )
        self._launcher = NurseryLauncher(self._nursery, self._selector, self._ambient)
        self._agent = Agent(
            self._bucket, options, self._launcher, self._offer(machine), ambient=self._ambient, log=self._log
        )
        try:
            remove_of_the_dead(self._home.attempts)
        except OSError as trouble:
            self._log(f"what dead attempts had placed on this machine could not be removed: {trouble}")
        return self._agent.recover()

    def _offer(self, machine: str) -> Offer:
        given = self._options
        room = LiveRoom(
            measure(cpus=given.cpus, memory_bytes=given.memory_bytes),
            self._ambient.boot_s(),
            cpus_given=given.cpus is not None,
            memory_given=given.memory_bytes is not None,
        )
        return Offer(
            worker=self.name,
            host=self._ambient.host,
            room=room,
            ambient=self._ambient,
            scratch=self._home.attempts,
            address=given.address,
            machine_id=machine,
            started_at=self._bucket.now(),
            nonce=self._bucket.token(),
            labels=given.labels,
            hardware=given.hardware,
        )

    def _refuse_a_double(self, machine: str) -> None:
        """A fresh broadcast under this id from another machine, or from this one before it was restarted, is
        another worker."""
        found = self._bucket.read(Capacity, keys.capacity(self.name))
        if found is None:
            return
        said = found.record
        ours = said.machine_id == machine and said.boot_id == self._ambient.boot_id
        if not ours and found.now < said.next_by + FRESH_S:
            raise Conflict(
                f"worker {self.name} already runs on {said.host}: it spoke {found.age_s:.0f} s ago",
                "Stop it there, wait a minute if that machine is gone, or start this one with another --id.",
                code="WORKER_EXISTS",
            )

    # ---- the loop

    def turn(self, most_s: float = 60.0) -> bool:
        """One step, then wait for something to happen, at most `most_s`. False: this worker has nothing more to do."""
        wait_s = self.agent.step()
        self._launcher.trim()
        self._sweep_folders()
        if self._is_done():
            return False
        for key, _ in self._selector.select(max(0.0, min(wait_s, most_s))):
            if key.data is None:
                self._drain()
            else:
                self.agent.supervisor_ended(str(key.data))
        return not self.stopping

    def run(self) -> None:
        """Until a signal, or until `once` / `until_idle_s` says so."""
        while self.turn():
            pass

    def wake(self) -> None:
        try:
            os.write(self._wake_write, b"w")
        except BlockingIOError:
            return

    def catch_signals(self) -> None:
        """SIGTERM and Ctrl-C end the loop after the current step."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True

    def _drain(self) -> None:
        try:
            while os.read(self._wake_read, 512):
                pass
        except BlockingIOError:
            return

    def _is_done(self) -> bool:
        if self.agent.held:
            return False
        if self._options.once and self.agent.claimed:
            return True
        idle_s = self._ambient.boot_s() - self.agent.idle_since_s
        return self._options.until_idle_s is not None and idle_s >= self._options.until_idle_s

    def _sweep_folders(self) -> None:
        now_s = self._ambient.boot_s()
        if now_s - self._swept_s < SWEEP_FOLDERS_EVERY_S:
            return
        self._swept_s = now_s
        for name, why in sweep(self._home.attempts, self._ambient.wall_s()).failed.items():
            self._log(f"{name}: its folder could not be removed: {why}")

    def stop(self) -> int:
        """Stop claiming and take the broadcast away. Tasks go on. Returns how many."""
        if self._agent is None:
            return 0
        held = self._agent.held
        try:
            self._agent.withdraw()
        except StoreError as trouble:
            self._log(f"the broadcast could not be taken away: {trouble.message}")
        if self._nursery is not None:
            self._nursery.close()
        signal.set_wakeup_fd(-1)
        self._lock.release()
        self._bucket.store.close()
        return held
