"""The `#SBATCH` lines of a script, read exactly as sbatch reads them.

Not a matter of splitting at blanks, and every rule below was tried on Slurm 22.05:

- `#SBATCH` stands at the very beginning of a line, in upper case; a blank may follow it or not (`#SBATCH--time=9`).
  Indented, after a second `#` or a blank it is a comment like any other.
- Reading stops at the first line that is neither empty nor a comment: options after the first command do nothing.
- A line may hold several options. `'…'` and `"…"` hold blanks together, `\\` takes the next letter as it is, and an
  unquoted `#` ends the line, even inside a word.
- Options are getopt's: `-t5`, `-t 5`, `-Ht 5`, `--time=5`, `--time 5`, and any abbreviation that fits one option only.
  An option whose value may be left out takes it after `=` alone.
- The last of two settings of one option holds. A word that belongs to no option is an error.
- The first line names an interpreter, and lines end with LF alone.

An option that sbatch itself does not know is refused when it looks like a typing mistake, and else handed on: clusters
add options of their own.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from stado_like.errors import UsageError
from stado_like.sbatch.options import BY_SHORT, Option, Takes, meant, named

MARK: Final = "#SBATCH"
OTHER_MARKS: Final = ("#PBS", "#BSUB")
HETEROGENEOUS: Final = frozenset({"hetjob", "packjob", ":"})


@dataclass(frozen=True, slots=True)
class Directive:
    """One option of one line. `value` is empty for an option without one; `known` is False for one that is not
    sbatch's own.
    """

    line: int
    name: str
    value: str
    known: bool = True

    @property
    def written(self) -> str:
        """`line 3: --time=10`: where it stands, in the long form."""
        value = self.value if len(self.value) <= 80 else self.value[:80] + "…"
        return f"line {self.line}: --{self.name}{'=' + value if value else ''}"

    def refused(self, why: str, accepted: str) -> UsageError:
        return UsageError(f"{self.written}: {why}", f"Accepted: {accepted}.")


@dataclass(frozen=True, slots=True)
class Read:
    """`notes`: lines that look like directives and are none, each with its number."""

    directives: tuple[Directive, ...]
    notes: tuple[str, ...]


def read(text: str) -> Read:
    """Raises `UsageError`: a script without an interpreter or with DOS line ends, and an option that cannot be read."""
    if not text.startswith("#!"):
        raise UsageError(
            "the first line names no interpreter", "A batch script begins with #! and a program: #!/bin/bash."
        )
    found: list[Directive] = []
    notes: list[str] = []
    reading = True
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith("\r"):
            raise UsageError(
                f"line {number}: ends with CR LF, a DOS line end", "Convert the script, for example with dos2unix."
            )
        bare = line.strip()
        if reading and bare and not bare.startswith("#"):
            reading = False
        if line.startswith(MARK):
            if reading:
                found += _options(number, line[len(MARK) :])
            else:
                notes.append(f"line {number}: {bare}: it stands after the first command, where sbatch does not read it")
        elif reading and bare.startswith(MARK):
            notes.append(f"line {number}: {bare}: it does not begin the line, so sbatch does not read it either")
        elif reading and line.startswith(OTHER_MARKS):
            notes.append(f"line {number}: {bare}: only #SBATCH lines are read")
    return Read(tuple(found), tuple(notes))


def _options(line: int, rest: str) -> list[Directive]:
    words = _words(line, rest)
    found: list[Directive] = []
    while words:
        word = words.popleft()
        if word == "--":
            continue
        if word.startswith("--"):
            found.append(_long(line, word[2:], words))
        elif word.startswith("-") and len(word) > 1:
            found += _short(line, word[1:], words)
        elif word in HETEROGENEOUS:
            raise UsageError(
                f"line {line}: {word}: jobs of several kinds of machines are not imported",
                "Submit each part by itself, or describe them as task_groups of one job.",
            )
        else:
            raise UsageError(f"line {line}: {word!r} belongs to no option", "Accepted: --option=value or -o value.")
    return found


def _words(line: int, rest: str) -> deque[str]:
    words: deque[str] = deque()
    word, quote, escaped = "", "", False
    for letter in rest:
        if escaped:
            word, escaped = word + letter, False
        elif letter == "\\":
            escaped = True
        elif quote:
            word, quote = (word, "") if letter == quote else (word + letter, quote)
        elif letter in "'\"":
            quote = letter
        elif letter == "#":
            break
        elif letter.isspace():
            if word:
                words.append(word)
            word = ""
        else:
            word += letter
    if quote:
        raise UsageError(f"line {line}: the quote {quote} is not closed", f"Close it, or write \\{quote}.")
    if word:
        words.append(word)
    return words


def _long(line: int, word: str, rest: deque[str]) -> Directive:
    name, equals, value = word.partition("=")
    fitting = named(name)
    if not fitting:
        return _foreign(line, name, value if equals else _next_value(rest))
    if len(fitting) > 1:
        raise UsageError(
            f"line {line}: --{name} may mean {', '.join('--' + one.name for one in fitting)}", "Write it out."
        )
    option = fitting[0]
    if option.takes is Takes.NOTHING and equals:
        raise UsageError(f"line {line}: --{option.name} takes no value, got {value!r}", f"Write --{option.name}.")
    if option.takes is Takes.VALUE and not equals:
        value = _needed(line, option, rest)
    return Directive(line, option.name, value)


def _short(line: int, letters: str, rest: deque[str]) -> list[Directive]:
    """`Ht5`: -H and -t 5."""
    found: list[Directive] = []
    while letters:
        letter, letters = letters[0], letters[1:]
        option = BY_SHORT.get(letter)
        if option is None:
            raise UsageError(
                f"line {line}: -{letter} is not an option of sbatch",
                f"Accepted: {', '.join('-' + short for short in sorted(BY_SHORT))}.",
            )
        if option.takes is Takes.NOTHING:
            found.append(Directive(line, option.name, ""))
            continue
        value = letters if letters or option.takes is Takes.MAYBE else _needed(line, option, rest)
        found.append(Directive(line, option.name, value))
        break
    return found


def _needed(line: int, option: Option, rest: deque[str]) -> str:
    if not rest:
        raise UsageError(f"line {line}: --{option.name} has no value", f"Write --{option.name}=VALUE.")
    return rest.popleft()


def _next_value(rest: deque[str]) -> str:
    return rest.popleft() if rest and not rest[0].startswith("-") else ""


def _foreign(line: int, name: str, value: str) -> Directive:
    near = meant(name)
    if near:
        raise UsageError(f"line {line}: --{name} is not an option of sbatch", f"Did you mean --{near}?")
    return Directive(line, name, value, known=False)
