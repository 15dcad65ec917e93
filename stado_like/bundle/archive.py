"""A folder as one archive whose digest says what is in it, and nothing about who packed it, where or when.

So members are sorted by their bytes, belong to nobody, have one of two modes and one time, and the compression writes
no name and no time either; two people who check out one commit get one digest, and the store holds it once. (Another
version of zlib may compress otherwise: that is a second upload, and no wrong run.) The time is the first that every
archive format can say. Level 1: 98 MB/s and 42 % of a source tree's size on one core, where level 6 makes 58 MB/s and
39 %.

A file that changes while it is read would be shipped as it never was, so that is refused, by its name.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from stado_like.bundle.contents import Contents, Item, Kind, contents
from stado_like.bundle.ignore import NAME
from stado_like.bundle.limits import MOST_BYTES, short, words
from stado_like.errors import Refused

EPOCH_S = 315_532_800
"""1980-01-01: what zip and others take for the beginning of time."""
LEVEL = 1
LARGEST_NAMED = 10

Progress = Callable[[int, int], None]
"""Bytes done, bytes in all."""


def unwatched(done_bytes: int, all_bytes: int) -> None:
    """Progress that nobody looks at."""


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive in a temporary file that has no name, so nothing is left of it when the process ends.

    `size_bytes` is the archive's, `content_bytes` the sum of the files. `notes`: what a person should hear about.
    """

    digest: str
    size_bytes: int
    content_bytes: int
    files: int
    archive: BinaryIO = field(compare=False, repr=False)
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        plural = "" if self.files == 1 else "s"
        return f"bundle {short(self.digest)}: {self.files:,} file{plural}, {words(self.content_bytes)}"

    def close(self) -> None:
        self.archive.close()

    def __enter__(self) -> Packed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def pack(folder: str | Path, limit_bytes: int = MOST_BYTES, on_progress: Progress = unwatched) -> Packed:
    """Raises `Refused`: the folder is no folder, or too large, or holds what cannot be shipped."""
    try:
        place = os.path.abspath(folder)
    except FileNotFoundError:  # of a relative one
        raise Refused(
            "the directory this was started from no longer exists, and the folder to ship is named from there",
            "Change to another directory, or give an absolute one: `--workdir DIR`.",
        ) from None
    if not os.path.isdir(place):
        what = "is not a folder" if os.path.lexists(place) else "does not exist"
        raise Refused(f"the folder to ship {what}: {place}", "Give a folder of this machine: `--workdir DIR`.")
    found = contents(place)
    total_bytes = sum(item.size_bytes for item in found.items)
    if total_bytes > limit_bytes:
        raise _too_large(place, found.items, total_bytes, limit_bytes)
    if not found.items:
        raise Refused(
            f"there is nothing to ship in {place}",
            f"Look at what {NAME} and .gitignore leave of it; a job without --workdir starts in an empty folder.",
        )
    return _packed(place, found, total_bytes, on_progress)


def _packed(place: str, found: Contents, total_bytes: int, on_progress: Progress) -> Packed:
    archive = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - it lives as long as `Packed`
    try:
        hashed = _Hashed(archive)
        done_bytes = 0
        with (
            gzip.GzipFile(filename="", mode="wb", compresslevel=LEVEL, fileobj=hashed, mtime=0) as plain,
            tarfile.open(
                fileobj=plain, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8", errors="surrogateescape"
            ) as tar,
        ):
            for item in found.items:
                _add(tar, place, item)
                done_bytes += item.size_bytes
                on_progress(done_bytes, total_bytes)
        files = sum(item.kind is not Kind.FOLDER for item in found.items)
        return Packed(hashed.digest, hashed.size_bytes, total_bytes, files, archive, found.notes)
    except BaseException:
        archive.close()
        raise


def _add(tar: tarfile.TarFile, place: str, item: Item) -> None:
    member = tarfile.TarInfo(os.fsencode(item.name).decode("utf-8", "surrogateescape"))
    member.mtime = EPOCH_S
    member.mode = 0o755 if item.is_program or item.kind is Kind.FOLDER else 0o644
    if item.kind is Kind.FOLDER:
        member.type = tarfile.DIRTYPE
        tar.addfile(member)
    elif item.kind is Kind.LINK:
        member.type, member.mode = tarfile.SYMTYPE, 0o755
        member.linkname = os.fsencode(item.target).decode("utf-8", "surrogateescape")
        tar.addfile(member)
    else:
        member.size = item.size_bytes
        _add_file(tar, member, os.path.join(place, item.name), item)


def _add_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, item: Item) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise _changed(path, "it is gone") from None
    except OSError as failed:
        raise Refused(
            f"{path!r} cannot be read: {failed.strerror or failed}", f"Make it readable, or name it in {NAME}."
        ) from failed
    with os.fdopen(descriptor, "rb") as file:
        _unchanged(path, item, os.fstat(descriptor))
        tar.addfile(member, _Steady(path, file))
        _unchanged(path, item, os.fstat(descriptor))


def _unchanged(path: str, item: Item, now: os.stat_result) -> None:
    if now.st_size != item.size_bytes:
        raise _changed(path, f"{item.size_bytes} bytes before, {now.st_size} now")
    if now.st_mtime_ns != item.mtime_ns:
        raise _changed(path, "it was written to")


def _changed(path: str, how: str) -> Refused:
    return Refused(
        f"{path!r} changed while it was packed: {how}",
        f"Repeat the command when nothing writes there, or name it in {NAME}.",
        code="BUNDLE_CHANGED",
    )


class _Steady:
    """A file of which as much comes as was said."""

    def __init__(self, path: str, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        piece = self._file.read(size)
        if len(piece) < size:
            raise _changed(self._path, "it became shorter")
        return piece


class _Hashed:
    """Counts and digests what is written on its way to `file`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._seen = hashlib.sha256()
        self.size_bytes = 0

    @property
    def digest(self) -> str:
        return self._seen.hexdigest()

    def write(self, piece: bytes) -> int:
        self._seen.update(piece)
        self.size_bytes += len(piece)
        return self._file.write(piece)

    def flush(self) -> None:
        self._file.flush()


def _too_large(place: str, items: Sequence[Item], total_bytes: int, limit_bytes: int) -> Refused:
    below: dict[str, int] = {}
    for item in items:
        top, is_below, _ = item.name.partition("/")
        if is_below:
            below[top] = below.get(top, 0) + item.size_bytes
    most = max(below, key=lambda top: below[top], default="")
    where = f"; {words(below[most])} of it lie below {most!r}" if most and below[most] * 4 > total_bytes else ""
    largest = nlargest(LARGEST_NAMED, items, key=lambda item: item.size_bytes)
    return Refused(
        f"{place} holds {words(total_bytes)} in {len(items):,} files, "
        f"and a bundle may hold {words(limit_bytes)}{where}. The largest:",
        f"Name what is not needed in a file {NAME} there (written like a .gitignore), or raise STADO_BUNDLE_MAX.",
        detail={item.name: words(item.size_bytes) for item in largest},
        code="BUNDLE_TOO_LARGE",
    )
