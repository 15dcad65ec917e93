"""What time it is on the store's clock, between two answers of the store.

No client's own clock is trusted. Every answer that carries the store's time teaches the difference between it and
the clock of this machine that never jumps and counts suspend. HTTP `Date` has whole seconds and is written some time
before it is received, so each answer gives a lower bound of the true difference: the largest one seen is the best. A
much smaller one means that the store's clock was set back (or that ours ran fast for days), and is believed.
"""

from __future__ import annotations

from stado_like.ambient import Ambient

SET_BACK_S = 15.0


class StoreClock:
    """Store time carried forward by `ambient.boot_s`. Shared by the threads of a process; it survives a fork."""

    def __init__(self, ambient: Ambient, *, set_back_s: float = SET_BACK_S) -> None:
        self._ambient = ambient
        self._set_back_s = set_back_s
        self._offset_s: float | None = None
        self._learned_at_s = 0.0

    def learn(self, store_s: float) -> None:
        """`store_s` was the store's time at some moment not later than now."""
        boot_s = self._ambient.boot_s()
        offset_s = store_s - boot_s
        known_s = self._offset_s
        if known_s is None or offset_s > known_s or offset_s < known_s - self._set_back_s:
            self._offset_s = offset_s
        self._learned_at_s = boot_s

    @property
    def age_s(self) -> float:
        """Seconds since the store last told its time; infinite when it never did."""
        return float("inf") if self._offset_s is None else self._ambient.boot_s() - self._learned_at_s

    def now(self) -> float | None:
        """Store time, seconds since 1970 UTC; None when the store never told it."""
        return None if self._offset_s is None else self._ambient.boot_s() + self._offset_s


class DateHeader:
    """Reads HTTP dates; a server repeats the same second many times, so the last one read is kept."""

    def __init__(self) -> None:
        self._last: tuple[str, float | None] = ("", None)

    def parse(self, text: str | None) -> float | None:
        """Seconds since 1970 UTC, or None when `text` is no date."""
        if not text:
            return None
        said, seconds = self._last
        if said == text:
            return seconds
        from email.utils import parsedate_to_datetime  # a directory sends no header, and this takes 15 ms to load

        try:
            seconds = parsedate_to_datetime(text).timestamp()
        except ValueError:
            seconds = None
        self._last = (text, seconds)
        return seconds


def in_words(seconds: float) -> str:
    """`1200` is `20m0s`: how far two clocks are apart, for a person."""
    whole = round(abs(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{left}s"
    return f"{minutes}m{left}s" if minutes else f"{left}s"
