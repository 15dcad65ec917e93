"""How a waiting process looks again and again: often where looking is free, ever less often where each look is
billed; and through an outage.

The first look must succeed (an unreachable store is said at once). After that a store that is away for a while is no
reason to stop waiting for a job that goes on without it; what could not be read is never taken for an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import TypeVar

from stado_like.ambient import Ambient
from stado_like.errors import StoreUnavailable
from stado_like.store.url import poll_s

NEAR_FIRST_S = 0.02
NEAR_LONGEST_S = 0.05
FAR_LONGEST_S = 5.0
OUTAGE_ENDURED_S = 900.0

T = TypeVar("T")
Note = Callable[[str], None]


def silent(text: str) -> None:
    """A listener for notes that does not listen."""


def pauses(url: str) -> Iterator[float]:
    """Seconds before each next look at the store of this URL: 20 to 50 ms on a near one, 1 s growing to 5 s on a far
    one.
    """
    first = poll_s(url)
    longest = NEAR_LONGEST_S if first <= NEAR_LONGEST_S else max(first, FAR_LONGEST_S)
    pause = max(first, NEAR_FIRST_S)
    while True:
        yield pause
        pause = min(pause * 1.2, longest)


class Patience:
    """One wait: `rounds` paces it, `ask` carries one look through an outage."""

    def __init__(
        self,
        url: str,
        ambient: Ambient,
        *,
        timeout_s: float | None = None,
        on_note: Note = silent,
        rest: Callable[[float], None] | None = None,
    ) -> None:
        """`rest`: what to do for so many seconds instead of sleeping."""
        self._url = url
        self._ambient = ambient
        self._deadline = None if timeout_s is None else ambient.boot_s() + timeout_s
        self._on_note = on_note
        self._rest = rest or ambient.sleep
        self._heard = False
        self._away_since_s: float | None = None

    def rounds(self, *, steady: bool = False) -> Iterator[None]:
        """Once now, then after each pause; ends when the time is up, after a last look. `steady`: pauses do not grow,
        for what a person looks at as it comes.
        """
        yield
        for pause in repeat(next(pauses(self._url))) if steady else pauses(self._url):
            left = None if self._deadline is None else self._deadline - self._ambient.boot_s()
            if left is not None and left <= 0:
                return
            self._rest(pause if left is None else min(pause, left))
            yield

    def ask(self, look: Callable[[], T]) -> T | None:
        """One look; None when the store was away. Raises `StoreUnavailable` on the first look, or after a quarter of
        an hour.
        """
        try:
            answer = look()
        except StoreUnavailable as away:
            now = self._ambient.boot_s()
            if not self._heard:
                raise
            if self._away_since_s is None:
                self._away_since_s = now
                self._on_note(f"the store does not answer ({away.message}); waiting for it, the job goes on")
            elif now - self._away_since_s > OUTAGE_ENDURED_S:
                raise
            return None
        if self._away_since_s is not None:
            self._on_note(f"the store answers again, after {self._ambient.boot_s() - self._away_since_s:.0f} s")
            self._away_since_s = None
        self._heard = True
        return answer
