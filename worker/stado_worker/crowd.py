"""In which order a worker tries what it may claim, where many workers look at one queue.

If all of them took the first entry, all but one would lose it, and then all would try the second. So whoever loses a
claim chooses at random from then on: among the first entries of each priority, eight times as many after every loss.
With every claim that is won, and every minute, these become fewer, until there is one: then the order is the queue's.
Nobody counts workers, and a worker that meets no other never leaves the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from stado_like.ambient import Ambient
from stado_like.job.keys import Entry

MOST = 1024.0
MORE = 8.0
LESS = 0.97
HALVED_AFTER_S = 60.0


class Crowd:
    def __init__(self, ambient: Ambient) -> None:
        self._ambient = ambient
        self._among = 1.0
        self._since_boot_s = ambient.boot_s()

    @property
    def is_one(self) -> bool:
        """Whether a claim was lost lately."""
        return self._now() > 1.0

    def won(self) -> None:
        self._among = max(1.0, self._now() * LESS)

    def lost(self) -> None:
        self._among = min(MORE * self._now(), MOST)

    def _now(self) -> float:
        now_s = self._ambient.boot_s()
        minutes = int((now_s - self._since_boot_s) / HALVED_AFTER_S)
        if minutes:
            self._since_boot_s = now_s
            self._among = max(1.0, self._among / 2 ** min(minutes, 20))
        return self._among

    def order(self, waiting: Sequence[Entry]) -> list[Entry]:
        """`waiting` in the queue's order -> as this worker tries them now."""
        among = int(self._now())
        if among <= 1:
            return list(waiting)
        found: list[Entry] = []
        for _, equal in groupby(waiting, key=lambda one: one.priority):
            same = list(equal)
            dice = {one.key: self._ambient.uniform(0.0, 1.0) for one in same[:among]}
            found += sorted(same[:among], key=lambda one: dice[one.key])
            found += same[among:]
        return found
