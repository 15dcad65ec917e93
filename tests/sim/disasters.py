"""What strikes machines, processes, clocks and connections: one method per disaster, by the name that a plan gives
it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.sim.faults import Kind
from tests.sim.host import Host

if TYPE_CHECKING:
    from tests.sim.fleet import Fleet

HOUR_S = 3600.0
BUCKET_AWAY_S = 600.0
CLOCK_JUMP_S = 600.0


class Disasters:
    """Strikes a fleet. What it cuts or stops ends by itself, or when the world is healed."""

    def __init__(self, fleet: Fleet, chance: random.Random) -> None:
        self._fleet = fleet
        self._world = fleet.world
        self._chance = chance

    def strike(self, name: str) -> None:
        self._world.say(f"disaster: {name}")
        self._fleet.struck[name] += 1
        method = name.replace("'", "").replace(" ", "_").replace("-", "_")
        getattr(self, method)()

    def _host(self) -> Host | None:
        up = [host for host in self._fleet.hosts if host.is_up and not host.is_paused]
        return self._chance.choice(up) if up else None

    def _long(self, most_s: float) -> float:
        """Mostly short, now and then as long as may be."""
        return float(most_s * self._chance.random() ** 3) + 1.0

    # ---- processes

    def agent_killed(self) -> None:
        if (host := self._host()) is not None:
            host.kill_agent()

    def supervisor_killed(self) -> None:
        host = self._host()
        if host is not None and host.supervisors:
            self._chance.choice(sorted(host.supervisors.values(), key=lambda one: one.name)).die()

    def supervisor_stopped(self) -> None:
        host = self._host()
        if host is not None and host.supervisors:
            one = self._chance.choice(sorted(host.supervisors.values(), key=lambda one: one.name))
            seconds = self._long(HOUR_S)
            one.unwell_at_s = self._world.now_s + seconds
            for thread in one.threads:
                self._world.halt(thread, seconds)

    def agent_stopped(self) -> None:
        host = self._host()
        if host is not None and host.agent_actor is not None:
            self._world.halt(host.agent_actor, self._long(HOUR_S))

    def nursery_stopped(self) -> None:
        if (host := self._host()) is not None:
            host.nursery_sleeps_s = self._long(HOUR_S)

    def nursery_fails(self) -> None:
        if (host := self._host()) is not None:
            host.nursery_fails = True
            self._world.at(self._world.now_s + self._long(120.0), lambda: setattr(host, "nursery_fails", False))

    def tick_killed(self) -> None:
        self._fleet.kill_tick(self._chance)

    def ticks_lock_removed(self) -> None:
        self._fleet.remove_lock()

    def user_killed(self) -> None:
        self._fleet.kill_person(self._chance)

    # ---- machines

    def machine_lost(self) -> None:
        if (host := self._host()) is not None:
            host.lose()
            self._world.at(self._world.now_s + self._long(HOUR_S / 2), lambda: None if host.is_up else host.boot())

    def machine_re_imaged(self) -> None:
        if (host := self._host()) is not None:
            host.lose()
            self._world.at(self._world.now_s + self._long(HOUR_S / 4), lambda: None if host.is_up else host.reimage())

    def machine_paused(self) -> None:
        """A virtual machine: no clock of its own sees it."""
        if (host := self._host()) is not None:
            seconds = self._long(HOUR_S)
            self._fleet.pause_machine(host, seconds)

    def stores_clock_jumps(self) -> None:
        """Ahead, and some time later back again: a store's clock is wrong now and then, not for ever."""
        clock = self._fleet.shared.clock.clocks
        clock.wall_off_s = self._chance.choice((-1.0, 1.0)) * self._chance.uniform(1.0, CLOCK_JUMP_S)

    def machines_clock_jumps(self) -> None:
        if (host := self._host()) is not None:
            host.clocks.wall_off_s += self._chance.choice((-1.0, 1.0)) * CLOCK_JUMP_S

    # ---- connections

    def machine_cut_off(self) -> None:
        if (host := self._host()) is not None:
            self._cut(host, host.name, Kind.PARTITION, self._long(HOUR_S / 6))

    def credentials_expired(self) -> None:
        if (host := self._host()) is not None:
            self._cut(host, host.name, Kind.EXPIRED, self._long(HOUR_S / 6))

    def supervisor_cut_off(self) -> None:
        """Its connection alone is dead; its agent's works."""
        host = self._host()
        if host is not None and host.supervisors:
            name = self._chance.choice(sorted(host.supervisors))
            self._cut(host, f"{host.name}/sup.{name}", Kind.PARTITION, self._long(HOUR_S / 3))

    def bucket_away(self) -> None:
        self._fleet.storm.spell(("*",), Kind.PARTITION, self._long(BUCKET_AWAY_S))

    def _cut(self, host: Host, actor: str, kind: Kind, seconds: float) -> None:
        self._fleet.storm.spell((actor,), kind, seconds)
        host.note_unwell(self._world.now_s + seconds)
