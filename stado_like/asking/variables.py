"""Variables and labels as people write them: `K=V`, `K` alone, and files of variables.

A file of variables has no standard; what the tools that read one agree on is taken, and everything else is an error
with its line's number, because a value that was read in another way than it was meant is found out hours later.

    # a comment, and empty lines
    KEY=value                  up to the end of the line; blanks around it and a ` # comment` after it are dropped
    export KEY=value           the same
    KEY='a $b "c" # d'         exactly what stands between the quotes; may go over several lines
    KEY="a\\nb \\"c\\" \\$d"       \\n \\r \\t \\\\ \\" \\$ and \\` are read; may go over several lines
    KEY                        copied from the caller's environment

Nothing is expanded: `$HOME` is these five characters. Of a key that stands twice the last one holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stado_like.errors import UsageError

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([^\s=#'\"]+)[ \t]*(=)?[ \t]*")
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
FORMS = "KEY=VALUE, KEY='exact text', KEY=\"text with \\n\", KEY alone (copied from here), # comment"


def variables(given: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """`K=V`, or `K` to copy it from the caller's environment. Raises `UsageError`, all wrong ones at once."""
    found: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name:
            wrong[one] = "has no name before ="
        elif equals:
            found[name] = value
        elif name in environment:
            found[name] = environment[name]
        else:
            wrong[name] = "is not set here, so it cannot be copied"
    if wrong:
        raise UsageError("some variables cannot be passed on", "Give them as NAME=VALUE.", detail=wrong)
    return found


def of_file(text: str, environment: Mapping[str, str], what: str) -> dict[str, str]:
    """A file of variables. `what` is its name for errors. Raises `UsageError` with a sentence for each wrong line."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    found: dict[str, str] = {}
    wrong: dict[str, str] = {}
    at = 0
    while at < len(text):
        number = text.count("\n", 0, at) + 1
        end = _end_of_line(text, at)
        bare = text[at:end].strip()
        if not bare or bare.startswith("#"):
            at = end + 1
            continue
        try:
            name, value, at = _one(text, at, end, environment)
            found[name] = value
        except _WrongLine as bad:
            wrong[f"line {number}"] = str(bad)
            at = end + 1
    if wrong:
        raise UsageError(f"{what} cannot be read as variables", f"Accepted lines: {FORMS}.", detail=wrong)
    return found


class _WrongLine(Exception):
    """What is wrong with one line, said in words."""


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _one(text: str, at: int, end: int, environment: Mapping[str, str]) -> tuple[str, str, int]:
    """(name, value, where the next line begins)."""
    match = _LINE.match(text, at, end)
    if match is None:
        raise _WrongLine("has no variable's name at its beginning")
    name, at = match[1], match.end()
    if match[2] is None:
        if _trailing(text[at:end]):
            raise _WrongLine(f"has no = after {name[:60]}")
        if name not in environment:
            raise _WrongLine(f"{name[:60]} is not set here, so it cannot be copied")
        return name, environment[name], end + 1
    if text[at : at + 1] in ("'", '"') and at < end:
        quoted = (_SINGLE if text[at] == "'" else _DOUBLE).match(text, at)
        if quoted is None:
            raise _WrongLine(f"the quote of {name[:60]} is never closed")
        end = _end_of_line(text, quoted.end())
        if _trailing(text[quoted.end() : end]):
            raise _WrongLine(f"there is text after the closing quote of {name[:60]}")
        value = quoted[1] if text[at] == "'" else _ESCAPE.sub(_escaped, quoted[1])
        return name, value, end + 1
    value = text[at:end]
    comment = re.search(r"(?:^|[ \t])#", value)
    return name, (value[: comment.start()] if comment else value).strip(), end + 1


def _trailing(rest: str) -> bool:
    """Whether anything but a comment follows."""
    return bool(rest.strip()) and not rest.lstrip().startswith("#")


def _escaped(match: re.Match[str]) -> str:
    letter = match[1]
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return letter if letter in '\\"$`' else match[0]


def labels(given: Sequence[str]) -> dict[str, str]:
    """`k=v` pairs. Raises `UsageError`."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"{one[:120]!a} is not a label", "Accepted form: KEY=VALUE.")
        found[name] = value
    return found
