"""A file of lines as an array: one task for each line, which it finds in STADO_ENTRY.

Empty lines are left out and counted, so that a newline at the end of a file is no task; everything else of a line is
kept as it is, blanks at its ends too.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.errors import UsageError
from stado_like.job.spec import limits


@dataclass(frozen=True, slots=True)
class Lines:
    entries: tuple[str, ...]
    left_out: int
    what: str

    @property
    def words(self) -> str:
        said = f"each line of {self.what}: {len(self.entries)} task{'' if len(self.entries) == 1 else 's'}"
        if self.left_out:
            said += f"; {self.left_out} empty line{' is' if self.left_out == 1 else 's are'} left out"
        return said


def lines(body: bytes, what: str) -> Lines:
    """The entries of a file's bytes. `what` is its name for errors. Raises `UsageError` with the line's number."""
    found: list[str] = []
    left_out = 0
    rows = body.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, row in enumerate(rows, 1):
        row = row.removesuffix(b"\r")
        if not row.strip():
            left_out += number < len(rows)  # after the last newline there is no line
            continue
        try:
            found.append(row.decode())
        except UnicodeDecodeError as bad:
            raise UsageError(
                f"line {number} of {what} is not UTF-8: byte {row[bad.start]:#04x} at position {bad.start + 1}",
                "Convert the file, for example with `iconv -t UTF-8`.",
            ) from None
        if "\0" in found[-1]:
            raise UsageError(
                f"line {number} of {what} holds a NUL character, which no variable can", "Give a file of text."
            )
    most = limits.ARRAY_SIZE[1]
    if not found:
        raise UsageError(f"{what} has no line that is not empty", "Each line is one task.")
    if len(found) > most:
        raise UsageError(
            f"{what} has {len(found)} lines, and an array has at most {most} tasks",
            f"Split it (`split -l {most}`) and submit each part.",
        )
    return Lines(tuple(found), left_out, what)
