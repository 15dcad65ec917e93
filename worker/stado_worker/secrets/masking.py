"""Values of credentials -> `*` of the same length, wherever they stand in a task's output.

Not obvious because output is sent in pieces while it is still written, and a piece that was sent is never rewritten.
So what is masked must not depend on where a piece begins or ends: byte *p* is masked when some value, wherever it
begins, covers it. To know that of a part, one needs as many bytes before and after it as the longest value has, less
one. And the last bytes written so far are *held back* while they could be the beginning of a value.

What is masked: a value without the white space around it, when that is at least 4 bytes; and of a value of several
lines also each line of at least 6 bytes, since programs print lines. Shorter ones are not: they would blank out half
of any output and protect nothing. A value that a program changed before it printed it (base64, quotes escaped) is not
recognised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

LEAST_VALUE_BYTES = 4
LEAST_LINE_BYTES = 6
_HEAD = 8


def needles(value: bytes) -> set[bytes]:
    """What of a value is looked for in the output."""
    core = value.strip()
    found = {core} if len(core) >= LEAST_VALUE_BYTES else set()
    lines = [line.strip() for line in core.splitlines()]
    if len(lines) > 1:
        found |= {line for line in lines if len(line) >= LEAST_LINE_BYTES}
    return found


@dataclass(frozen=True, eq=False)
class Masks:
    """`values`, longest first. Shown by number and never by content."""

    values: tuple[bytes, ...] = ()
    _periods: dict[bytes, int] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Iterable[bytes]) -> Masks:
        found: set[bytes] = set()
        for value in values:
            found |= needles(value)
        return cls.kept(found)

    @classmethod
    def kept(cls, found: Iterable[bytes]) -> Masks:
        """From what `values` said before."""
        return cls(tuple(sorted({one for one in found if one}, key=lambda one: (-len(one), one))))

    def __bool__(self) -> bool:
        return bool(self.values)

    def __repr__(self) -> str:
        return f"Masks({len(self.values)} values)"

    @property
    def reach_bytes(self) -> int:
        """How much of the output on either side of a part decides what is masked in it."""
        return max(len(self.values[0]) - 1, 0) if self.values else 0

    def masked(self, output: bytes, begin: int = 0, end: int | None = None, *, complete: bool = False) -> bytes:
        """`output[begin:end]`, masked in the light of all of `output`. `complete`: nothing comes after `output`, so
        a value that it breaks off in the middle of is masked as far as it goes."""
        end = len(output) if end is None else end
        made = bytearray(output)
        for value in self.values:
            at = output.find(value)
            while at >= 0:
                stop = at + len(value)
                again = value[-self._period(value) :]
                while output.startswith(again, stop):  # it overlaps itself, as `aaaa` does in a line of a's
                    stop += len(again)
                made[at:stop] = b"*" * (stop - at)
                at = output.find(value, stop - len(value) + 1)
        if complete:
            broken = self.held_from(output)
            if len(output) - broken >= LEAST_VALUE_BYTES:
                made[broken:] = b"*" * (len(output) - broken)
        return bytes(made[begin:end])

    def held_from(self, output: bytes) -> int:
        """Where the longest end of `output` begins that a value may begin with; its length where none does."""
        held = len(output)
        for value in self.values:
            held = min(held, _held_from(output, value))
        return held

    def _period(self, value: bytes) -> int:
        """Asked only of a value that was seen."""
        if value not in self._periods:
            self._periods[value] = _period(value)
        return self._periods[value]


NO_MASKS = Masks()


def _held_from(output: bytes, value: bytes) -> int:
    """The first place from which on `output` is a beginning of `value`, and not all of it."""
    first = max(0, len(output) - len(value) + 1)
    head = value[:_HEAD]
    at = output.find(head, first)
    while at >= 0:
        if value.startswith(output[at:]):
            return at
        at = output.find(head, at + 1)
    for at in range(max(first, len(output) - len(head) + 1), len(output)):
        if head.startswith(output[at:]):
            return at
    return len(output)


def _period(value: bytes) -> int:
    """The smallest shift by which `value` fits onto itself; its length where it does not (Knuth, Morris, Pratt)."""
    border = [0] * len(value)
    known = 0
    for at in range(1, len(value)):
        while known and value[at] != value[known]:
            known = border[known - 1]
        if value[at] == value[known]:
            known += 1
        border[at] = known
    return len(value) - border[-1]
