"""What a simulated process knows of time and chance: a wall clock that may be wrong, a boot clock that never jumps,
seeded tokens."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tests.sim.world import World


@dataclass
class Clocks:
    """The clocks of one machine, shared by its processes. `frozen_s`: how long it was paused as a virtual machine,
    which none of its own clocks has seen. `wall_off_s`: how far its wall clock is off."""

    world: World
    host: str
    boot: int = 1
    booted_s: float = 0.0
    frozen_s: float = 0.0
    wall_off_s: float = 0.0

    def __post_init__(self) -> None:
        self.booted_s = self.world.now_s - 1000.0

    def reboot(self) -> None:
        self.boot += 1
        self.booted_s = self.world.now_s - 20.0
        self.frozen_s = 0.0


class VirtualAmbient:
    """One process on one machine. Its tokens depend on the world's seed and its own name alone."""

    def __init__(self, world: World, name: str, clocks: Clocks | None = None) -> None:
        self.world = world
        self.name = name
        self.clocks = clocks or Clocks(world, name)
        self._drawn = 0

    @property
    def pid(self) -> int:
        """Beyond what Linux gives to a real process, so that nothing of this machine is ever mistaken for ours."""
        return 5_000_000 + int(hashlib.blake2b(self.name.encode(), digest_size=3).hexdigest(), 16)

    @property
    def host(self) -> str:
        return self.clocks.host

    @property
    def boot_id(self) -> str:
        return f"boot-{self.clocks.host}-{self.clocks.boot}"

    def boot_s(self) -> float:
        return self.world.now_s - self.clocks.booted_s - self.clocks.frozen_s

    def wall_s(self) -> float:
        return self.world.now_s + self.clocks.wall_off_s - self.clocks.frozen_s

    def sleep(self, seconds: float) -> None:
        self.world.pause(seconds)

    def token(self) -> str:
        return self._draw(8)

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * int(self._draw(4), 16) / 2**32

    def _draw(self, size: int) -> str:
        self._drawn += 1
        drawn = f"{self.world.seed}/{self.name}/{self._drawn}"
        return hashlib.blake2b(drawn.encode(), digest_size=size).hexdigest()
