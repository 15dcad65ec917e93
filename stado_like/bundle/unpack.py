"""An archive into a folder, on a machine that does not trust it: whoever may write to the bucket may have made it.

Not obvious because each protection that a library offers has had its hole. So nothing here rests on checking a path
and then following it: a member is a plain file, a link or a folder, by its own name, below folders that this made
itself; files are created and never opened when there, and no member lies below a link. Links are made last, when
nothing is written any more, and each is followed to its end then. tarfile's own filter is asked as well.

What is counted is what came out of the decompressor, not what a header says; a header that wants more memory than any
real one is refused before it is read.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import posixpath
import shutil
import struct
import tarfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from stado_like.bundle.limits import MOST_BYTES, MOST_MEMBERS, PIECE_BYTES, words
from stado_like.errors import Refused

HEADER_MOST_BYTES = 1 << 20
HEADERS_BYTES = 4096  # of one member, at the most, with a name of 1,024 bytes
NAME_MOST_BYTES = 4096
COPIED_AT_ONCE = 1 << 16
LOOKS_EVERY = 200

StopAsked = Callable[[], bool]


class BadArchive(Refused):
    """It cannot be laid out, or must not be."""

    code = "BUNDLE_REFUSED"


class Stopped(Exception):
    """Nobody wants the folder any more."""


def unpack(
    archive: BinaryIO,
    target: Path,
    *,
    most_bytes: int = MOST_BYTES,
    most_members: int = MOST_MEMBERS,
    stop_asked: StopAsked = lambda: False,
) -> int:
    """Lay out `archive` in `target`, a folder that is empty or not there; returns how many members. Whatever goes
    wrong, nothing of it is left, and nothing was written elsewhere.

    Raises `BadArchive`; `Stopped` when `stop_asked` said so; OSError, which is the machine's own trouble.
    """
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty")
    try:
        return _Laying(target, most_bytes, most_members, stop_asked).lay(archive)
    except BaseException:
        _empty(target)
        raise


def _empty(target: Path) -> None:
    with suppress(OSError):  # the error that is on its way says more
        for entry in list(os.scandir(target)):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)


class _Laying:
    def __init__(self, target: Path, most_bytes: int, most_members: int, stop_asked: StopAsked) -> None:
        self._target = os.path.realpath(target)
        self._most_bytes = most_bytes
        self._most_members = most_members
        self._stop_asked = stop_asked
        self._folders = {""}
        self._others: set[str] = set()
        self._links: list[tuple[str, str]] = []
        self._bytes = 0

    def lay(self, archive: BinaryIO) -> int:
        members = 0
        archive.seek(0)
        stream = _Bounded(archive, self._most_bytes + self._most_members * HEADERS_BYTES)
        try:
            with tarfile.open(
                fileobj=stream,
                mode="r:",
                encoding="utf-8",
                errors="surrogateescape",
                errorlevel=2,
            ) as tar:
                while (member := _next(tar, stream)) is not None:
                    members += 1
                    if members > self._most_members:
                        raise BadArchive(f"it has more than {self._most_members} members")
                    if members % LOOKS_EVERY == 0 and self._stop_asked():
                        raise Stopped
                    stream.left = member.size + 2 * tarfile.BLOCKSIZE
                    self._member(tar, member)
                stream.left = HEADER_MOST_BYTES
                while stream.read(COPIED_AT_ONCE):  # to the checksum of the compression, which stands at its end
                    pass
        except _UNREADABLE as bad:
            raise BadArchive(f"it is no archive that can be read: {type(bad).__name__}: {bad}") from bad
        except OSError as trouble:
            if trouble.errno not in _ITS_OWN:
                raise
            raise BadArchive(f"a name in it cannot be one here: {trouble.strerror}") from trouble
        for name, to in self._links:
            os.symlink(os.fsencode(to), self._at(name))
        for name, to in self._links:
            if not _inside(os.path.realpath(self._at(name)), os.fsencode(self._target)):
                raise BadArchive(f"{name!a} is a link that leaves the folder, to {to[:200]!a}")
        return members

    def _member(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = self._checked_name(member)
        if member.mode & 0o7000:
            raise BadArchive(f"{name!a} has mode {member.mode:o}: setuid, setgid and sticky files are not laid out")
        if member.issparse():
            raise BadArchive(f"{name!a} is a sparse file")
        if member.type == tarfile.DIRTYPE:
            self._folder(name)
        elif member.type in (tarfile.REGTYPE, tarfile.AREGTYPE):
            self._new(name)
            self._file(tar, member, name)
        elif member.type == tarfile.SYMTYPE:
            self._new(name)
            self._link(tar, member, name)
        else:
            raise BadArchive(
                f"{name!a} is {_KINDS.get(member.type, 'of an unknown kind')}: only files, folders and links"
            )

    def _checked_name(self, member: tarfile.TarInfo) -> str:
        name = member.name
        parts = name.split("/")
        if not name or name.startswith("/") or "\0" in name or any(part in ("", ".", "..") for part in parts):
            raise BadArchive(f"{name[:200]!a} is no path inside the folder")
        if len(name.encode("utf-8", "surrogateescape")) > NAME_MOST_BYTES:
            raise BadArchive(f"{name[:60]!a}… is a path of {len(name)} characters")
        return name

    def _new(self, name: str) -> None:
        if name in self._folders or name in self._others:
            raise BadArchive(f"{name!a} is there twice")
        self._folder(name.rpartition("/")[0])
        self._others.add(name)

    def _folder(self, name: str) -> None:
        """It and every folder above: made here, hence real."""
        if name in self._folders:
            return
        if name in self._others:
            raise BadArchive(f"{name!a} is a file or a link, and the folder of others")
        self._folder(name.rpartition("/")[0])
        if len(self._folders) > self._most_members:
            raise BadArchive(f"it has more than {self._most_members} folders")
        os.mkdir(self._at(name), 0o755)
        self._folders.add(name)

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        self._second_opinion(member, name)
        self._bytes += member.size
        if self._bytes > self._most_bytes:
            raise BadArchive(
                f"it unpacks to more than {words(self._most_bytes)}, the most on this machine (setting bundle_max)"
            )
        source = tar.extractfile(member)
        assert source is not None
        mode = 0o755 if member.mode & 0o100 else 0o644
        descriptor = os.open(self._at(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            left, since_look = member.size, 0
            while left:
                piece = source.read(min(left, COPIED_AT_ONCE))
                if not piece:
                    raise BadArchive(f"{name!a} is cut short")
                rest = memoryview(piece)
                while rest:
                    rest = rest[file.write(rest) :]
                left -= len(piece)
                since_look += len(piece)
                if since_look >= PIECE_BYTES:
                    since_look = 0
                    if self._stop_asked():
                        raise Stopped

    def _link(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        to = member.linkname
        if not to or "\0" in to or len(to) > NAME_MOST_BYTES or leaves(name, to):
            raise BadArchive(f"{name!a} is a link that leaves the folder, to {to[:200]!a}")
        self._second_opinion(member, name)
        self._links.append((name, to))

    def _second_opinion(self, member: tarfile.TarInfo, name: str) -> None:
        """The library's own filter, where this Python has it (3.11.4 and later)."""
        data_filter = getattr(tarfile, "data_filter", None)
        if data_filter is None:
            return
        try:
            data_filter(member, self._target)
        except tarfile.TarError as refused:
            raise BadArchive(f"{name!a} is refused: {refused}") from refused

    def _at(self, name: str) -> bytes:
        """The name's bytes are the archive's, whatever this process takes file names for."""
        return os.path.join(os.fsencode(self._target), name.encode("utf-8", "surrogateescape"))


_UNREADABLE = (
    tarfile.TarError, gzip.BadGzipFile, zlib.error, struct.error, EOFError,
    ValueError, LookupError, ArithmeticError, RecursionError,
)  # fmt: skip
_ITS_OWN = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EEXIST, errno.ENOTDIR})
"""What a name can cause that is fine on another file system; all else is this machine's trouble."""
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a fifo",
    tarfile.CONTTYPE: "a contiguous file",
}


def leaves(name: str, to: str) -> bool:
    """Whether a link `name` to `to` leads out by its words alone. (Whether it does by way of others is asked when all
    are made.)"""
    return to.startswith("/") or posixpath.normpath(posixpath.join(posixpath.dirname(name), to)).split("/")[0] == ".."


def _inside(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")


def _next(tar: tarfile.TarFile, stream: _Bounded) -> tarfile.TarInfo | None:
    stream.left = HEADER_MOST_BYTES
    member = tar.next()
    tar.members.clear()  # type: ignore[attr-defined]  # a list of all of them would grow for nothing
    return member


class _Bounded(io.RawIOBase):
    """What comes out of the decompressor, forwards only: no more of it than `most_bytes`, and no more than `left` until
    somebody allows more. A header that claims a gigabyte is one of the ways to fill a machine's memory."""

    def __init__(self, archive: BinaryIO, most_bytes: int) -> None:
        self._plain = gzip.GzipFile(fileobj=archive, mode="rb")
        self._most_bytes = most_bytes
        self._at = 0
        self.left = HEADER_MOST_BYTES

    def tell(self) -> int:
        return self._at

    def seek(self, to: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET or to < self._at:
            raise BadArchive("it cannot be read from its beginning to its end")
        while self._at < to:
            if not self.read(min(COPIED_AT_ONCE, to - self._at)):
                break
        return self._at

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.left:
            raise BadArchive(f"it has more than {words(HEADER_MOST_BYTES)} that belong to no file")
        self.left -= size
        piece = self._plain.read(size)
        self._at += len(piece)
        if self._at > self._most_bytes:
            raise BadArchive(f"it unpacks to more than {words(self._most_bytes)}")
        return piece
