"""Blocks of an array: several short tasks carried by one claim and ended by one record.

The ranks of an array are cut into blocks of `block` ranks. The block with number b is claimed as *unit* `tasks + b`: a
number no task has, with an entry, a claim, a heartbeat and one end record of its own, under the same keys as a task's.
Its holder runs the ranks one after the other and decides in the unit's end, for each of them, how its first attempt
ended, or that it is given back. So:

    attempt 1 of a rank is open by itself  iff  the unit's end stands and names the rank as given back

Whatever comes after attempt 1 is as everywhere. A unit has one attempt only, and its end is always final.

Why a tree, and not lanes: unit b is released when unit (b - 1) // 2 was claimed (or ended), so one entry is enough at
submit, and all units are to be had after as many rounds as the logarithm of their number. The induction is that of
lanes: only a release makes an entry, only an entry a claim, and a unit is released by its one predecessor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from stado_like.job import codec, reasons
from stado_like.job.ids import AttemptId
from stado_like.job.records import Change, End, History, LastFailure
from stado_like.job.spec import limits
from stado_like.job.states import Decision, Outcome, TaskState

if TYPE_CHECKING:
    from stado_like.job.terms import Terms

ROOM_BYTES: Final = 40 * 1024
"""What the ends that a block carries may take of its record; its holder gives the rest back when they take more."""
LOG_BYTES: Final = 1024
"""An output of so many bytes travels in the record; a larger one is uploaded as every other."""

_OF_THE_BLOCK: Final = ("worker", "claimed_at", "by")
_NOT_IN_ROWS: Final = frozenset({"nonce", "attempt", "history", *_OF_THE_BLOCK})
_OF_JOB: Final = (
    "after",
    "bundle",
    "collect",
    "complete_with",
    "checkpoint_from",
    "deadline",
    "scheduling_timeout_seconds",
    "resident",
    "terminates_agent",
    "exclusive",
)
_OF_TEMPLATE: Final = (
    "checkpoint",
    "secret_refs",
    "configs",
    "image",
    "datavolume_refs",
    "volumes",
    "output_file",
    "health_check",
    "outputs",
)
_OF_RESILIENCE: Final = ("stall", "straggler", "stop_after_disconnect_seconds", "signal_before_limit")


# ---- which rank is carried by which unit


def unkeepable(spec: Mapping[str, Any]) -> str:
    """What a document in its stored form asks for that a block cannot keep; empty: nothing."""
    template: Mapping[str, Any] = spec.get("task_template") or {}
    asked = {"array.max_parallel": spec["array"].get("max_parallel")}
    asked |= {name: spec.get(name) for name in _OF_JOB}
    asked |= {f"task_template.{name}": template.get(name) for name in _OF_TEMPLATE}
    resilience: Mapping[str, Any] = template.get("resilience") or {}
    asked |= {f"task_template.resilience.{name}": resilience.get(name) for name in _OF_RESILIENCE}
    return next((name for name, value in asked.items() if value), "")


def default_size(spec: Mapping[str, Any]) -> int:
    """How many ranks a block has where the document does not say; 1: there are no blocks."""
    if unkeepable(spec):
        return 1
    size: int = spec["array"]["size"]
    return max(1, min(size // limits.BLOCKS_LEAST, limits.DEFAULT_BLOCK_MOST))


def is_unit(terms: Terms, rank: int) -> bool:
    """Whether a number is a block's and not a task's."""
    return terms.tasks <= rank < terms.units


def units(terms: Terms) -> range:
    return range(terms.tasks, terms.units)


def unit_of(terms: Terms, rank: int) -> int | None:
    """The unit that carries the first attempt of a rank; None where there are no blocks."""
    return terms.tasks + rank // terms.block if terms.block and rank < terms.tasks else None


def ranks_of(terms: Terms, unit: int) -> range:
    first = (unit - terms.tasks) * terms.block
    return range(first, min(first + terms.block, terms.tasks))


def parent(terms: Terms, unit: int) -> int | None:
    """The unit that releases this one; None for the first, which is released at submit."""
    b = unit - terms.tasks
    return terms.tasks + (b - 1) // 2 if b else None


def children(terms: Terms, unit: int) -> range:
    """The units that this one releases."""
    b = unit - terms.tasks
    return range(min(terms.tasks + 2 * b + 1, terms.units), min(terms.tasks + 2 * b + 3, terms.units))


# ---- what a unit's end says


def packed(end: End) -> dict[str, Any]:
    """An end as its block's record carries it: what differs from a task that exited 0 there."""
    usual = _usual()
    plain = codec.to_plain(end)
    if plain["log"] is not None and not plain["log"]["size"]:
        plain["log"] = None
    if end.last_failure == _failure(end):
        plain["last_failure"] = None  # it says nothing more than the rest
    return {name: value for name, value in plain.items() if name not in _NOT_IN_ROWS and value != usual[name]}


def unpacked(a: AttemptId, block: End) -> End | None:
    """How attempt `a` ended, as the end of the unit that carried it says; None: it does not say. Raises `BadRecord`."""
    row = block.carried.get(str(a.rank)) if a.n == 1 else None
    if not isinstance(row, Mapping):
        return None
    own = {name: getattr(block, name) for name in _OF_THE_BLOCK}
    end = codec.from_plain(End, {**_usual(), **own, **row, "nonce": block.nonce, "attempt": str(a)}, str(a))
    failed = end.outcome in (Outcome.FAILED, Outcome.DOWN) or end.state is TaskState.FAILED
    failure = end.last_failure or (_failure(end) if failed else None)
    return replace(end, history=_told_by_its_times(end), last_failure=failure)


def _failure(end: End) -> LastFailure:
    return LastFailure(exit_code=end.exit_code, reason=end.reason)


def carries(block: End, rank: int) -> bool:
    return str(rank) in block.carried


def is_eventful(block: End, rank: int) -> bool:
    """Whether anything else became of a rank than that it completed."""
    row = block.carried.get(str(rank))
    return not isinstance(row, Mapping) or "state" in row or "decision" in row


def _told_by_its_times(end: End) -> History:
    history = History()
    if end.started_at:
        history = history.add(Change(state=TaskState.STARTING.value, reason=reasons.STARTED, at=end.started_at))
    if end.running_at:
        history = history.add(Change(state=TaskState.RUNNING.value, reason=reasons.RUNNING, at=end.running_at))
    return history.add(Change(state=end.outcome.value, reason=end.reason, at=end.ended_at, cause=end.cause.value))


@cache
def _usual() -> dict[str, Any]:
    made: dict[str, Any] = codec.to_plain(
        End(
            nonce="",
            attempt="",
            outcome=Outcome.COMPLETED,
            decision=Decision.FINAL,
            state=TaskState.COMPLETED,
            reason=reasons.exited(0),
            exit_code=0,
        )
    )
    return made
