"""`gpu[1-3,07],login` -> gpu1, gpu2, gpu3, gpu07, login: a list of machines as Slurm shortens it.

A leading zero is kept, because `node07` and `node7` are two machines. A list with a `/` is a file's name in Slurm;
files of the submitter are not read here.
"""

from __future__ import annotations

import re
from typing import Final

from stado_like.sbatch.directives import Directive

FORMS: Final = "gpu1, gpu1,gpu2, gpu[1-3,7]"
MOST: Final = 10_000

_ONE = re.compile(r"([^\[\],]+)(?:\[([0-9,-]+)\]([^\[\],]*))?(?:,|$)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def machine_names(given: Directive) -> tuple[str, ...]:
    """Each name once, in order. Raises `UsageError`."""
    text = given.value.strip()
    if "/" in text:
        raise given.refused("names a file of machines, which is not read", FORMS)
    found: dict[str, None] = {}
    at = 0
    while at < len(text):
        piece = _ONE.match(text, at)
        if piece is None or len(found) > MOST:
            raise given.refused("is not a list of machines", FORMS)
        at = piece.end()
        for number in _numbers(given, piece[2]) if piece[2] is not None else ("",):
            found[f"{piece[1].strip()}{number}{(piece[3] or '').strip()}"] = None
    if not found:
        raise given.refused("names no machine", FORMS)
    return tuple(found)


def _numbers(given: Directive, inside: str) -> list[str]:
    found: list[str] = []
    for piece in inside.split(","):
        match = _RANGE.fullmatch(piece)
        if match is None:
            raise given.refused("is not a list of machines", FORMS)
        first, last = match[1], match[2] or match[1]
        if not int(first) <= int(last) < int(first) + MOST:
            raise given.refused(f"{piece} is not a range of at most {MOST} machines", FORMS)
        found += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return found
