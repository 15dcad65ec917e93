"""Times, sizes, counts and GPUs as Slurm writes them, which is not as everybody else does.

A time without a unit is minutes (`10` is 600 s, where the rest of this system reads seconds), two fields are minutes
and seconds (`4:00` is 240 s, never four hours), and after a day's dash the first field is hours (`2-12` is 60 hours).
A field may pass 59: `0:240:0` is four hours. A size without a unit is MiB and every letter is a power of 1024.
What cannot be read is refused; it never becomes "no limit".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from stado_like.errors import UsageError
from stado_like.sbatch.directives import Directive

TIME_FORMS: Final = (
    "10 (minutes), 4:00 (minutes:seconds), 1:00:00, 2-12 (days-hours), 2-12:30, 2-12:30:15, 0 or UNLIMITED (no limit)"
)
SIZE_FORMS: Final = "4096 (MiB), 512M, 16G, 1T, each also with a B (16GB is 16 GiB)"
COUNT_FORMS: Final = "a whole number, at least 1"
NODES_FORMS: Final = "4 or 2-4 (at least two, at most four)"
GPU_FORMS: Final = "2, a100:2, or several of these with commas between"

_CLOCK = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?")
_DAYS = re.compile(r"([0-9]{1,9})-(?:([0-9]{1,9})(?::([0-9]{1,9}))?(?::([0-9]{1,9}))?)?")
_NO_LIMIT = frozenset({"unlimited", "infinite", "-1"})
_SIZE = re.compile(r"([0-9]{1,15})(?:([KMGTP])B?)?", re.IGNORECASE)
_POWER = {"K": 10, "M": 20, "G": 30, "T": 40, "P": 50}
_NODES = re.compile(r"([0-9]{1,9})([kKmM]?)(?:-([0-9]{1,9})([kKmM]?))?")
_GPU = re.compile(r"(?:([A-Za-z][A-Za-z0-9_.-]*|[0-9]+[A-Za-z][A-Za-z0-9_.-]*):)?([0-9]{1,9})")


def time_s(given: Directive) -> int | None:
    """Seconds; None is "no limit was asked for". Raises `UsageError`."""
    text = given.value.strip()
    if text.lower() in _NO_LIMIT:
        return None
    if found := _CLOCK.fullmatch(text):
        first, second, third = (int(part or 0) for part in found.groups())
        total = first * 3600 + second * 60 + third if found[3] is not None else first * 60 + second
    elif found := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        total = days * 86_400 + hours * 3600 + minutes * 60 + seconds
    else:
        raise given.refused("is not a time", TIME_FORMS)
    return total or None


def memory_bytes(given: Directive) -> int:
    """Bytes; 0 is Slurm's word for all of a machine's memory. Raises `UsageError`."""
    found = _SIZE.fullmatch(given.value.strip())
    if found is None:
        raise given.refused("is not a size", SIZE_FORMS)
    return int(found[1]) << _POWER[(found[2] or "M").upper()]


def count(given: Directive) -> int:
    """Raises `UsageError`."""
    text = given.value.strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise given.refused("is not a count", COUNT_FORMS)
    return int(text)


def nodes(given: Directive) -> tuple[int, int]:
    """(at least, at most) nodes. Raises `UsageError`."""
    found = _NODES.fullmatch(given.value.strip())
    if found is None:
        raise given.refused("is not a number of nodes", NODES_FORMS)
    least = _multiplied(found[1], found[2])
    most = _multiplied(found[3], found[4]) if found[3] else least
    if not 1 <= least <= most:
        raise given.refused("is not a number of nodes", NODES_FORMS)
    return least, most


def _multiplied(digits: str, suffix: str) -> int:
    return int(digits) * {"": 1, "k": 1 << 10, "m": 1 << 20}[suffix.lower()]


@dataclass(frozen=True, slots=True)
class Gpus:
    """So many GPUs; `models` are the types that were named, in order."""

    count: int
    models: tuple[str, ...] = ()


def gpus(given: Directive) -> Gpus:
    """`2`, `a100:2`, `a100:1,v100:1`. Raises `UsageError`."""
    total, models = 0, []
    for piece in given.value.split(","):
        found = _GPU.fullmatch(piece.strip())
        if found is None:
            raise given.refused("is not a number of GPUs", GPU_FORMS)
        total += int(found[2])
        if found[1] and found[1] not in models:
            models.append(found[1])
    return Gpus(total, tuple(models))


def gres(given: Directive) -> tuple[Gpus | None, tuple[str, ...]]:
    """(the GPUs of a --gres list, what else it names). Raises `UsageError`."""
    others: list[str] = []
    pieces: list[str] = []
    for piece in given.value.split(","):
        words = piece.strip().split(":")
        if words[0] == "gres":  # newer releases also write gres:gpu:2 and gres/gpu:2
            words = words[1:]
        if words and words[0].removeprefix("gres/") == "gpu":
            pieces.append(":".join(words[1:]) or "1")
        elif piece.strip() and piece.strip() != "none":
            others.append(piece.strip())
    if not pieces:
        return None, tuple(others)
    counted = [piece if piece.rsplit(":", 1)[-1].isdecimal() else f"{piece}:1" for piece in pieces]
    only = Directive(given.line, given.name, ",".join(counted))
    try:
        return gpus(only), tuple(others)
    except UsageError as error:
        raise given.refused("is not a list of resources", "gpu, gpu:2, gpu:a100:2") from error
