"""`key=value` lines that a task writes about itself: its progress while it runs, its outputs for when it has ended.

Not obvious because a program may write anything there, for weeks: a binary by mistake, a key per step, a megabyte in
one value. What is kept travels in every heartbeat and in the end record, so it is bounded: 64 keys, and 4 KiB of keys
and values. What is no pair, or has no room, is counted and left out; it never fails the task. The last value of each
key counts. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST_KEYS = 64
MOST_BYTES = 4096

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}\Z", re.ASCII)
_WHOLE = re.compile(r"[+-]?[0-9]+\Z", re.ASCII)
_WHOLE_DIGITS = 18
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?\Z", re.ASCII)
_LONGEST_NUMBER = 64

Value = int | float | str


@dataclass(slots=True)
class Pairs:
    """`values` in the order in which the keys came. `ignored`: what was no pair; `left_out`: keys without room."""

    values: dict[str, str] = field(default_factory=dict)
    ignored: int = 0
    left_out: set[str] = field(default_factory=set)
    size_bytes: int = 0

    def words(self, line: str) -> None:
        """`step=120 total=1000, loss=0.31`: several pairs, without white space in a value."""
        for word in line.split():
            key, is_pair, value = word.rstrip(",;").partition("=")
            if is_pair and value and _KEY.match(key):
                self._put(key, value)
            else:
                self.ignored += 1

    def line(self, line: str) -> None:
        """`answer=forty two`: one pair, the value to the end of the line."""
        key, is_pair, value = line.strip().partition("=")
        key = key.rstrip()
        if is_pair and _KEY.match(key):
            self._put(key, value.strip())
        elif line.strip():
            self.ignored += 1

    def _put(self, key: str, value: str) -> None:
        before = self.values.get(key)
        size = self.size_bytes + _cost(key, value) - (_cost(key, before) if before is not None else 0)
        if size > MOST_BYTES or (before is None and len(self.values) >= MOST_KEYS):
            if len(self.left_out) < MOST_KEYS:
                self.left_out.add(key)
            return
        self.values[key] = value
        self.size_bytes = size

    def typed(self) -> dict[str, Value]:
        return {key: number(value) for key, value in self.values.items()}


def _cost(key: str, value: str) -> int:
    return len(key) + len(value.encode())


def number(text: str) -> Value:
    """The number that a text is, or the text: `inf` and `nan` stay words, since JSON has no such numbers."""
    if len(text) > _LONGEST_NUMBER:
        return text
    if _WHOLE.match(text):
        return int(text) if len(text) <= _WHOLE_DIGITS else text  # JSON's whole numbers end at 64 bits
    if _DECIMAL.match(text):
        value = float(text)
        return value if abs(value) != float("inf") else text
    return text


def step_of(values: dict[str, Value]) -> float | None:
    """How far the task says it is, where it says so by a number."""
    step = values.get("step")
    return float(step) if isinstance(step, (int, float)) else None


def readable(body: bytes) -> str:
    """What a task wrote, as text that JSON can hold: what is no UTF-8, and control characters, become U+FFFD."""
    text = body.decode("utf-8", "replace")
    return "".join(one if one >= " " or one in "\t\n\r" else "\ufffd" for one in text).replace("\x7f", "\ufffd")
