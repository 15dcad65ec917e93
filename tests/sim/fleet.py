"""A whole cluster under one seed: machines, ticks and people over one bucket; trouble for a while, then healing, then
rest.

Safety is judged at every step, liveness after healing: everything acknowledged must come to its end within a bound, and
whatever the network still delivers after that must change nothing.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.errors import StoreError, TickHeld
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Claim, End
from stado_like.job.states import Cause
from stado_like.planning.liveness import BRAKE_S
from stado_like.planning.world import STALE_GRACE_S
from stado_like.store.clock import StoreClock
from tests.sim.ambient import Clocks, VirtualAmbient
from tests.sim.checkers import Judge
from tests.sim.disasters import CLOCK_JUMP_S, Disasters
from tests.sim.fault_store import Change, FaultStore, SharedBucket
from tests.sim.faults import Kind, Rates, Storm
from tests.sim.histories import histories_could_have_happened
from tests.sim.host import Host
from tests.sim.operators import Operator
from tests.sim.people import Person
from tests.sim.placed_jobs import LAB, Cluster
from tests.sim.plan import Plan
from tests.sim.world import EPOCH_S, Actor, World

REST_WITHIN_S = 3600.0
RECOVERS_WITHIN_S = 45.0
LOST = (Cause.MACHINE_LOST, Cause.UNDELIVERED)
MOST_STEPS = 400_000
ROOMS = ("queued/", "running/", "open/", "cancels/", "inbox/")


@dataclass
class TickProcess:
    name: str
    clocks: Clocks
    actor: Actor | None = None
    lives: int = 0


class Fleet:
    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.plan = plan or Plan.of(seed)
        self.world = World(seed)
        self.shared = SharedBucket(self.world)
        self.judge = Judge(self.shared)
        self.shared.watchers.append(self)
        self.judge.seen.machines_may_be_paused = True
        self.judge.seen.clocks_may_jump = any("clock jumps" in one for one in self.plan.disasters)
        self.judge.seen.lists_may_be_old = Kind.STALE_LIST in self.plan.rates
        self.storm = Storm(self.world, Rates(self.plan.rates))
        self.shared.faults = self.storm
        self.struck: Counter[str] = Counter()
        self.held_ticks = 0
        self._disk = Path(tempfile.mkdtemp(prefix="stado-sim-", dir=_memory_disk()))
        self._healed = False
        self._dead: dict[AttemptId, float] = {}
        chance = random.Random(f"fleet {seed}")
        self.hosts = [
            Host(self, f"h{n}", self._disk / f"h{n}", cores=self.plan.cores, gpus=self.plan.gpus)
            for n in range(1, self.plan.hosts + 1)
        ]
        self.ticks = [TickProcess(f"tick{n}", Clocks(self.world, f"c{n}")) for n in range(1, self.plan.ticks + 1)]
        cluster = Cluster(self.plan.hosts, self.plan.cores, self.plan.gpus)
        self._set_quota(cluster)
        Bucket(self.shared.store, ambient=self.shared.clock).put(keys.STORE_VERDICT, {"nonce": f"{seed}"})
        self.people: list[Person | Operator] = [
            Person(
                f"p{n}",
                self.world,
                self.judge,
                random.Random(f"person {seed} {n}"),
                self.plan.jobs,
                cluster,
                self.plan.placed,
                self.plan.placed and self.plan.crowded,
                self.plan.blocks,
            )
            for n in range(1, self.plan.users + 1)
        ]
        if self.plan.operated:
            operating = random.Random(f"operator {seed}")
            machines = tuple(host.name for host in self.hosts)
            self.people.append(Operator("p-op", self.world, self.judge, operating, machines))
        self._disasters = Disasters(self, chance)
        self._chance = chance
        self.world.after_step = lambda: bool(self.judge.seen.violations)

    def _set_quota(self, cluster: Cluster) -> None:
        """Before anything runs. Where a tick may work beside another, or sees too little, it may give too much."""
        Bucket(self.shared.store, ambient=self.shared.clock).put(keys.workspace(LAB), cluster.lab)
        blind = {Kind.STALE_LIST, Kind.DELAYED, Kind.DUPLICATED} & set(self.plan.rates)
        if not blind and "tick's lock removed" not in self.plan.disasters:
            self.judge.seen.quotas[LAB] = cluster.lab.quota

    def close(self) -> None:
        self._healed = True
        self.world.stop()
        for host in self.hosts:
            for supervisor in list(host.supervisors.values()):
                supervisor.die()
        self.world.stop()
        self.shared.close()
        shutil.rmtree(self._disk, ignore_errors=True)

    @property
    def lasted_s(self) -> float:
        return self.world.now_s - EPOCH_S

    # ---- the run

    def run(self) -> None:
        """Trouble, healing, rest, late requests, rest again. Raises AssertionError with what was broken."""
        for host in self.hosts:
            host.start_agent()
        for tick in self.ticks:
            self._start_tick(tick)
        for person in self.people:
            self._start_person(person)
        self.world.spawn("keeper", self._keep)
        self.world.spawn("fate", self._strike)
        self._go(self.world.now_s + self.plan.trouble_s)
        self._heal()
        self._rest("after healing")
        self.world.arrive_all()
        self._rest("after everything late has arrived")
        self.judge.at_rest()
        for what in histories_could_have_happened(self.judge.seen):
            self.judge.seen.violate("histories could have happened", what)
        self.judge.verify()

    def _go(self, until_s: float) -> None:
        self.world.run(until_s=until_s, most_steps=MOST_STEPS)
        self._zombies_are_fenced()
        self._the_dead_have_ended()
        for actor in self.world.errors:
            self.judge.seen.violate("no process raises", f"{actor.name}: {actor.error!r}")
        self.judge.verify()

    def _rest(self, when: str) -> None:
        deadline_s = self.world.now_s + REST_WITHIN_S
        while self.world.now_s < deadline_s:
            self._go(self.world.now_s + 20.0)
            if not self._unrest():
                # Once more: what lies still may only wait for somebody's next look.
                self._go(self.world.now_s + 70.0)
                if not self._unrest():
                    return
        self.judge.seen.violate("everything comes to rest", f"{when}, {REST_WITHIN_S:g} s later: {self._unrest()}")
        self.judge.verify()

    def _unrest(self) -> list[str]:
        left = [key for key in self.shared.contents() if key.startswith(ROOMS)]
        left += [f"{person.name} is not done" for person in self.people if not person.is_done]
        left += [f"process {name} runs" for host in self.hosts for name, one in host.processes.items() if one.is_alive]
        left += [f"supervisor {name}" for host in self.hosts for name in host.supervisors]
        seen = self.judge.seen
        left += [f"{j} was deleted and is there" for j in seen.buried if seen.holds(keys.job(j))]
        for j in sorted(seen.acknowledged - set(seen.buried)):
            if not (seen.holds(keys.final(j)) if seen.terms[j].several else 0 in seen.finished[j]):
                left.append(f"{j} is not over")
        return left

    def _heal(self) -> None:
        self.world.say("healed")
        self._healed = True
        self.storm.calm = True
        self.storm.spells.clear()
        self.shared.clock.clocks.wall_off_s = 0.0
        for actor in self.world.actors:
            actor.halted_until = 0.0
        for person in self.people:
            person.resting = True
        for host in self.hosts:
            host.nursery_fails, host.nursery_sleeps_s = False, 0.0
            self.thaw_machine(host)
            if not host.is_up:
                host.boot()
        self.remove_lock()
        self._await_the_dead()

    def _await_the_dead(self) -> None:
        """Attempts whose process and supervisor are gone: each must end within 2 TTL + 15 s + 2 ticks. (Where two
        machines lost work at once the brake may be pulled, and ten minutes are allowed more.)"""
        claimed = [keys.parse_running(key) for key in self.shared.contents() if key.startswith(keys.RUNNING)]
        living = self._living()
        seen = self.judge.seen
        dead = [a for a in claimed if str(a) not in living and a not in seen.ends and a.job in seen.jobs]
        workers = {codec.decode(Claim, self.shared.peek(keys.running(a)) or b"{}", "claim").worker for a in dead}
        for a in dead:
            allowed_s = 2 * self.judge.seen.terms[a.job].ttl_s + STALE_GRACE_S + 2 * self.plan.tick_every_s
            allowed_s += RECOVERS_WITHIN_S + (BRAKE_S if len(workers) > 1 else 0.0)
            if self.struck["store's clock jumps"]:
                allowed_s += CLOCK_JUMP_S  # its last heartbeat may lie ahead of the clock that was set right
            self._dead[a] = self.world.now_s + allowed_s

    def _living(self) -> set[str]:
        return {name for host in self.hosts for one in host.supervisors.values() for name in one.attempts()}

    def _the_dead_have_ended(self) -> None:
        """But for those that were only about to be started when the trouble was over (seed 90343)."""
        for a, deadline_s in list(self._dead.items()):
            if a in self.judge.seen.ends or a.job in self.judge.seen.buried or str(a) in self._living():
                del self._dead[a]
            elif self.world.now_s > deadline_s:
                del self._dead[a]
                self.judge.seen.violate("the dead end in time", f"{a} is open {RECOVERS_WITHIN_S:g} s after its bound")

    # ---- those who keep processes running

    def _keep(self) -> None:
        while True:
            self.world.pause(self._chance.uniform(2.0, 20.0))
            for host in self.hosts:
                if host.is_up and not host.is_paused and not host.agent_lives:
                    host.start_agent()
            for tick in self.ticks:
                if tick.actor is None or tick.actor.over or tick.actor.dead:
                    self._start_tick(tick)

    def _strike(self) -> None:
        while self.plan.disasters and not self._healed:
            self.world.pause(self._chance.expovariate(1 / self.plan.disaster_every_s))
            if not self._healed:
                self._disasters.strike(self._chance.choice(self.plan.disasters))

    def _bucket(self, name: str, clocks: Clocks, number: int) -> Bucket:
        ambient = VirtualAmbient(self.world, f"{name}#{number}", clocks)
        me = self.world.current()
        store = FaultStore(self.shared, name, owner=lambda: me, latency_s=0.02, clock=StoreClock(ambient))
        return Bucket(store, ambient=ambient)

    def _start_tick(self, tick: TickProcess) -> None:
        tick.lives += 1
        number = tick.lives
        tick.actor = self.world.spawn(f"{tick.name}#{number}", lambda: self._ticks(tick, number))

    def _ticks(self, tick: TickProcess, number: int) -> None:
        chance = random.Random(f"kept {self.world.seed} {tick.name} {number}")
        bucket, resident = self._bucket(tick.name, tick.clocks, number), self.plan.tick_every_s < 10
        one = Tick(bucket, resident=resident, cache=self._kept(tick, chance))
        while True:
            if not resident and chance.random() < 0.5:  # cron starts another process
                one = Tick(bucket, cache=self._kept(tick, chance))
            try:
                one.step()
            except TickHeld:
                self.held_ticks += 1
            except StoreError:
                self.world.say(f"{tick.name}: the store did not answer")
            self.world.pause(self.plan.tick_every_s)

    def _kept(self, tick: TickProcess, chance: random.Random) -> Path | None:
        """What earlier ticks left on the disk of this machine: all of it, or of both ticks; nothing; or what is left of
        it after the disk lost some."""
        how = chance.choice(("kept", "kept", "shared", "shared", "lost", "damaged", "none"))
        folder = self._disk / "ticks" / ("shared" if how == "shared" else tick.name)
        for file in sorted(folder.glob("*")) if how in ("lost", "damaged") else ():
            if how == "lost":
                file.unlink()
            else:
                body = bytearray(file.read_bytes())
                for _ in range(min(len(body), 8)):
                    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
                file.write_bytes(bytes(body)[: chance.randint(0, len(body))])
        return None if how == "none" else folder

    def _start_person(self, person: Person | Operator, number: int = 1) -> None:
        def live() -> None:
            person.live(self._bucket(person.name, Clocks(self.world, person.name), number))

        actor = self.world.spawn(f"{person.name}#{number}", live)

        def again() -> None:
            if actor.dead and not person.is_done:
                self._start_person(person, number + 1)
            elif not actor.over or (actor.dead and not person.resting):
                self.world.at(self.world.now_s + 15.0, again)

        self.world.at(self.world.now_s + 15.0, again)

    # ---- what disasters ask for

    def kill_tick(self, chance: random.Random) -> None:
        living = [tick.actor for tick in self.ticks if tick.actor is not None and not tick.actor.over]
        if living:
            self.world.kill(chance.choice(living))

    def kill_person(self, chance: random.Random) -> None:
        living = [actor for actor in self.world.actors if actor.name.startswith("p") and not actor.over]
        if living:
            self.world.kill(chance.choice(living))

    def remove_lock(self) -> None:
        store = self.shared.store
        self.shared.effect("person", "delete", keys.TICK_LOCK, lambda: store.delete(keys.TICK_LOCK))

    def pause_machine(self, host: Host, seconds: float) -> None:
        host.paused_since_s = self.world.now_s
        host.paused_until_s = self.world.now_s + seconds
        host.note_unwell(self.world.now_s + seconds)
        for actor in host.actors():
            self.world.halt(actor, seconds)
        for process in host.processes.values():
            process.freeze()
        self.world.at(self.world.now_s + seconds, lambda: self.thaw_machine(host))

    def thaw_machine(self, host: Host) -> None:
        if host.paused_until_s == 0.0:
            return
        host.paused_until_s = 0.0
        host.clocks.frozen_s += self.world.now_s - host.paused_since_s
        for process in host.processes.values():
            process.thaw()

    # ---- what only a fleet can judge

    def changed(self, change: Change) -> None:
        if self.judge.seen.doubtful:
            self._zombies_are_fenced()
        if "/end." in change.key and change.before is None and change.after is not None:
            self._no_healthy_task_is_reaped(codec.decode(End, change.after, change.key), change)

    def refused(self, key: str, standing: bytes, sent: bytes) -> None:
        """The judge counts them."""

    def _zombies_are_fenced(self) -> None:
        """What started after its attempt had ended is killed within a TTL, counted while its machine is well."""
        doubtful = self.judge.seen.doubtful
        for start in list(doubtful):
            host = next(host for host in self.hosts if host.name == start.who.partition("/")[0])
            process, supervisor = host.processes.get(str(start.attempt)), host.supervisor_of(str(start.attempt))
            if process is None or not process.is_alive or supervisor is None:
                doubtful.remove(start)
                continue
            well_since_s = max(start.at_s, host.unwell_at_s, supervisor.unwell_at_s)
            if self.world.now_s - well_since_s > self.judge.seen.terms[start.attempt.job].ttl_s + RECOVERS_WITHIN_S:
                doubtful.remove(start)
                self.judge.seen.violate("zombies are fenced", f"{start.who} runs {start.attempt}, which had ended")

    def _no_healthy_task_is_reaped(self, end: End, change: Change) -> None:
        if change.late or not change.actor.startswith("tick") or end.cause not in LOST:
            return
        for host in self.hosts:
            supervisor = host.supervisors.get(end.attempt)
            process = host.processes.get(end.attempt)
            if supervisor is None or supervisor.dead or process is None or not process.is_alive:
                continue
            if host.name != end.worker:
                continue
            well_for_s = self.world.now_s - max(supervisor.unwell_at_s, host.unwell_at_s)
            if well_for_s > RECOVERS_WITHIN_S:
                self.judge.seen.violate("no healthy task is reaped", f"{end.attempt} on {host.name}: {end.reason}")


def _memory_disk() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
