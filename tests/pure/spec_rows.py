"""What a row of the table is: one field, what it takes, what it refuses, what is stored when it is left out.

A path is written as the document is nested, `spec.task_template.volumes[].kind`: `[]` is the first of a list.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any


class Mark:
    """Not a value; stays itself when what holds it is copied."""

    def __deepcopy__(self, _: object) -> Mark:
        return self


ABSENT: Any = Mark()
REQUIRED: Any = Mark()
NOT_INTEGERS: tuple[Any, ...] = ("5", True, 5.0, None, [], {}, math.nan, math.inf, 10**40, -(10**5000))
NOT_TEXTS: tuple[Any, ...] = (5, 1.5, True, None, [], {}, "\0", "a\0b", "\ud800")
NOT_FLAGS: tuple[Any, ...] = ("true", "yes", 1, 0, None, [])


@dataclass(frozen=True)
class As:
    """An accepted value that is stored as another."""

    given: Any
    stored: Any


@dataclass(frozen=True)
class Row:
    """`default`: what is stored when the field is left out; ABSENT: nothing; REQUIRED: it may not be."""

    path: str
    default: Any
    accepts: tuple[Any, ...]
    refuses: tuple[Any, ...]
    beside: dict[str, Any] = field(default_factory=dict)  # what must stand with it, by path; ABSENT takes away
    stored_as: str = ""
    code: str = "VALIDATION_ERROR"  # of its refusals


def whole(path: str, default: Any, low: int, high: int, **more: Any) -> Row:
    wrong = tuple(each for each in NOT_INTEGERS if not (each is None and default is ABSENT))
    return Row(path, default, (low, low + 1, high - 1, high), (low - 1, high + 1, *wrong), **more)


def flag(path: str, default: bool = False, **more: Any) -> Row:
    return Row(path, default, (True, False), NOT_FLAGS, **more)


def text(path: str, default: Any, accepts: tuple[Any, ...], refuses: tuple[Any, ...] = ("",), **more: Any) -> Row:
    wrong = tuple(each for each in NOT_TEXTS if not (each is None and default is ABSENT))
    return Row(path, default, accepts, (*refuses, *wrong), **more)


def part(path: str, default: Any, example: Any, **more: Any) -> Row:
    wrong: tuple[Any, ...] = ("x", 5, True, []) if default is ABSENT else ("x", 5, True, [], None)
    return Row(path, default, (example,), wrong, **more)


def smallest() -> dict[str, Any]:
    return {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}}}


def steps(path: str) -> list[str | int]:
    """`spec.a[].b` -> `["spec", "a", 0, "b"]`."""
    found: list[str | int] = []
    for step in path.split("."):
        name = step.removesuffix("[]")
        found += [name, 0] if name != step else [name]
    return found


def put(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Set the value at the path, making parts and one-element lists on the way; ABSENT takes it away."""
    at: Any = document
    *above, last = steps(path)
    for step, after in zip(above, (*above, last)[1:], strict=True):
        if isinstance(step, int):
            if not at:
                at.append({})
            at = at[0]
        else:
            at = at.setdefault(step, [] if isinstance(after, int) else {})
    if value is ABSENT:
        at.pop(last, None)
    else:
        at[last] = value
    return document


def look(document: dict[str, Any], path: str) -> Any:
    at: Any = document
    for step in steps(path):
        if isinstance(step, int):
            if not at:
                return ABSENT
        elif step not in at:
            return ABSENT
        at = at[step]
    return at


def around(row: Row) -> dict[str, Any]:
    """The smallest document that has a place for the row's field."""
    document = smallest()
    for path, neighbour in row.beside.items():
        put(document, path, copy.deepcopy(neighbour))
    return document


def with_row(row: Row, value: Any) -> dict[str, Any]:
    document = around(row)
    return document if value is ABSENT else put(document, row.path, copy.deepcopy(value))
