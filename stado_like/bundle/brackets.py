"""Bracket expressions of gitignore's dialect, as git's own matcher reads them.

Not obvious because the library that reads the rest of a pattern copies what stands between brackets into a regular
expression: there `[[:alpha:]]` is a set of letters and a colon, `[a\\]]` ends early, and a range that runs backwards is
an error. So brackets are taken out before it reads the line, each for a letter that no name has, and are put into its
regular expression as what git means by them. A tab is taken out as well: git keeps one at the end of a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_FIRST: Final = 0xF0000  # a plane for private use: letters that mean nothing to anybody else
_CLASSES: Final[Mapping[str, str]] = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class MatchesNothing(Exception):
    """A bracket that is never closed, or a class that there is not: git matches no name with such a pattern."""


def taken_out(line: str) -> tuple[str, dict[str, str]]:
    """The line with a letter for each bracket expression, and what each letter stands for. Raises `MatchesNothing`."""
    meant: dict[str, str] = {}
    made: list[str] = []
    at = 0

    def put(expression: str) -> None:
        letter = chr(_FIRST + len(meant))
        meant[letter] = expression
        made.append(letter)

    while at < len(line):
        if line[at] == "\\":
            made.append(line[at : at + 2])
            at += 2
        elif line[at] == "[":
            expression, at = _bracket(line, at + 1)
            put(expression)
        elif line[at] == "\t":
            put(r"\t")
            at += 1
        else:
            made.append(line[at])
            at += 1
    return "".join(made), meant


def put_back(regex: re.Pattern[str], meant: Mapping[str, str]) -> re.Pattern[str]:
    text = regex.pattern
    for letter, expression in meant.items():
        text = text.replace(letter, expression)
    return re.compile(text, regex.flags)


def _bracket(line: str, at: int) -> tuple[str, int]:
    """What stands after a `[`, as a regular expression for one letter, and where the rest of the line begins."""
    negated = line[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    before = ""  # the letter that a `-` after it makes the beginning of a range
    first = True
    while first or line[at : at + 1] != "]":
        first = False
        if line.startswith("[:", at):
            name, closed, _ = line[at + 2 :].partition(":]")
            if not closed or "]" in name:
                before = _one(items, "[")
                at += 1
                continue
            if name not in _CLASSES:
                raise MatchesNothing
            items.append(_CLASSES[name])
            before, at = "", at + len(name) + 4
        elif line[at : at + 1] == "-" and before and line[at + 1 : at + 2] not in ("", "]"):
            end, at = _letter(line, at + 1)
            if before <= end:  # one that runs backwards holds nothing
                items.append(f"{_plain(before)}-{_plain(end)}")
            before = ""
        else:
            letter, at = _letter(line, at)
            before = _one(items, letter)
    inside = "".join(items)
    if not inside:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1


def _one(items: list[str], letter: str) -> str:
    items.append(_plain(letter))
    return letter


def _plain(letter: str) -> str:
    """For use between brackets of a regular expression, where two of `&|~-[` in a row may mean something one day."""
    return "\\" + letter if letter in "^[]&|~-\\" else letter


def _letter(line: str, at: int) -> tuple[str, int]:
    at += line[at : at + 1] == "\\"
    if at >= len(line):
        raise MatchesNothing
    return line[at], at + 1
