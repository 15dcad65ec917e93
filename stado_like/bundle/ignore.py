"""`.stadoignore`: what of a folder is not shipped, in the dialect of `.gitignore`.

Not obvious because a library that matches paths says of `build/` that it matches `build/x`, and of `a/**` that it
matches `a/`; git judges each path by itself, from the top, and enters no folder that is ignored. So patterns are the
library's (but for what `brackets` reads), one by one, and the order of judging is git's: the last pattern that matches
the path itself decides, and what lies below an ignored folder can not be brought back. The tests compare with git's own
answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stado_like.bundle.brackets import MatchesNothing, put_back, taken_out
from stado_like.errors import Refused

NAME = ".stadoignore"
_BY_A_FOLDER_ABOVE = "ps_d"
"""The library's group that takes part in a match of something below what the pattern names."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    regex: Any
    ignores: bool
    of_folders_only: bool


class Ignore:
    """Paths are relative to the folder, with `/`, without one at their end."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Raises `Refused` naming the line."""
        self._patterns = [one for number, line in enumerate(lines, 1) if (one := _read(number, line)) is not None]
        self._folders: dict[str, bool] = {"": False}

    @classmethod
    def of(cls, text: bytes) -> Ignore:
        """The file's bytes. Names that are not UTF-8 can be written in it as they are."""
        lines = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
        return cls([line.removesuffix("\r") for line in lines])

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        return self._folder(path) if is_folder else self._folder(_above(path)) or self._decide(path, False)

    def _folder(self, path: str) -> bool:
        known = self._folders.get(path)
        if known is None:
            known = self._folders[path] = self._folder(_above(path)) or self._decide(path, True)
        return known

    def _decide(self, path: str, is_folder: bool) -> bool:
        for pattern in reversed(self._patterns):
            if pattern.of_folders_only and not is_folder:
                continue
            found = pattern.regex.search(path)
            if found is not None and found.groupdict().get(_BY_A_FOLDER_ABOVE) is None:
                return pattern.ignores
        return False


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _read(number: int, line: str) -> _Pattern | None:
    from pathspec import GitIgnoreSpec

    said = _without_trailing_spaces(line)
    of_folders_only = len(said) > 1 and said.endswith("/")
    try:
        whole = said[:-1] if of_folders_only else said
        bare, meant = taken_out(whole)
        if "/" in whole and "/" not in bare:  # also one between brackets ties a pattern to the top
            bare = f"!/{bare[1:]}" if bare.startswith("!") else f"/{bare}"
        made = list(GitIgnoreSpec.from_lines([bare]).patterns)
    except MatchesNothing:
        return None
    except ValueError as wrong:
        raise Refused(
            f"line {number} of {NAME} is no pattern of gitignore's dialect: {line[:120]!a} ({wrong})",
            "Correct that line, or write # before it.",
        ) from wrong
    if not made or made[0].include is None:
        return None  # blank, or a comment
    regex = put_back(getattr(made[0], "regex"), meant)  # noqa: B009 - not in its base
    return _Pattern(regex, bool(made[0].include), of_folders_only)


def _without_trailing_spaces(line: str) -> str:
    r"""Git drops them unless the last is escaped: `a\ `."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if len(bare) < len(line) and backslashes % 2 else bare
