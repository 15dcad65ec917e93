"""The files that a job is described by: a specification, a script, variables, lines. Read here, judged in the library.

One of them at most may be standard input.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stado_like.asking import entries, script, variables
from stado_like.errors import Refused, UsageError

HEAD_BYTES = 4096
LINES_MAX_BYTES = 64 << 20


def only_one_is_standard_input(given: Mapping[str, str]) -> None:
    """`given`: the file by its option. Raises `UsageError` that names the options."""
    named = [option for option, file in given.items() if file == "-"]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} would both read standard input", "Give all but one of them as a file.")


def document(file: str) -> dict[str, Any]:
    from stado_like.job.spec import limits
    from stado_like.job.spec.reading import read_document

    return read_document(_bytes(file, "the specification", limits.STORED_MAX_BYTES), called(file))


def env_file(file: str) -> dict[str, str]:
    body = _bytes(file, "the file of variables")
    try:
        text = body.decode()
    except UnicodeDecodeError as bad:
        line = body.count(b"\n", 0, bad.start) + 1
        raise Refused(
            f"the file of variables {called(file)} is not UTF-8: byte {body[bad.start]:#04x} in line {line}",
            "Convert it, for example with `iconv -t UTF-8`.",
        ) from None
    return variables.of_file(text, os.environ, f"the file of variables {called(file)}")


def lines(file: str) -> entries.Lines:
    return entries.lines(_bytes(file, "the file of lines"), called(file))


def script_text(file: str) -> str:
    from stado_like.job.spec import limits

    return script.text_of(_bytes(file, "the script", limits.ONE_STRING_MAX_BYTES), called(file))


def is_script(word: str) -> bool:
    """Whether the first word of a job is a script of here, and not a program.

    A text with a #! line, or a name that shells' scripts have, or at least no name of a program in PATH; never machine
    code.
    """
    if not os.path.isfile(word):
        return False
    try:
        with open(word, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False  # what cannot be read here may still be run by its name
    if not script.is_text(head):
        return False
    in_path = shutil.which(word.rsplit("/", 1)[-1])
    if in_path is not None and os.path.samefile(in_path, word):
        return False
    if script.looks_like_a_script(word, head):
        return "/" in word or in_path is None or word.lower().endswith(script.SUFFIXES)
    return "/" in word or in_path is None


def called(file: str) -> str:
    return "standard input" if file == "-" else file


def _bytes(file: str, what: str, most: int = 0) -> bytes:
    """The whole file. With `most`, a byte more than that of a longer one: enough for its reader to refuse it."""
    try:
        if file == "-":
            if sys.stdin is None:  # the caller closed it
                raise Refused(f"{what} cannot be read: standard input is closed", "Give a file, or redirect one.")
            body = sys.stdin.buffer.read((most or LINES_MAX_BYTES) + 1)
        else:
            with Path(file).open("rb") as opened:
                body = opened.read((most or LINES_MAX_BYTES) + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"{what} {file} cannot be read: {why}", "Give a file, or - for standard input.") from None
    if not most and len(body) > LINES_MAX_BYTES:
        raise Refused(f"{what} {called(file)} is larger than 64 MiB", "Split it, and submit each part.")
    return body
