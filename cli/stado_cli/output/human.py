"""Answers for people: rich on a terminal, plain aligned text into a pipe.

A pipe has no width, so nothing is cut there and `grep` and `awk` see whole cells; it also spares rich's import (60 ms),
which matters to scripts that call `stado` in a loop.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from stado_cli.output import Column, Shown

AT_ONCE = 10_000


class HumanOutput:
    def __init__(self, *, no_color: bool) -> None:
        self._no_color = no_color

    def value(self, shown: Any, text: str | None = None) -> None:
        self._write(text if text is not None else "\n".join(lines(shown)))

    def table(self, columns: Sequence[Column], rows: Iterable[Shown], *, empty: str = "") -> None:
        rows = iter(rows)
        some = list(islice(rows, AT_ONCE))
        if not some:
            if empty:
                self.note(empty)
            return
        if sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
            self._rich_table(columns, [*some, *rows])
            return
        titled = True
        while some:  # a very long list is aligned piece by piece, so that it need not be held
            self._write("\n".join(aligned(columns, some, titled=titled)))
            titled, some = False, list(islice(rows, AT_ONCE))

    def stream(self, shown: Any, text: str | None = None) -> None:
        self.value(shown, text)
        sys.stdout.flush()

    def raw(self, body: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(text + "\n")

    def _write(self, text: str) -> None:
        sys.stdout.write(text + "\n" if text else "")

    def _rich_table(self, columns: Sequence[Column], rows: Sequence[Shown]) -> None:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for one in columns:
            table.add_column(one.title, justify="right" if one.right else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text(cell(one, row), style=one.style(row) if one.style else "") for one in columns))
        Console(no_color=self._no_color, highlight=False).print(table)


def cell(one: Column, row: Shown) -> str:
    found = one.cell(row)
    return _scalar(found).replace("\n", " ")


def aligned(columns: Sequence[Column], rows: Sequence[Shown], *, titled: bool = True) -> list[str]:
    """Columns padded to their widest cell, two spaces apart, nothing cut, no trailing blanks."""
    grid = [[one.title for one in columns], *([cell(one, row) for one in columns] for row in rows)]
    widths = [max(len(line[at]) for line in grid) for at in range(len(columns))]
    return [
        "  ".join(
            text.rjust(width) if one.right else text.ljust(width)
            for text, width, one in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in (grid if titled else grid[1:])
    ]


def lines(shown: Any, indent: str = "") -> list[str]:
    """Any JSON-like value as indented `name: value` lines."""
    if isinstance(shown, Mapping):
        told: list[str] = []
        for name, inner in shown.items():
            if isinstance(inner, Mapping | list | tuple) and inner:
                told += [f"{indent}{name}:", *lines(inner, indent + "  ")]
            else:
                told.append(f"{indent}{name}: {_scalar(inner)}")
        return told
    if isinstance(shown, list | tuple):
        return [line for inner in shown for line in _item(inner, indent)]
    return [indent + _scalar(shown)]


def _item(inner: Any, indent: str) -> list[str]:
    told = lines(inner, indent + "  ") or [indent + "  -"]
    return [indent + "- " + told[0].lstrip(), *told[1:]]


def _scalar(found: Any) -> str:
    if found is None or (isinstance(found, Mapping | list | tuple) and not found):
        return "-"
    if isinstance(found, bool):
        return "yes" if found else "no"
    return str(found)
