"""What a simulated process knows of time and chance: a wall clock that may be wrong, a boot clock that never jumps, seeded tokens.

A paused virtual machine is seen by no clock of its own: `frozen_s` is taken off both.
"""

from __future__ import annotations

import hashlib

from tests.sim.world import World


class VirtualAmbient:
    """One machine's clocks and one process's luck. Tokens depend on the world's seed and the process's name alone."""

    def __init__(self, world: World, name: str, *, host: str = "", boot: int = 1, booted_s: float | None = None) -> None:
        self.world = world
        self.name = name
        self._host = host or name
        self._boot = boot
        self._booted_s = world.now_s - 1000.0 if booted_s is None else booted_s
        self._drawn = 0
        self.wall_off_s = 0.0
        self.frozen_s = 0.0

    @property
    def pid(self) -> int:
        return 1000 + int(hashlib.blake2b(self.name.encode(), digest_size=2).hexdigest(), 16)

    @property
    def host(self) -> str:
        return self._host

    @property
    def boot_id(self) -> str:
        return f"boot-{self._host}-{self._boot}"

    def boot_s(self) -> float:
        return self.world.now_s - self._booted_s - self.frozen_s

    def wall_s(self) -> float:
        return self.world.now_s + self.wall_off_s - self.frozen_s

    def sleep(self, seconds: float) -> None:
        self.world.pause(seconds)

    def token(self) -> str:
        self._drawn += 1
        drawn = f"{self.world.seed}/{self.name}/{self._boot}/{self._drawn}"
        return hashlib.blake2b(drawn.encode(), digest_size=8).hexdigest()

    def uniform(self, low: float, high: float) -> float:
        self._drawn += 1
        drawn = f"{self.world.seed}/{self.name}/{self._boot}/u{self._drawn}"
        share = int(hashlib.blake2b(drawn.encode(), digest_size=4).hexdigest(), 16) / 2**32
        return low + (high - low) * share
