"""What a job's tasks left (`collect`) -> files below a directory of this machine.

Not obvious because neither the manifest nor the directory is trusted. A path in a manifest was written by a program on
some machine: it never leads out of the directory, not by `..`, not by a leading `/`, and not through a link that lies
in the directory. A file appears under its name only when all of it is there and its digest is right. What is there
already is kept: the same bytes count as fetched, other bytes refuse the whole command before anything is written,
unless it is told to replace them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from stado_like.bucket import load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord, Conflict, NotFound
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Collected, CollectedFile, LeftOut
from stado_like.job.spec.units import size_words
from stado_like.job.terms import Terms, display_name
from stado_like.reading.view import no_such_task

PIECE_BYTES = 4 << 20
TELL_EVERY_S = 5.0
NAMED = 3
Note = Callable[[str], None]


@dataclass(slots=True)
class Fetched:
    """What came of one task. `failed`: path -> why."""

    task: str
    rank: int
    attempt: int
    into: str
    files: list[CollectedFile] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    left_out_count: int = 0

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.files)

    @property
    def is_whole(self) -> bool:
        """Everything that was there when the task ended is here. What never was there is not missed."""
        missing = sum(one.missing for one in self.left_out)
        return not self.failed and self.left_out_count == missing


@dataclass(frozen=True, slots=True)
class _Wanted:
    a: AttemptId
    made: Collected
    into: Path


def fetch(
    bucket: Bucket,
    j: JobId,
    into: Path,
    *,
    task: int | None = None,
    attempt: int | None = None,
    force: bool = False,
    on_note: Note = lambda text: None,
) -> list[Fetched]:
    """Write what was collected below `into`: there itself for a one-task job, else in a folder for each task.

    Raises `NotFound` when nothing was collected, `Conflict` when other files are in the way, OSError for `into` itself.
    """
    job = bucket.job(j)
    if job is None:
        raise NotFound(f"there is no job {j}", "`stado job list --all` shows what is there.")
    terms = bucket.terms(job)
    if task is not None and not 0 <= task < terms.tasks:
        raise no_such_task(job, terms, task)
    ranks = range(terms.tasks) if task is None else range(task, task + 1)
    listed = load.list_status(bucket, j)
    newest = [load.newest_traced(j, rank, listed) if attempt is None else AttemptId(j, rank, attempt) for rank in ranks]
    look = _newest_collected if attempt is None else _one_only
    found = side_by_side(bucket, lambda a: look(bucket, a), newest)
    wanted = [
        _Wanted(a, made, into / display_name(terms, a.rank) if terms.several else into)
        for a, made in (one for one in found if one is not None)
    ]
    if not wanted:
        raise _nothing(j, terms, task, attempt)
    if not force:
        _refuse_to_overwrite(wanted)
    return [_fetch_task(bucket, terms, one, force, on_note) for one in wanted]


def _newest_collected(bucket: Bucket, a: AttemptId) -> tuple[AttemptId, Collected] | None:
    """The newest attempt that left a whole collection: attempts may end without one, or run still."""
    at: AttemptId | None = a
    while at is not None:
        found = _one_only(bucket, at)
        if found is not None:
            return found
        at = at.previous
    return None


def _one_only(bucket: Bucket, a: AttemptId) -> tuple[AttemptId, Collected] | None:
    found = bucket.read(Collected, keys.collected(a))
    return (a, found.record) if found is not None else None


def _nothing(j: JobId, terms: Terms, task: int | None, attempt: int | None) -> NotFound:
    which = f"task {task} of {j.name}" if task is not None else f"{j.name}"
    when = f" in attempt {attempt}" if attempt is not None else ""
    if not terms.collect:
        return NotFound(
            f"{j.name} did not ask for anything to be collected", "Submit with `--collect PATH` to keep files."
        )
    return NotFound(
        f"nothing was collected of {which}{when}: files are there once an attempt has ended with them",
        f"`stado job show {j.name}` tells whether it has, and what was noted.",
    )


# ---- where it goes


def _parts(path: str) -> tuple[str, ...] | None:
    """The steps of a path below the directory; None: it is no path of a file that could lie there."""
    steps = tuple(step for step in path.split("/") if step not in ("", "."))
    return None if not steps or ".." in steps or "\0" in path else steps


def _refuse_to_overwrite(wanted: list[_Wanted]) -> None:
    in_the_way = []
    for one in wanted:
        for file in one.made.files:
            parts = _parts(file.path)
            place = one.into.joinpath(*parts) if parts else None
            if place is not None and os.path.lexists(place) and not _is_same(place, file):
                in_the_way.append(str(place))
    if in_the_way:
        more = f" and {len(in_the_way) - NAMED} more" if len(in_the_way) > NAMED else ""
        raise Conflict(
            f"{len(in_the_way)} of the files are there already with other contents: "
            f"{', '.join(in_the_way[:NAMED])}{more}",
            "Nothing was written. Fetch into another directory, or replace them with --force.",
        )


def _is_same(place: Path, file: CollectedFile) -> bool:
    with suppress(OSError):
        told = os.lstat(place)
        if not stat.S_ISREG(told.st_mode) or told.st_size != file.size_bytes:
            return False
        seen = hashlib.sha256()
        with open(place, "rb") as opened:
            while piece := opened.read(PIECE_BYTES):
                seen.update(piece)
        return seen.hexdigest() == file.digest
    return False


# ---- one task


def _fetch_task(bucket: Bucket, terms: Terms, wanted: _Wanted, force: bool, on_note: Note) -> Fetched:
    a, made, into = wanted.a, wanted.made, wanted.into
    name = display_name(terms, a.rank)
    done = Fetched(name, a.rank, a.n, str(into), left_out=made.left_out, left_out_count=made.left_out_count)
    into.mkdir(parents=True, exist_ok=True)
    told = _Telling(bucket, f"{name} (attempt {a.n})", made.size_bytes, on_note)
    placed: set[tuple[str, ...]] = set()
    for file in made.files:
        parts = _parts(file.path)
        if parts is None:
            done.failed[file.path] = "its path leads out of the directory"
        elif parts in placed:
            done.failed[file.path] = f"another file has the place {'/'.join(parts)}"
        elif _is_same(into.joinpath(*parts), file):
            placed.add(parts)
            done.files.append(file)
        else:
            placed.add(parts)
            why = _fetch_file(bucket, a, file, into, parts, force, told)
            if why:
                done.failed[file.path] = why
            else:
                done.files.append(file)
    return done


def _fetch_file(
    bucket: Bucket,
    a: AttemptId,
    file: CollectedFile,
    into: Path,
    parts: tuple[str, ...],
    force: bool,
    told: _Telling,
) -> str:
    """Returns why it could not be, or nothing. Raises `StoreUnavailable`: whoever repeats the command goes on."""
    fresh = f".stado-{bucket.ambient.token()}.part"
    try:
        with _folder(into, parts[:-1]) as folder:
            try:
                why = _stream(bucket, a, file, folder, fresh, told)
                if not why:
                    _name(folder, fresh, parts[-1], force)
                return why
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=folder)
    except BadRecord as bad:
        return bad.message
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return f"a link, or no folder, is in its way below {into}"
        return error.strerror or str(error)


@contextmanager
def _folder(into: Path, steps: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of a folder below `into`, made where it is missing; no link is followed on the way."""
    at = os.open(into, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for step in steps:
            with suppress(FileExistsError):
                os.mkdir(step, 0o755, dir_fd=at)
            below = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def _stream(bucket: Bucket, a: AttemptId, file: CollectedFile, folder: int, fresh: str, told: _Telling) -> str:
    key = keys.collected_file(a, file.name)
    seen, size = hashlib.sha256(), 0
    target = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(target, "wb") as opened:
        while size < file.size_bytes:
            piece = bucket.store.get_range(key, size, min(PIECE_BYTES, file.size_bytes - size))
            if piece is None:
                return "it is not in the store any more"
            if not piece:
                break
            seen.update(piece)
            opened.write(piece)
            size += len(piece)
            told.more(len(piece))
        os.fchmod(opened.fileno(), file.mode & 0o777)
    if size != file.size_bytes or seen.hexdigest() != file.digest:
        return f"what is in the store ({key}) is not what the manifest says"
    return ""


def _name(folder: int, fresh: str, name: str, force: bool) -> None:
    """Give it its name, whole. Raises OSError where something has it, unless that may be replaced."""
    if force:
        os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    try:
        os.link(fresh, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        # A disk without hard links: it was looked at before, and only somebody else's file of the same moment is lost.
        os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)


class _Telling:
    """Every five seconds a line, for who waits; nothing for what is quick."""

    def __init__(self, bucket: Bucket, what: str, size_bytes: int, on_note: Note) -> None:
        self._bucket = bucket
        self._what = what
        self._size_bytes = size_bytes
        self._on_note = on_note
        self._done = 0
        self._told_s = bucket.ambient.boot_s()

    def more(self, size_bytes: int) -> None:
        self._done += size_bytes
        now_s = self._bucket.ambient.boot_s()
        if now_s - self._told_s >= TELL_EVERY_S:
            self._told_s = now_s
            self._on_note(f"{self._what}: {size_words(self._done)} of {size_words(self._size_bytes)}")
