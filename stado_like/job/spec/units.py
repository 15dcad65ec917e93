"""Durations, sizes and array shapes as people type them.

Two tools of the same trade read `4:00` as four hours and as four minutes, `16G` as 16e9 and as 16 x 2^30, and take
what they cannot read for "no limit". So there is one grammar, here, for every option and every file; what was
understood is said back in words; and anything else is refused with the list of what is accepted.

Durations: `90s`, `2m`, `1h30m`, `2d`, `1.5h`; a bare number is seconds; colon forms are Slurm's: `M:SS`, `H:MM:SS`,
`D-H`, `D-H:MM`, `D-H:MM:SS`. As in Slurm a field may pass 59 (`0:240:0` is four hours): it is added up, never refused.
Sizes: `512MiB`, `16GiB`; one letter is binary (`16G` is 16 GiB); `KB` to `PB` are powers of ten (`1.5TB`); upper or
lower case; a bare number is bytes, `1e9` too. A fraction of a byte is rounded up: nobody gets less than asked.
Arrays: `10` is ten tasks, `0-9`, `1-10:2` and `1,3,7` are indices as Slurm writes them, in any order; an index named
twice is one task; `%4` at the end lets four run at once.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from stado_like.errors import UsageError
from stado_like.job.spec import limits

DURATION_FORMS: Final = (
    "90s, 2m, 1h30m, 2d, 90 (seconds), 4:00 (minutes:seconds), 1:00:00, 2-12 (days-hours), 2-12:30, 2-12:30:15"
)
SIZE_FORMS: Final = "512MiB, 16GiB, 16G (= 16GiB), 500MB (= 500 x 10^6), 1.5TB, 1073741824 (bytes), 1e9"
ARRAY_FORMS: Final = (
    "10 (that many tasks), 0-9 (indices), 1-10:2 (steps of 2), 1,3,7, 1-3,8, each with %4 (at most 4 at once)"
)

DURATION_MAX_S: Final = 100 * 365 * 86_400
SIZE_MAX_BYTES: Final = 1 << 60

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?"
_BARE = re.compile(_NUMBER)
_UNITS = re.compile(rf"(?:({_NUMBER})d)?(?:({_NUMBER})h)?(?:({_NUMBER})m)?(?:({_NUMBER})s)?")
_CLOCK = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,9})")
_DAYS = re.compile(r"([0-9]{1,9})-([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
_SECONDS = (86_400, 3_600, 60, 1)

_SIZE = re.compile(r"([0-9]{1,30}(?:\.[0-9]{1,18})?)(e\+?[0-9]{1,2})?(?:([kmgtp])(i?b)?|(b))?", re.IGNORECASE)
_POWERS = "kmgtp"
_BINARY_NAMES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_DECIMAL_NAMES = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")

_ARRAY = re.compile(r"([0-9,:-]+)(?:%([0-9]{1,9}))?")
_COUNT = re.compile(r"[0-9]{1,10}")
_PIECE = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([0-9]{1,10}))?)?")


def _as_typed(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return ascii(text[:60] + ("…" if len(text) > 60 else "")).replace("\\u2026", "…")


def _refuse(what: str, value: object, forms: str, why: str = "") -> UsageError:
    return UsageError(f"{_as_typed(value)} is not {what}{': ' + why if why else ''}", f"Accepted forms: {forms}.")


def _whole_if_it_is(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


def duration_s(value: str | int | float) -> int | float:
    """Seconds, an int where it is whole. Raises UsageError for what is not a duration; never means "unlimited"."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise _refuse("a duration", value, DURATION_FORMS)
        total = Decimal(str(value)) if isinstance(value, float) else value
    elif isinstance(value, str):
        total = _duration_of_text(value)
    else:
        raise _refuse("a duration", value, DURATION_FORMS)
    if total < 0:
        raise _refuse("a duration", value, DURATION_FORMS, "it is negative")
    if total > DURATION_MAX_S:
        raise _refuse("a duration", value, DURATION_FORMS, "it is more than 100 years")
    return total if isinstance(total, int) else _whole_if_it_is(total)


def _duration_of_text(text: str) -> Decimal:
    bare = text.strip()
    if _BARE.fullmatch(bare):
        return Decimal(bare)
    if found := _CLOCK.fullmatch(bare):
        hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return Decimal(hours * 3_600 + minutes * 60 + seconds)
    if found := _DAYS.fullmatch(bare):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return Decimal(days * 86_400 + hours * 3_600 + minutes * 60 + seconds)
    if bare and (found := _UNITS.fullmatch(bare)):
        return sum(
            (Decimal(part) * each for part, each in zip(found.groups(), _SECONDS, strict=True) if part), Decimal(0)
        )
    raise _refuse("a duration", text, DURATION_FORMS)


def _parts(seconds: int | float) -> tuple[int, int, int, float]:
    """(days, hours, minutes, seconds), rounded to the millisecond."""
    whole, millis = divmod(round(seconds * 1000), 1000)
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    return days, hours, minutes, rest + millis / 1000


def duration_words(seconds: int | float) -> str:
    """`2 days 12 hours 30 minutes`: what was understood, said back."""
    named = zip(_parts(seconds), ("day", "hour", "minute", "second"), strict=True)
    return " ".join(f"{n:.10g} {unit}{'' if n == 1 else 's'}" for n, unit in named if n) or "0 seconds"


def duration_text(seconds: int | float) -> str:
    """`2h`, `1h30m`, `2d12h`: the short form, which `duration_s` reads back to the same number."""
    return "".join(f"{n:.10g}{unit}" for n, unit in zip(_parts(seconds), "dhms", strict=True) if n) or "0s"


def size_bytes(value: str | int | float) -> int:
    """Whole bytes, rounded up. Raises UsageError for what is not a size."""
    if isinstance(value, str):
        total = _size_of_text(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        if value != int(value):
            raise _refuse("a size", value, SIZE_FORMS, "bytes are whole")
        total = int(value)
    else:
        raise _refuse("a size", value, SIZE_FORMS)
    if total < 0:
        raise _refuse("a size", value, SIZE_FORMS, "it is negative")
    if total > SIZE_MAX_BYTES:
        raise _refuse("a size", value, SIZE_FORMS, "it is more than 1 EiB")
    return total


def _size_of_text(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise _refuse("a size", text, SIZE_FORMS)
    digits, exponent, letter, tail, _ = found.groups()
    number = Decimal(digits + (exponent or ""))
    if letter is None:
        if number != number.to_integral_value():
            raise _refuse("a size", text, SIZE_FORMS, "bytes are whole")
        return int(number)
    base = 1000 if (tail or "").lower() == "b" else 1024
    factor: int = base ** (_POWERS.index(letter.lower()) + 1)
    return math.ceil(number * factor)


def size_words(count: int) -> str:
    """`16 GiB`, `24 GB (22.35 GiB)`, `1000003 bytes (976.57 KiB)`: exact, and in the unit machines report."""
    if count == 1:
        return "1 byte"
    power = 0
    while power + 1 < len(_BINARY_NAMES) and count >= 1024 ** (power + 1):
        power += 1
    unit = 1024**power
    if count * 4 % unit == 0:
        return f"{count / unit:.10g} {_BINARY_NAMES[power]}"
    about = f"{count / unit:.2f} {_BINARY_NAMES[power]}"
    for ten in range(len(_DECIMAL_NAMES) - 1, 0, -1):
        if count * 10 % 1000**ten == 0:
            return f"{count / 1000**ten:.10g} {_DECIMAL_NAMES[ten]} ({about})"
    return f"{count} bytes ({about})"


def bare_size_hint(value: str | int | float) -> str:
    """A sentence when a number without a unit is probably meant in another one (`4096` for memory); else empty.

    Other tools read a bare number as MiB or KiB. Here it is bytes; nobody means less than 1 MiB for a program's memory.
    """
    digits = str(value).strip()
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 7 or not 0 < int(digits) < 1 << 20:
        return ""
    return f"{digits} without a unit is {digits} bytes; write {digits}MiB for {size_words(int(digits) << 20)}"


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """`max_parallel` 0 is no cap. `indices` are ascending, one per task; None: they are 0 to size - 1."""

    size: int
    max_parallel: int = 0
    indices: tuple[int, ...] | None = None
    repeated: int = 0
    """How many indices were named more than once."""

    @property
    def words(self) -> str:
        """`5 tasks, indices 1, 3, 5, 7, 9, at most 2 at once`: what was understood, said back."""
        said = f"{self.size} task{'' if self.size == 1 else 's'}, "
        if self.indices is None:
            said += f"indices 0 to {self.size - 1}" if self.size > 1 else "index 0"
        else:
            shown = [str(one) for one in self.indices[:6]]
            if self.size > 7:
                shown = [*shown[:3], "…", str(self.indices[-1])]
            elif self.size == 7:
                shown.append(str(self.indices[-1]))
            said += ("index " if self.size == 1 else "indices ") + ", ".join(shown)
        if self.repeated:
            said += f" ({self.repeated} named twice: one task each)"
        return said + (f", at most {self.max_parallel} at once" if self.max_parallel else "")


def array_shape(text: str | int) -> ArrayShape:
    """What an array's text means; `10` is a number of tasks, everything else is indices.

    At most 10,000 tasks, so that nothing larger is ever laid out; the other bounds are the specification's, which
    names the field.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int)):
        raise _refuse("an array", text, ARRAY_FORMS)
    found = _ARRAY.fullmatch("".join(str(text).split()))
    if found is None:
        raise _refuse("an array", text, ARRAY_FORMS)
    said, cap = found.groups()
    if cap is not None and int(cap) == 0:
        raise _refuse("an array", text, ARRAY_FORMS, "%0 would let nothing run; leave it out for no cap")
    if _COUNT.fullmatch(said):
        size = int(said)
        if size > limits.ARRAY_SIZE[1]:
            raise _too_many(text, size)
        if size == 0:
            raise _refuse("an array", text, ARRAY_FORMS, "it has no task")
        return ArrayShape(size, int(cap or 0))
    indices, named = _indices(text, said)
    size = len(indices)
    plain = indices == tuple(range(size))
    return ArrayShape(size, int(cap or 0), None if plain else indices, named - size)


def _indices(text: str | int, said: str) -> tuple[tuple[int, ...], int]:
    """(ascending and unique, how many were named)."""
    found: set[int] = set()
    named = 0
    for piece in said.split(","):
        match = _PIECE.fullmatch(piece)
        if match is None:
            raise _refuse("an array", text, ARRAY_FORMS, f"{_as_typed(piece)} is neither an index nor a range")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        step = int(match[3]) if match[3] else 1
        if last < first:
            raise _refuse("an array", text, ARRAY_FORMS, f"{piece} ends before it begins")
        if last > limits.ARRAY_INDEX[1]:
            raise _refuse("an array", text, ARRAY_FORMS, f"an index is at most {limits.ARRAY_INDEX[1]}")
        if step == 0:
            raise _refuse("an array", text, ARRAY_FORMS, f"{piece} has steps of 0")
        here = range(first, last + 1, step)
        named += len(here)
        if len(here) > limits.ARRAY_SIZE[1]:
            raise _too_many(text, named)
        found.update(here)
        if len(found) > limits.ARRAY_SIZE[1]:
            raise _too_many(text, len(found))
    return tuple(sorted(found)), named


def _too_many(text: str | int, size: int) -> UsageError:
    most = limits.ARRAY_SIZE[1]
    return _refuse("an array", text, ARRAY_FORMS, f"it has {size} tasks or more, and an array has at most {most}")
