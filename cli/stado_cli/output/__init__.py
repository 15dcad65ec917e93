"""How answers leave the program: tables for people, JSON for programs, one protocol for both.

A command hands over the *JSON form* of what it found and, for people, how to lay it out. So a field that a person sees
can always be had by a program, and a command cannot print in one form and forget the other. Standard output carries the
answer and nothing else; everything said beside it is a `note`, on standard error.

JSON: exactly one value per command (`value`, `table`), or one per line for streams (`stream`). Field names are added,
never renamed; times are ISO 8601 UTC with milliseconds (`times.iso`), durations are numbers of seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Shown = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column for people: its title, and how to read its cell from a row. `right` aligns numbers."""

    title: str
    cell: Callable[[Shown], object]
    right: bool = False
    style: Callable[[Shown], str] | None = None


def column(title: str, key: str, *, right: bool = False) -> Column:
    """A column that shows one field of the row as it is."""
    return Column(title, lambda row: row.get(key), right)


class Output(Protocol):
    """Where a command's answer goes. Shared by nobody: one per command."""

    def value(self, shown: Any, text: str | None = None) -> None:
        """One answer. For people: `text` when given, otherwise the fields of `shown`, one per line."""
        ...

    def table(self, columns: Sequence[Column], rows: Iterable[Shown], *, empty: str = "") -> None:
        """A list. JSON gets the whole rows, people the columns; `empty` is said to people instead of no rows."""
        ...

    def stream(self, shown: Any, text: str | None = None) -> None:
        """One of many answers, shown at once."""
        ...

    def raw(self, body: bytes) -> None:
        """Bytes as they are, for people and programs alike."""
        ...

    def note(self, text: str) -> None:
        """Said beside the answer, on standard error."""
        ...


def open_output(*, json: bool, no_color: bool) -> Output:
    if json:
        from stado_cli.output.as_json import JsonOutput

        return JsonOutput()
    from stado_cli.output.human import HumanOutput

    return HumanOutput(no_color=no_color)
