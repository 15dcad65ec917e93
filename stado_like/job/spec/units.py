"""Durations, sizes and array shapes as people type them.

Two tools of the same trade read `4:00` as four hours and as four minutes, `16G` as 16e9 and as 16 x 2^30, and take
what they cannot read for "no limit". So there is one grammar, here, for every option and every file; what was
understood is said back in words; and anything else is refused with the list of what is accepted.

Durations: `90s`, `2m`, `1h30m`, `2d`, `1.5h`; a bare number is seconds; colon forms are Slurm's: `M:SS`, `H:MM:SS`,
`D-H`, `D-H:MM`, `D-H:MM:SS`. As in Slurm a field may pass 59 (`0:240:0` is four hours): it is added up, never refused.
Sizes: `512MiB`, `16GiB`; one letter is binary (`16G` is 16 GiB); `KB` to `PB` are powers of ten (`1.5TB`); upper or
lower case; a bare number is bytes, `1e9` too. A fraction of a byte is rounded up: nobody gets less than asked.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

from stado_like.errors import UsageError

DURATION_FORMS: Final = (
    "90s, 2m, 1h30m, 2d, 90 (seconds), 4:00 (minutes:seconds), 1:00:00, 2-12 (days-hours), 2-12:30, 2-12:30:15"
)
SIZE_FORMS: Final = "512MiB, 16GiB, 16G (= 16GiB), 500MB (= 500 x 10^6), 1.5TB, 1073741824 (bytes), 1e9"
ARRAY_FORMS: Final = "N, N%K, 0-9, 0-9%K (indices from 0, without gaps; at most K at once)"

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

_ARRAY = re.compile(r"(?:0-([0-9]{1,9})|([0-9]{1,9}))(?:%([0-9]{1,9}))?")


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


def array_shape(text: str | int) -> tuple[int, int]:
    """(size, max_parallel) of an array written as `N`, `N%K`, `0-9` or `0-9%K`; max_parallel 0 is no cap.

    The bounds (1 to 10,000; K up to the size) are the specification's, which names the field.
    """
    if isinstance(text, bool) or not isinstance(text, (str, int)):
        raise _refuse("an array", text, ARRAY_FORMS)
    found = _ARRAY.fullmatch(str(text).strip())
    if found is None:
        why = "this version has arrays that count from 0 without gaps" if re.fullmatch(r"[-0-9,:%]+", str(text)) else ""
        raise _refuse("an array", text, ARRAY_FORMS, why)
    last, count, cap = found.groups()
    if cap is not None and int(cap) == 0:
        raise _refuse("an array", text, ARRAY_FORMS, "%0 would let nothing run; leave it out for no cap")
    return (int(last) + 1 if last is not None else int(count)), int(cap or 0)
