"""The order that stops an attempt, as its agent put it into the attempt's folder: a file, so that neither's death loses
it.

A supervisor reads it when it begins, and at every look. It holds the gravest of what was ordered; a lesser order that
comes later changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.errors import BadRecord
from stado_like.job.states import Cause
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.life import RANK_OF_STOP


@dataclass(frozen=True, slots=True)
class Ordered:
    cause: Cause
    reason: str

    def gives_way_to(self, other: Ordered) -> bool:
        return RANK_OF_STOP[other.cause] < RANK_OF_STOP[self.cause]


def read_order(folder: AttemptDir) -> Ordered | None:
    """None: nothing was ordered, or nothing that can be read: then the agent, which can read it no better, writes it
    again."""
    try:
        plain = folder.read_order()
        cause = Cause(str(plain["cause"])) if plain is not None else Cause.NONE
    except (BadRecord, KeyError, ValueError):
        return None
    if plain is None or cause not in RANK_OF_STOP:
        return None
    return Ordered(cause, str(plain.get("reason", "")))


def write_order(folder: AttemptDir, order: Ordered) -> bool:
    """False: it, or a graver one, stands there. Raises OSError: the disk is full."""
    standing = read_order(folder)
    if standing is not None and not standing.gives_way_to(order):
        return False
    folder.write_order({"cause": order.cause.value, "reason": order.reason})
    return True
