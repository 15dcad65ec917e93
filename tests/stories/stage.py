"""The stage of the golden stories: one bucket, machines, ticks and a person, on the simulator's clock.

Everything that acts is the shipped code: the worker's agent, a supervisor's two threads, ticks, the commands of a
person, the reader. A story says what the command does (`sim 30 exit=3`), what happens from outside and when, and what
the history of each task and of the job must then be, word for word. The simulator's judge looks on: a story that broke
a rule of the protocol fails too.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, order, submit, workers
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, TickHeld
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.spec.validate import validate
from stado_like.job.states import Cause
from stado_like.reading.shapes import JobView
from stado_like.reading.view import read_job
from stado_like.store.clock import StoreClock
from stado_worker.shim.could_not_start import CouldNotStart, StartFault
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.task import Read
from tests.sim.ambient import Clocks, VirtualAmbient
from tests.sim.checkers import Judge
from tests.sim.fault_store import FaultStore, SharedBucket
from tests.sim.host import Host, Supervisor
from tests.sim.processes import Process
from tests.sim.world import EPOCH_S, World

SIGNALS = {"SIGSEGV": 139, "SIGKILL": 137, "SIGTERM": 143}
MACHINES = ("h1", "h2", "h3")


@dataclass
class StoryProcess(Process):
    """A process that may also be ended by a signal of its own, or for want of memory."""

    words: tuple[str, ...] = ()

    def look(self) -> Exit | None:
        signal = next((word.partition("=")[2] for word in self.words if word.startswith("signal=")), "")
        due = self.exit is None and self.frozen_at_s is None and self.world.now_s >= self.ends_at_s
        if due and signal and self.script.exit_code != 143:
            self._end(Exit(SIGNALS[signal], signal))
        return super().look()


class StoryHost(Host):
    """A machine on which commands may also be missing, or no process can be made."""

    def _begin(self, read: Read, supervisor: Supervisor, wake: Callable[[], None]) -> Process:
        words = read.terms.command[2:]
        if "missing" in words:
            message = "Command not found: sim in PATH=/bin on h1"
            raise CouldNotStart(message, "Install it.", fault=StartFault.NOT_FOUND, command_exit=127)
        if "nofork" in words and read.a.n == 1:
            message = "No process could be started on h1: Resource temporarily unavailable"
            raise CouldNotStart(message, "See its limits.", fault=StartFault.MACHINE, command_exit=None)
        made = super()._begin(read, supervisor, wake)
        told = StoryProcess(**{name: getattr(made, name) for name in Process.__dataclass_fields__}, words=words)
        told.out_of_memory = "oom" in words
        self.processes[str(read.a)] = told
        return told


@dataclass
class Stage:
    """`machines`: how many there are from the start. `ticks_every_s` 0: nobody ticks."""

    machines: int = 1
    ticks_every_s: float = 5.0
    world: World = field(default_factory=lambda: World(7))
    hosts: dict[str, StoryHost] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shared = SharedBucket(self.world, "story")
        self.judge = Judge(self.shared)
        self.judge.seen.machines_may_be_paused = True
        self._disk = Path(
            tempfile.mkdtemp(prefix="stado-story-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        )
        self.bucket = self._bucket("person")
        for name in MACHINES[: self.machines]:
            self.start(name)
        if self.ticks_every_s:
            self.world.spawn("tick", self._ticks)

    def close(self) -> None:
        self.world.stop()
        for host in self.hosts.values():
            for supervisor in list(host.supervisors.values()):
                supervisor.die()
        self.world.stop()
        self.shared.close()
        shutil.rmtree(self._disk, ignore_errors=True)

    def _bucket(self, name: str) -> Bucket:
        ambient = VirtualAmbient(self.world, name, Clocks(self.world, name))
        me = self.world.current()
        store = FaultStore(self.shared, name, owner=lambda: me, latency_s=0.0, clock=StoreClock(ambient))
        return Bucket(store, ambient=ambient)

    def _ticks(self) -> None:
        tick = Tick(self._bucket("tick"), resident=True)
        while True:
            with suppress(TickHeld):
                tick.step()
            self.world.pause(self.ticks_every_s)

    def run_to(self, at_s: float) -> None:
        """`at_s`: seconds since the story began."""
        self.world.run(until_s=EPOCH_S + at_s)
        self.world.advance(EPOCH_S + at_s - self.world.now_s)  # where nobody is left who acts
        assert not self.world.errors, [repr(actor.error) for actor in self.world.errors]

    # ---- what happens from outside, one method per word of a story

    def start(self, name: str) -> None:
        """A machine joins; also one that was lost comes back, rebooted."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = StoryHost(self, name, self._disk / name)
            host.start_agent()
        else:
            host.boot()

    def lose(self, name: str) -> None:
        self.hosts[name].lose()

    def remove(self, name: str) -> None:
        """Lost, and its broadcast is gone: its worker said good-bye before."""
        self.hosts[name].lose()
        self.bucket.drop(keys.capacity(name))

    def kill_supervisor(self, name: str) -> None:
        for supervisor in list(self.hosts[name].supervisors.values()):
            supervisor.die()

    def hang_supervisor(self, name: str) -> None:
        """It neither runs nor ends, for ever; its agent goes on."""
        for supervisor in self.hosts[name].supervisors.values():
            for thread in supervisor.threads:
                self.world.halt(thread, 10_000.0)

    def cut_off(self, name: str, seconds: float) -> None:
        """Its supervisors' own requests go nowhere for so long; their processes go on."""
        for supervisor in self.hosts[name].supervisors.values():
            for thread in supervisor.threads[1:]:
                self.world.halt(thread, seconds)

    def cancel(self, reason: str = "") -> None:
        cancel.cancel_job(self.bucket, self.job, reason=reason, by="ann")

    def stop(self, rank: int, reason: str = "") -> None:
        cancel.stop_task(self.bucket, self.job, rank, reason=reason, by="ann")

    def drain(self, name: str) -> None:
        workers.drain(self.bucket, name, by="ann")

    def cordon(self, name: str, reason: str) -> None:
        workers.cordon(self.bucket, name, reason=reason, by="ann")

    def requeue(self, rank: int, reason: str = "") -> None:
        order.requeue(self.bucket, self.job, rank, reason=reason, by="ann")

    def give_stop(self, cause: str, reason: str) -> None:
        """The machinery orders the task that runs to be stopped."""
        (a,) = (keys.parse_running(key) for key in self.shared.contents() if key.startswith(keys.RUNNING))
        claim = self.bucket.claim(a)
        assert claim is not None
        order.give_stop(self.bucket, claim.record.worker, a, Cause(cause), reason)

    def cancel_other(self, name: str) -> None:
        cancel.cancel_job(self.bucket, JobId("default", name, 1), by="ann")

    # ---- the job

    def submit(self, document: Mapping[str, Any]) -> JobId:
        self.job = self.submit_other(document)
        return self.job

    def submit_other(self, document: Mapping[str, Any]) -> JobId:
        """A job of which no history is told."""
        done = submit.submit(self.bucket, validate(document), by="ann")
        assert isinstance(done, submit.Submitted)
        self.judge.seen.acknowledge(done.id)
        return done.id

    def view(self) -> JobView:
        self.bucket.forget(self.job)
        return read_job(self._bucket("reader"), self.job)

    def do(self, word: str, *values: Any) -> None:
        """One step of a story."""
        with suppress(Conflict):
            getattr(self, word)(*values)
