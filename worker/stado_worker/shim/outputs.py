"""What a task leaves in words: its last progress, the pairs of `$STADO_OUTPUTS`, the text of its answer.

Read once, when the process is gone and before the end record is composed, from the attempt's folder alone: whoever
carries on after a dead supervisor finds the same. Whatever is wrong with these files is a note for people and changes
nothing about how the task ended. Values of credentials become `*`, as in the log; where it is not known any more what
to mask, nothing is told.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path

from stado_like.job.pairs import MOST_BYTES, MOST_KEYS, Pairs, Value, readable
from stado_like.job.terms import Terms
from stado_worker.secrets.masking import Masks
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.progress import ProgressFile
from stado_worker.shim.task import OUTPUTS, PROGRESS

WORKING_DIRECTORY = "workdir"
READ_BYTES = 1 << 20
ANSWER_BYTES = 8 * 1024
NAMED = 5


@dataclass(frozen=True, slots=True)
class Said:
    """`answer` None: none was asked for, or none is there."""

    progress: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    answer: str | None = None
    notes: tuple[str, ...] = ()


def said(folder: AttemptDir, terms: Terms, masks: Masks | None) -> Said:
    if masks is None:
        return Said()
    notes: list[str] = []
    progress = ProgressFile(folder.path / PROGRESS)
    progress.read_to_end(0.0)
    outputs = _outputs(folder.path / OUTPUTS, notes)
    answer = _answer(folder, terms.answer_path, notes) if terms.answer_path else None
    found = Said(dict(progress.values), outputs, answer, tuple(notes))
    return found if not masks else _masked(found, masks)


def working_directory(folder: AttemptDir) -> Path | None:
    """Where the command ran, kept for attempts of which files are wanted. None: it never started."""
    try:
        return Path(os.fsdecode((folder.path / WORKING_DIRECTORY).read_bytes()))
    except OSError:
        return None


def keep_working_directory(folder: AttemptDir, cwd: str) -> str:
    """Returns a note, or nothing."""
    try:
        (folder.path / WORKING_DIRECTORY).write_bytes(os.fsencode(cwd))
    except OSError as error:
        return f"Its files will not be found: where it runs could not be kept ({error.strerror})"
    return ""


def masked_values(values: dict[str, Value], masks: Masks) -> dict[str, Value]:
    return {key: _hidden(value, masks) if isinstance(value, str) else value for key, value in values.items()}


def _masked(found: Said, masks: Masks) -> Said:
    return replace(
        found,
        progress=masked_values(found.progress, masks),
        outputs={key: _hidden(value, masks) for key, value in found.outputs.items()},
        answer=None if found.answer is None else _hidden(found.answer, masks),
    )


def _hidden(text: str, masks: Masks) -> str:
    return masks.masked(text.encode(), complete=True).decode("utf-8", "replace")


def _outputs(path: Path, notes: list[str]) -> dict[str, str]:
    try:
        read = _read(path, READ_BYTES + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        notes.append(f"STADO_OUTPUTS could not be read: {error.strerror or error}")
        return {}
    if len(read) > READ_BYTES:
        notes.append(f"STADO_OUTPUTS holds more than {READ_BYTES} bytes: what is behind them was not read")
        read = read[:READ_BYTES].rpartition(b"\n")[0]
    pairs = Pairs()
    for line in readable(read).split("\n"):
        pairs.line(line)
    lost = sorted(pairs.left_out)
    if lost:
        named = ", ".join(lost[:NAMED]) + (f" and {len(lost) - NAMED} more" if len(lost) > NAMED else "")
        notes.append(f"Outputs are at most {MOST_KEYS} pairs and {MOST_BYTES} bytes; left out: {named}")
    if pairs.ignored:
        notes.append(f"{pairs.ignored} lines of STADO_OUTPUTS are no key=value")
    return pairs.values


def _answer(folder: AttemptDir, asked: str, notes: list[str]) -> str | None:
    cwd = working_directory(folder)
    if cwd is None:
        return None
    path = cwd / asked
    try:
        read = _read(path, ANSWER_BYTES + 1)
    except FileNotFoundError:
        notes.append(f"There is no answer: {path} does not exist")
        return None
    except OSError as error:
        notes.append(f"There is no answer: {path} could not be read ({error.strerror or error})")
        return None
    if len(read) > ANSWER_BYTES:
        notes.append(f"The answer is the first {ANSWER_BYTES} bytes of {path}; `collect` keeps all of it")
    return readable(read[:ANSWER_BYTES].decode("utf-8", "ignore").encode() if len(read) > ANSWER_BYTES else read)


def _read(path: Path, most_bytes: int) -> bytes:
    """Of a plain file only: a pipe would wait for a writer, a device has no end."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(0, "it is no plain file")
        read = b""
        while len(read) < most_bytes and (piece := os.read(file, most_bytes - len(read))):
            read += piece
        return read
    finally:
        os.close(file)
