"""What the ranks of a block came to, as its supervisor keeps it: in memory, and line by line in the block's folder.

    ran    {"ranks": [first, end]}
           {"begun": rank, "at": store time}        on the disk before anything of the rank is started
           {"ended": rank, …}                       with its output where that is short

Not obvious because it decides what may run a second time under one number. An agent that finishes for a dead supervisor
reads here which ranks keep their results, which one had begun, and which were never touched and so may be given back.
Where the file cannot be trusted (a reboot may have taken its end, a line cannot be read), nothing was "never begun".

One write per rank: the end of one and the beginning of the next go together. After a write that failed no rank is begun
any more, so a torn line can only be the last one.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from stado_like.errors import BadRecord
from stado_like.job import blocks, pairs
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import LAST_FAILURE_LINES, LogTail
from stado_like.job.states import Cause
from stado_worker.shim.attempt_dir import AttemptDir, attempt_dirs
from stado_worker.shim.log_shipping import as_text
from stado_worker.shim.task import OUTPUTS, PROGRESS

RAN = "ran"
ROW_BYTES, LOG_ROW_BYTES, FAILED_ROW_BYTES = 150, 60, 350
"""What an end takes in the block's record besides its texts, at most; what comes to it with an output, and for a task
that did not exit 0."""
PAIRS_ROW_BYTES = 400
"""What `key=value` lines take besides themselves: 64 of them at most, with six signs each."""
LAST_LINES_BYTES = 12 * 1024
"""The last lines of a task that failed are cut to what takes so much as JSON: the last rank that fits into a block must
not burst its record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """How one rank ended here. Times are store time. `log` None: its output is longer than a record takes along, and
    lies in its folder."""

    rank: int
    cause: Cause
    reason: str
    exit_code: int | None = None
    signal: str | None = None
    started_at: float = 0.0
    running_at: float = 0.0
    ended_at: float = 0.0
    notes: tuple[str, ...] = ()
    log: LogTail | None = None
    last_lines: str = ""

    @property
    def failed(self) -> bool:
        return self.cause is not Cause.NONE

    @property
    def size_bytes(self) -> int:
        """What it takes of its block's record, not less."""
        size = ROW_BYTES + len(orjson.dumps(self.notes))
        if self.log is not None and self.log.size:
            size += LOG_ROW_BYTES + len(orjson.dumps((self.log.text, self.log.base64)))
        if self.failed:  # why it ended, once more as its last failure, and why it restarts
            size += FAILED_ROW_BYTES + len(orjson.dumps(self.last_lines)) + 3 * len(orjson.dumps(self.reason))
        return size


@dataclass(slots=True)
class Ran:
    """`begun`: the rank that was started and of which no end is known, and when. `whole`: whether every rank that is
    not named here was certainly never begun."""

    ended: dict[int, RankEnd] = field(default_factory=dict)
    begun: int | None = None
    begun_at: float = 0.0
    whole: bool = True


class RanFile:
    """Written by the supervisor of a block, in its control thread."""

    def __init__(self, unit: AttemptId, ranks: range, folder: AttemptDir) -> None:
        self._unit = unit
        self._path = f"{folder.path}/{RAN}"
        self._fd = -1
        self._attempts = folder.path.parent
        self._unwritten = orjson.dumps({"ranks": [ranks.start, ranks.stop]}) + b"\n"
        self._broken = False
        self._tidied: list[int] = []
        self.ran = Ran()
        self.taken_bytes = 0
        self.kept: set[int] = set()
        """Ranks whose folders stay for a day, like those of other attempts."""
        self.long: list[int] = []
        """Ranks whose output has to be uploaded."""

    def begin(self, rank: int, at: float) -> None:
        """Raises OSError where the disk would not have it: then the rank must not be started."""
        if self._broken:
            raise OSError(f"{self._path} could not be written a moment ago")
        self._unwritten += orjson.dumps({"begun": rank, "at": at}) + b"\n"
        self._write()  # guard: begun before started
        self.ran.begun, self.ran.begun_at = rank, at

    def ended(self, end: RankEnd) -> None:
        """Its tree is gone. Takes its output along where that is short."""
        folder = self.folder_of(end.rank)
        end = with_output(folder, end)
        self.ran.ended[end.rank] = end
        self.ran.begun = None
        self.taken_bytes += end.size_bytes + _said_bytes(str(folder.path))
        self._unwritten += _line_of(end)
        if end.log is None:
            self.long.append(end.rank)
            self.kept.add(end.rank)
        else:
            self._tidied.append(end.rank)

    def flush(self) -> None:
        """What is known, on the disk if that can be: only a supervisor that dies right now leaves less behind."""
        if not self._broken:
            with suppress(OSError):
                self._write()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def folder_of(self, rank: int) -> AttemptDir:
        return rank_folder(self._attempts, self._unit, rank)

    def _write(self) -> None:
        self._broken = True
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        written = os.write(self._fd, self._unwritten)
        if written < len(self._unwritten):
            raise OSError(f"{self._path} took {written} of {len(self._unwritten)} bytes: the disk is full")
        self._broken = False
        self._unwritten = b""
        for rank in self._tidied:  # their output is in the file now
            if not remove_if_empty(str(self.folder_of(rank).path)):
                self.kept.add(rank)
        self._tidied.clear()


def rank_folder(attempts: Path, unit: AttemptId, rank: int) -> AttemptDir:
    return AttemptDir(attempts / str(AttemptId(unit.job, rank, 1)))


def with_output(folder: AttemptDir, end: RankEnd) -> RankEnd:
    """The end with what its record takes along of its output; `log` None where that is uploaded. Raises nothing: an
    output that cannot be read is told as one that was lost."""
    try:
        size = os.stat(f"{folder.path}/log").st_size
        if not size:
            return replace(end, log=LogTail())
        with folder.log.open("rb") as file:
            if end.failed:
                file.seek(max(0, size - LAST_LINES_BYTES))
                end = replace(end, last_lines=_last_lines(file.read(LAST_LINES_BYTES)))
                file.seek(0)
            if size > blocks.LOG_BYTES:
                return end
            raw = file.read(blocks.LOG_BYTES)
    except FileNotFoundError:
        return replace(end, log=LogTail())  # it never came to that, or removed its own folder
    except OSError as error:
        return replace(end, log=LogTail(), notes=(*end.notes, f"its output could not be read: {error}"))
    text = as_text(raw)
    if text is not None:
        return replace(end, log=LogTail(size=size, text=text))
    return replace(end, log=LogTail(size=size, base64=base64.b64encode(raw).decode()))


def _said_bytes(path: str) -> int:
    """What a rank's pairs take in the record, if it wrote any."""
    taken = 0
    for name in (OUTPUTS, PROGRESS):
        try:
            size = os.stat(f"{path}/{name}").st_size
        except OSError:
            continue
        taken += PAIRS_ROW_BYTES + 2 * min(size, pairs.MOST_BYTES)  # quotes and commas; a key is counted once
    return taken


def _last_lines(raw: bytes) -> str:
    """For people, as `LogShipping.last_lines`, and never longer in a record than `LAST_LINES_BYTES`."""
    said = "\n".join(raw.decode("utf-8", "replace").splitlines()[-LAST_FAILURE_LINES:])
    while len(orjson.dumps(said)) > LAST_LINES_BYTES:
        said = said[len(said) // 4 + 1 :]
    return said


def remove_if_empty(path: str) -> bool:
    """Remove the folder of a rank whose output is kept elsewhere, unless the task left something in it."""
    try:
        with suppress(FileNotFoundError):
            os.rmdir(f"{path}/scratch")
        with suppress(FileNotFoundError):
            os.unlink(f"{path}/log")
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


# ---- read back


def read_ran(folder: AttemptDir) -> Ran | None:
    """None: no rank was ever begun. A file that cannot be read, or a line of it, makes it one that does not know what
    was begun: `whole` is False."""
    try:
        lines = (folder.path / RAN).read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    except OSError:
        return Ran(whole=False)
    ran = Ran()
    for line in lines[:-1]:  # what follows the last line's end was never relied upon
        try:
            _take(ran, orjson.loads(line))
        except (AttributeError, KeyError, TypeError, ValueError):
            ran.whole = False
    return ran


def ranks_in(folder: AttemptDir) -> range | None:
    """Of a block's folder: which ranks it carries. None: it is none, or does not say."""
    try:
        with (folder.path / RAN).open("rb") as file:
            first, end = orjson.loads(file.readline())["ranks"]
        return range(int(first), int(end))
    except (OSError, KeyError, TypeError, ValueError):
        return None


def blocks_in(attempts: Path) -> Iterator[tuple[JobId, range, AttemptDir]]:
    """The blocks whose folders lie here: of which job, which ranks."""
    for folder in attempt_dirs(attempts):
        ranks = ranks_in(folder)
        if ranks is not None:
            with suppress(BadRecord):  # no attempt's folder, whatever lies in it
                yield AttemptId.parse(folder.attempt_id).job, ranks, folder


def _take(ran: Ran, line: dict[str, Any]) -> None:
    if "begun" in line:
        ran.begun, ran.begun_at = int(line["begun"]), float(line["at"])
    elif "ended" in line:
        end = _end_in(line)
        ran.ended[end.rank] = end
        if ran.begun == end.rank:
            ran.begun = None
    elif "ranks" not in line:
        raise ValueError(line)


def _line_of(end: RankEnd) -> bytes:
    plain: dict[str, Any] = {
        "ended": end.rank,
        "cause": end.cause.value,
        "reason": end.reason,
        "exit_code": end.exit_code,
        "signal": end.signal,
        "times": (end.started_at, end.running_at, end.ended_at),
        "notes": end.notes,
        "last_lines": end.last_lines,
    }
    if end.log is not None:
        plain["log"] = (end.log.size, end.log.text, end.log.base64)
    return orjson.dumps(plain) + b"\n"


def _end_in(line: dict[str, Any]) -> RankEnd:
    started_at, running_at, ended_at = line["times"]
    log = None
    if "log" in line:
        size, text, encoded = line["log"]
        log = LogTail(size=size, text=text, base64=encoded)
    return RankEnd(
        rank=int(line["ended"]),
        cause=Cause(line["cause"]),
        reason=str(line["reason"]),
        exit_code=line["exit_code"],
        signal=line["signal"],
        started_at=float(started_at),
        running_at=float(running_at),
        ended_at=float(ended_at),
        notes=tuple(line["notes"]),
        log=log,
        last_lines=str(line["last_lines"]),
    )
