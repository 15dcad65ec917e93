"""A machine: a disk that survives its processes, clocks, an agent, supervisors, and the processes that they run.

The agent is the shipped `Agent`, a supervisor is the shipped `Control` and `Io` in two greenlets: what is replaced is
only what a real machine has beneath them: threads, descriptors, signals, forks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, StoreError
from stado_like.job import keys
from stado_like.job.hardware import Device
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity
from stado_like.store.clock import StoreClock
from stado_worker.agent import Agent, AgentOptions
from stado_worker.machine import cpu
from stado_worker.machine.described import Hardware
from stado_worker.machine.identity import WorkerHome
from stado_worker.machine.room import LiveRoom, Total
from stado_worker.offer import Offer
from stado_worker.run import FRESH_S
from stado_worker.shim import report
from stado_worker.shim.attempt_dir import AliveLock, AttemptDir
from stado_worker.shim.barrier import GangBarrier
from stado_worker.shim.block import BlockIo
from stado_worker.shim.control import Control
from stado_worker.shim.heartbeat import Io
from stado_worker.shim.life import Gate, Life, Over
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.task import Read, read_task
from tests.sim.ambient import Clocks, VirtualAmbient
from tests.sim.block_host import BlockHere, is_block
from tests.sim.checkers import Judge
from tests.sim.fault_store import FaultStore, SharedBucket
from tests.sim.host_launcher import HostLauncher
from tests.sim.loads import beyond_its_room
from tests.sim.processes import NEVER_S, Process, Script, ScriptedRunner
from tests.sim.world import Actor, Crash, World

MIB = 1 << 20
POLL_S = 3.0
RACK = "topology.stado.io/rack"


class Grounds(Protocol):
    """What hosts share."""

    world: World
    shared: SharedBucket
    judge: Judge


class _Idle:
    """A machine on which nothing but our own tasks runs."""

    def __init__(self, cores: int) -> None:
        self._cores = cores

    def busy(self) -> cpu.BusyReading:
        return cpu.BusyReading(0.0, self._cores)

    def available_bytes(self) -> int:
        return 64 * 1024 * MIB


@dataclass
class Supervisor:
    """One supervisor process: its two threads, its lock. `unwell_at_s`: when it last was paused, cut off or killed."""

    host: Host
    folder: AttemptDir
    name: str
    threads: list[Actor] = field(default_factory=list)
    lock: AliveLock | None = None
    here: BlockHere | None = None
    attempt: AttemptId | None = None
    unwell_at_s: float = -NEVER_S
    over: bool = False

    @property
    def dead(self) -> bool:
        return self.over or any(thread.dead for thread in self.threads)

    def attempts(self) -> list[str]:
        return [self.folder.attempt_id] if self.here is None else self.here.attempts()

    def die(self) -> None:
        """kill -9, or its machine is gone: both threads stop where they are, the kernel lets go of the lock."""
        self.unwell_at_s = self.host.grounds.world.now_s
        for thread in self.threads:
            self.host.grounds.world.kill(thread)
        self._end()

    def _end(self) -> None:
        self.over = True
        if self.lock is not None:
            self.lock.release()
        if self.here is not None:
            self.here.release()
        self.host.supervisors.pop(self.folder.attempt_id, None)
        self.host.agent_hears(self.folder.attempt_id)


class Host:
    """`name` is the worker's id. `machine` tells a re-imaged machine from the one that had its id before."""

    def __init__(self, grounds: Grounds, name: str, disk: Path, *, cores: int = 3, gpus: int = 0) -> None:
        self.grounds = grounds
        self.name = name
        self.disk = disk
        self.cores = cores
        self.gpus = gpus
        self.clocks = Clocks(grounds.world, name)
        self.machine = f"machine-{name}-1"
        self.supervisors: dict[str, Supervisor] = {}
        self.processes: dict[str, Process] = {}
        self.agent: Agent | None = None
        self.agent_actor: Actor | None = None
        self.is_up = True
        self.unwell_at_s = -NEVER_S
        self.paused_since_s = self.paused_until_s = 0.0
        self.nursery_sleeps_s = 0.0
        self.nursery_fails = False
        self.log: list[str] = []
        self._numbered = 0
        self._home = WorkerHome(disk, name)
        self._home.make()

    @property
    def is_paused(self) -> bool:
        return self.paused_until_s > self.grounds.world.now_s

    # ---- processes of ours

    def _ambient(self, role: str) -> VirtualAmbient:
        self._numbered += 1
        return VirtualAmbient(self.grounds.world, f"{self.name}/{role}#{self._numbered}", self.clocks)

    def _bucket(self, role: str, ambient: VirtualAmbient, owner: Callable[[], Actor | None]) -> Bucket:
        store = FaultStore(
            self.grounds.shared, f"{self.name}/{role}", owner=owner, latency_s=0.02, clock=StoreClock(ambient)
        )
        return Bucket(store, ambient=ambient)

    # ---- the agent

    def start_agent(self) -> None:
        ambient = self._ambient("agent")
        actor = self.grounds.world.spawn(ambient.name, lambda: self._agent_runs(ambient))
        self.agent_actor = actor

    def _agent_runs(self, ambient: VirtualAmbient) -> None:
        world, me = self.grounds.world, self.grounds.world.current()
        bucket = self._bucket("agent", ambient, lambda: me)
        while not self._may_start(bucket, ambient):
            world.pause(20.0)
        agent = self.agent = self._build(bucket, ambient)
        agent.recover()
        while True:
            world.pause(max(0.05, agent.step()))

    def _may_start(self, bucket: Bucket, ambient: VirtualAmbient) -> bool:
        """As `run.Worker` does it: a fresh broadcast under this id from another machine or boot is another worker."""
        try:
            found = bucket.read(Capacity, keys.capacity(self.name))
        except StoreError:
            return False
        if found is None:
            return True
        ours = (found.record.machine_id, found.record.boot_id) == (self.machine, ambient.boot_id)
        return ours or found.now >= found.record.next_by + FRESH_S

    def _build(self, bucket: Bucket, ambient: VirtualAmbient) -> Agent:
        room = LiveRoom(
            Total(self.cores * 1000, self.cores * 1024 * MIB),
            ambient.boot_s(),
            cpus_given=True,
            memory_given=True,
            sampler=_Idle(self.cores),
        )
        offer = Offer(
            worker=self.name,
            host=self.name,
            room=room,
            ambient=ambient,
            scratch=self._home.attempts,
            machine_id=self.machine,
            nonce=ambient.token(),
            labels={"pool": "a" if self.name == "h1" else "b", RACK: "r1" if self.name in ("h1", "h2") else "r2"},
            hardware=Hardware(tuple(Device(id=f"{self.name}-{n}", index=n) for n in range(self.gpus))),
        )
        options = AgentOptions(
            worker=self.name,
            home=self._home,
            store_url="memory://sim",
            machine_id=self.machine,
            poll_s=POLL_S,
            fsync=False,
            grace_s=5,
        )
        return Agent(bucket, options, HostLauncher(self), offer, ambient=ambient, log=self.log.append)

    def kill_agent(self) -> None:
        if self.agent_actor is not None:
            self.grounds.world.kill(self.agent_actor)
        self.agent = self.agent_actor = None

    @property
    def agent_lives(self) -> bool:
        return self.agent_actor is not None and not self.agent_actor.over and not self.agent_actor.dead

    def agent_hears(self, attempt_id: str) -> None:
        if self.agent is not None and self.agent_lives and self.agent_actor is not None:
            self.agent.supervisor_ended(attempt_id)
            self.grounds.world.wake(self.agent_actor)

    # ---- supervisors

    def spawn_supervisor(self, folder: AttemptDir) -> None:
        if not self.is_up:
            return
        if self.is_paused:
            self.grounds.world.at(self.paused_until_s, lambda: self.spawn_supervisor(folder))
            return
        ambient = self._ambient(f"sup.{folder.attempt_id}")
        supervisor = Supervisor(self, folder, ambient.name)
        actor = self.grounds.world.spawn(f"{ambient.name}/control", lambda: self._control_runs(supervisor, ambient))
        supervisor.threads.append(actor)

    def _control_runs(self, supervisor: Supervisor, ambient: VirtualAmbient) -> None:
        try:
            self._supervise(supervisor, ambient)
        except Crash:
            supervisor.die()
            raise
        supervisor._end()

    def _supervise(self, supervisor: Supervisor, ambient: VirtualAmbient) -> None:
        world, folder = self.grounds.world, supervisor.folder
        try:
            supervisor.lock = folder.take_alive(ambient=ambient)
        except (Conflict, FileNotFoundError):
            return
        if not folder.create_launch("supervisor"):
            return
        plain = folder.read_task()
        if plain is None:
            return
        read = read_task(plain)
        supervisor.attempt = read.a
        self.supervisors[folder.attempt_id] = supervisor
        me = world.current()
        io_actor: list[Actor] = []

        def wake_io() -> None:
            for one in io_actor:
                world.wake(one)

        def wake_control() -> None:
            if me is not None:
                world.wake(me)

        life = Life(ambient, read.task.claimed_at, read.task.claimed_boot_s, wake_io=wake_io, wake_control=wake_control)
        bucket = self._bucket(f"sup.{folder.attempt_id}", ambient, lambda: io_actor[0] if io_actor else me)
        begin = partial(self._begin, supervisor=supervisor, wake=wake_control)
        if is_block(read):
            supervisor.here = here = BlockHere(supervisor, read, life, bucket, ambient, begin)
            block = here.block
            control = Control(read, life, block.runner, block.stop_file, ambient, block.close)
            io: Io | BlockIo = block.io()
            left_s, nudge, barrier = here.left_s, here.nudge, None
        else:
            runner = ScriptedRunner(world, read, begin)

            def keep_exit(over: Over) -> None:
                report.keep(folder, report.facts_of(read, life, over), fsync=False)

            barrier = GangBarrier(read, life, bucket, ambient, lambda: 29500) if read.waits_at_barrier else None
            control = Control(read, life, runner, folder.stop, ambient, keep_exit, barrier=barrier)
            io = Io(read, life, bucket, folder, LogShipping(bucket, read.a, folder.log), ambient, barrier=barrier)
            left_s, nudge = runner.left_s, life.nudge
        supervisor.nudge = nudge  # type: ignore[attr-defined]

        def start_io() -> None:
            if not io_actor:
                io_actor.append(world.spawn(f"{ambient.name}/io", lambda: self._io_runs(supervisor, io)))
                supervisor.threads.append(io_actor[0])

        while True:
            sleep_s = control.step()
            if control.is_over:
                following = supervisor.here.let_go(control) if supervisor.here is not None else None
                if following is None:
                    break
                control = following
                wake_io()
                continue
            if control.started or control.at_barrier or life.gate is Gate.ASKED:
                start_io()
            world.pause(min(sleep_s, left_s()))
        start_io()
        wake_io()
        while not io_actor[0].over:
            world.pause(60.0)

    def _io_runs(self, supervisor: Supervisor, io: Io | BlockIo) -> None:
        world = self.grounds.world
        try:
            while (wait_s := io.step()) is not None:
                world.pause(wait_s)
        except Crash:
            supervisor.die()
            raise
        for thread in supervisor.threads[:1]:
            world.wake(thread)

    def _begin(self, read: Read, supervisor: Supervisor, wake: Callable[[], None]) -> Process:
        world = self.grounds.world
        script = Script.of(read.terms.command, read.a.rank)
        self._judge_place(read)
        process = Process(world, read.a, script, world.now_s, world.now_s + script.runs_s, on_end=wake)
        process.devices = read.task.claim.devices
        self.processes[str(read.a)] = process
        world.say(f"process {read.a} starts on {self.name}")
        for why in beyond_its_room(self, self.grounds.judge.seen.terms):
            self.grounds.judge.seen.violate("machines carry what runs", f"{read.a} on {self.name}: {why}")
        self.grounds.judge.started(read.a, supervisor.name, read.task.claim.nonce)
        return process

    def _judge_place(self, read: Read) -> None:
        """Whether a task may be here: what its job asks of a machine holds of this one."""
        ask, here = read.terms.ask, []
        if ask.names and self.name not in ask.names:
            here.append(f"only {', '.join(ask.names)} may run it")
        if ask.labels.get("pool", "a") != "a" or (ask.labels and self.name != "h1"):
            here.append(f"it asks for {dict(ask.labels)}")
        if ask.needs:
            here.append(f"it needs {', '.join(ask.needs)}")
        if ask.apart:
            ranks, j = read.terms.group_of(read.a.rank).ranks, read.a.job
            living = (one.attempt for one in self.processes.values() if one.is_alive)
            here += [f"{a} is here too" for a in living if a.job == j and a.rank in ranks and a != read.a]
        for why in here:
            self.grounds.judge.seen.violate("tasks run where they asked to", f"{read.a} on {self.name}: {why}")

    # ---- what happens to a machine

    def lose(self) -> None:
        """Power off: everything but the disk is gone."""
        self.is_up = False
        self.unwell_at_s = self.grounds.world.now_s
        self.kill_agent()
        for supervisor in list(self.supervisors.values()):
            supervisor.die()
        for process in self.processes.values():
            process.kill()
        self.processes.clear()

    def boot(self) -> None:
        self.clocks.reboot()
        self.is_up = True
        self.start_agent()

    def reimage(self) -> None:
        """Another machine under the old id, with an empty disk."""
        shutil.rmtree(self._home.path, ignore_errors=not self._home.path.exists())  # re-imaged before its first boot
        self._home.make()
        self.machine = f"{self.machine}+"
        self.boot()

    def actors(self) -> list[Actor]:
        threads = [thread for one in self.supervisors.values() for thread in one.threads]
        return threads + ([self.agent_actor] if self.agent_actor is not None else [])

    def supervisor_of(self, attempt: str) -> Supervisor | None:
        """Whoever holds an attempt, or the block that has begun it."""
        for one in self.supervisors.values():
            if one.folder.attempt_id == attempt:
                return one
            if one.here is not None and one.here.runs(attempt):
                return one
        return None

    def note_unwell(self, until_s: float) -> None:
        self.unwell_at_s = max(self.unwell_at_s, until_s)
        for supervisor in self.supervisors.values():
            supervisor.unwell_at_s = max(supervisor.unwell_at_s, until_s)
