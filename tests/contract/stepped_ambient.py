"""A clock that moves only when somebody sleeps, so waits of seconds are tested in no time and exactly."""

from __future__ import annotations

from stado_like.ambient import RealAmbient


class SteppedAmbient(RealAmbient):
    """`slept` holds every wait in order. `uniform` gives the upper end, so back-off is at its longest."""

    def __init__(self, wall_s: float | None = None) -> None:
        super().__init__()
        self.slept: list[float] = []
        self._wall_s = wall_s

    def boot_s(self) -> float:
        return 1_000.0 + sum(self.slept)

    def wall_s(self) -> float:
        return super().wall_s() if self._wall_s is None else self._wall_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def uniform(self, low: float, high: float) -> float:
        return high
