"""Answers for programs: one JSON value on standard output, or one per line.

ASCII only when it must be: a text with half a surrogate pair (a file name that is not UTF-8) is still valid JSON when
escaped, and would end the program when written as it is. Control characters that JSON lets stand as they are (delete,
and those of the second set) are escaped too: a terminal acts on them, and no specification is read that holds them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from stado_cli.output import Column, Shown

AT_ONCE = 10_000
_CONTROLS = re.compile("[\x7f-\x84\x86-\x9f\ufffe\uffff]")


def dumps(shown: Any, *, indent: int | None = None) -> str:
    text = json.dumps(shown, ensure_ascii=False, indent=indent, default=str)
    text = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)  # they stand in texts only
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(shown, indent=indent, default=str)
    return text


class JsonOutput:
    def value(self, shown: Any, text: str | None = None) -> None:
        sys.stdout.write(dumps(shown, indent=2 if sys.stdout.isatty() else None) + "\n")

    def table(self, columns: Sequence[Column], rows: Iterable[Shown], *, empty: str = "") -> None:
        """A long list is written as it comes, once so many rows are there that most lists end before: whatever goes
        wrong in those leaves nothing half written."""
        rows = iter(rows)
        some = list(islice(rows, AT_ONCE))
        if len(some) < AT_ONCE or sys.stdout.isatty():
            self.value([*some, *rows])
            return
        before = "["
        while some:
            sys.stdout.write(before + dumps(some)[1:-1])
            before, some = ", ", list(islice(rows, AT_ONCE))
        sys.stdout.write("]\n")

    def stream(self, shown: Any, text: str | None = None) -> None:
        sys.stdout.write(dumps(shown) + "\n")
        sys.stdout.flush()

    def raw(self, body: bytes) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(body)
        sys.stdout.buffer.flush()

    def note(self, text: str) -> None:
        sys.stderr.write(text + "\n")
