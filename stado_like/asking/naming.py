"""A name for a job that was given none, and the next free one after a name that is taken.

Names are part of keys and of host names, so what a command is called must be cut to the letters and the length that
the specification takes.
"""

from __future__ import annotations

import re

from stado_like.job.spec import limits

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def default_name(command: str, token: str) -> str:
    """A name for a job that was given none: what it runs, and six random digits."""
    stem = _NOT_A_NAME.sub("-", command.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]).strip("-")
    room = limits.NAME_MAX - 7
    return f"{stem[:room].strip('-') or 'job'}-{token[:6]}"


def next_name(name: str, taken: frozenset[str]) -> str:
    """`train` -> `train-2`, `train-2` -> `train-3`: the first that is not taken."""
    stem, dash, number = name.rpartition("-")
    if not (dash and stem and number.isascii() and number.isdigit() and len(number) < 5):
        stem, number = name, "1"
    n = int(number) + 1
    while (found := f"{stem[: limits.NAME_MAX - len(str(n)) - 1]}-{n}") in taken:
        n += 1
    return found
