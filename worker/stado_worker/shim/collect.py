"""The files a job asked to keep: found after the process has ended, uploaded, and listed by a manifest written last.

    outputs/<J>/<rank>/<n>/000001-model.pt … , then manifest.json

Not obvious because the job has ended already and nothing here may change how: a file that is missing, too large, or
vanishes under us is a note. A pattern is a path (absolute, or relative to where the task ran) as it stands; where
nothing is there under that very name it is a glob (`*`, `?`, `[…]`, `**` for any depth). A folder means all files in
it. Nothing is followed out of where it was asked for: a link whose target lies outside the working directory (for an
absolute pattern, outside its own folder) is left out, as are pipes, sockets and devices.

The manifest says what is there, with original paths, sizes, digests and modes. A reader believes nothing without one,
so an upload that was cut short is never taken for the whole.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import escape, has_magic, iglob
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from stado_like.bucket.bucket import Bucket
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Collected, CollectedFile, LeftOut
from stado_like.job.spec.units import size_words
from stado_like.store.protocol import Applied, Unknown

MOST_BYTES = 1 << 30
"""Default of the setting `collect_max`."""
MOST_FILES = 10_000
MOST_FOUND = 10 * MOST_FILES
MOST_LEFT_OUT = 100
PIECE_BYTES = 4 << 20
RETRY_FIRST_S = 0.25
RETRY_MOST_S = 15.0
GIVE_UP_AFTER_S = 900.0
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
Pause = Callable[[float], bool]


class GaveUp(Exception):
    """The store did not take it for too long, or nobody wants it any more."""


@dataclass(slots=True)
class _Collecting:
    bucket: Bucket
    a: AttemptId
    most_bytes: int
    pause: Pause
    deadline_s: float
    files: list[CollectedFile] = field(default_factory=list)
    size_bytes: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    left_out_count: int = 0

    def leave_out(self, path: str, why: str, *, missing: bool = False) -> None:
        self.left_out_count += 1
        if len(self.left_out) < MOST_LEFT_OUT:
            self.left_out.append(LeftOut(path=path, why=why, missing=missing))


def collect(
    bucket: Bucket,
    a: AttemptId,
    cwd: Path,
    patterns: Sequence[str],
    pause: Pause,
    *,
    most_bytes: int = MOST_BYTES,
    within_s: float = GIVE_UP_AFTER_S,
) -> Collected:
    """Upload what `patterns` name. `pause(s)` waits, True: give up. `within_s`: how long in all; what was not sent then
    is left out. Raises `GaveUp` when not even the manifest could be written."""
    work = _Collecting(bucket, a, most_bytes, pause, bucket.ambient.boot_s() + within_s)
    seen: set[str] = set()
    found = (one for pattern in patterns for one in _found(work, cwd, pattern))
    for real, path in islice(found, MOST_FOUND):
        if path in seen:
            continue
        seen.add(path)
        if len(work.files) >= MOST_FILES:
            work.leave_out(path, f"more than {MOST_FILES} files")
        else:
            _take(work, real, path)
    made = Collected(
        attempt=str(a),
        files=tuple(work.files),
        size_bytes=work.size_bytes,
        left_out=tuple(work.left_out),
        left_out_count=work.left_out_count,
        at=bucket.now(),
    )
    body = codec.encode(made)
    work.deadline_s = max(work.deadline_s, bucket.ambient.boot_s() + 30.0)
    _again(work, lambda: bucket.store.put(keys.collected(a), body))
    return made


def notes_of(made: Collected) -> tuple[str, ...]:
    """What people should know, in a few lines."""
    told = [f"Not collected: {one.path}: {one.why}" for one in made.left_out[:5]]
    more = made.left_out_count - len(told)
    return (*told, f"Not collected: {more} more, see `stado job fetch`") if more > 0 else tuple(told)


# ---- what is there


def _found(work: _Collecting, cwd: Path, pattern: str) -> Iterator[tuple[str, str]]:
    """`(real path, path as the task knows it)` of every file that a pattern names, in order."""
    if os.path.isabs(pattern):
        pattern = os.path.normpath(pattern)
    whole = os.path.join(cwd, pattern)
    root = os.path.realpath(cwd if not os.path.isabs(pattern) else _plain_folder(pattern))
    if os.path.lexists(whole) or not has_magic(pattern):
        named: list[str] = [whole] if os.path.lexists(whole) else []
    else:
        asked = pattern if os.path.isabs(pattern) else os.path.join(escape(str(cwd)), pattern)
        named = sorted(islice(iglob(asked, recursive=True), MOST_FOUND))
    count = 0
    for one in named:
        for file in _files(work, one):
            count += 1
            path = _told(os.path.relpath(file, cwd) if not os.path.isabs(pattern) else file)
            real = os.path.realpath(file)
            if not _is_below(real, root):
                work.leave_out(path, "a link that leaves the folder it was asked for in")
                continue
            yield real, path
    if not count:
        kind = "nothing matches it" if has_magic(pattern) else "there is no such file"
        kind = "an empty folder" if named else kind
        work.leave_out(_told(pattern), kind, missing=True)


def _files(work: _Collecting, named: str) -> Iterator[str]:
    """The file itself, or all in the folder. A link to a folder is followed where it was named, not below."""
    if not os.path.isdir(named):
        yield named
        return

    def closed(error: OSError) -> None:
        work.leave_out(_told(str(error.filename)), error.strerror or str(error))

    for folder, folders, files in os.walk(named, onerror=closed):
        folders.sort()
        for name in list(folders):
            if os.path.islink(os.path.join(folder, name)):
                work.leave_out(_told(os.path.join(folder, name)), "a link to a folder")
        for name in sorted(files):
            yield os.path.join(folder, name)


def _plain_folder(pattern: str) -> str:
    """The folder of an absolute pattern, up to its first wildcard. A folder that was named is its own."""
    if not has_magic(pattern) or os.path.lexists(pattern):
        return pattern if os.path.isdir(pattern) else os.path.dirname(pattern)
    plain = []
    for step in pattern.split("/"):
        if has_magic(step):
            break
        plain.append(step)
    return "/".join(plain) or "/"


def _is_below(real: str, root: str) -> bool:
    return real == root or real.startswith(root.rstrip("/") + "/")


def _told(path: str) -> str:
    """A path as JSON can hold it: bytes that are no UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


# ---- sending it


def _take(work: _Collecting, real: str, path: str) -> None:
    try:
        file = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        work.leave_out(path, "there is no such file" if missing else error.strerror or str(error), missing=missing)
        return
    with os.fdopen(file, "rb") as opened:
        before = os.fstat(opened.fileno())
        if not stat.S_ISREG(before.st_mode):
            work.leave_out(path, "no plain file")
            return
        if work.size_bytes + before.st_size > work.most_bytes:
            free = size_words(work.most_bytes - work.size_bytes)
            why = f"it has {size_words(before.st_size)}, and {free} of {size_words(work.most_bytes)} were free"
            work.leave_out(path, f"{why} (the worker's setting collect_max)")
            return
        try:
            _send(work, opened, before, path)
        except OSError as error:
            work.leave_out(path, error.strerror or str(error))


def _send(work: _Collecting, file: BinaryIO, before: os.stat_result, path: str) -> None:
    name = f"{len(work.files) + 1:06d}-{_UNSAFE.sub('_', os.path.basename(path))[-64:]}"
    try:
        digest = _digest(work, file)
        _again(work, lambda: work.bucket.store.put_file(keys.collected_file(work.a, name), file))
    except GaveUp as gave_up:
        work.leave_out(path, str(gave_up))
        return
    after = os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        work.leave_out(path, "it changed while it was collected")
        return
    mode = stat.S_IMODE(before.st_mode) & 0o777
    work.files.append(CollectedFile(name=name, path=path, size_bytes=before.st_size, digest=digest, mode=mode))
    work.size_bytes += before.st_size


def _digest(work: _Collecting, file: BinaryIO) -> str:
    seen = hashlib.sha256()
    file.seek(0)
    while piece := file.read(PIECE_BYTES):
        seen.update(piece)
        if work.pause(0.0):
            raise GaveUp("the attempt is not ours any more")
        if work.bucket.ambient.boot_s() >= work.deadline_s:
            raise GaveUp("there was no more time")
    return seen.hexdigest()


def _again(work: _Collecting, send: Callable[[], object]) -> None:
    """Until the store has it. Raises `GaveUp`."""
    wait_s = RETRY_FIRST_S
    ambient = work.bucket.ambient
    while True:
        if work.pause(0.0):
            raise GaveUp("the attempt is not ours any more")
        if ambient.boot_s() >= work.deadline_s:
            raise GaveUp("the store did not take it in time")
        answer = send()
        if isinstance(answer, Applied):
            return
        asked_s = answer.retry_after_s if isinstance(answer, Unknown) else 0.0
        work.pause(max(asked_s, ambient.uniform(wait_s / 2, wait_s)))
        wait_s = min(wait_s * 2, RETRY_MOST_S)
