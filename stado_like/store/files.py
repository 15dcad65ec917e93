"""A file as an object: its bytes and the time beside them, what names its content, what counts as absent, and a lock.

Not obvious because a directory is shared: with programs that leave fifos and folders where an object is looked for,
with other hosts that remove a file under an open handle, and with writers that must exclude each other.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Callable
from typing import BinaryIO, TypeVar

from stado_like.ambient import Ambient

LARGE_BYTES = 1 << 20  # above, an etag is the file's identity: hashing gigabytes for a HEAD helps nobody
LOCK_AGAIN_S = 0.002
ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP})
_READ = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)  # a foreign fifo must not hang us
_LOCK = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
T = TypeVar("T")


def identity(seen: os.stat_result) -> str:
    return f"{seen.st_ino:x}-{seen.st_mtime_ns:x}-{seen.st_size:x}"


def etag_of(body: bytes | BinaryIO, seen: os.stat_result) -> str:
    if seen.st_size > LARGE_BYTES:
        return identity(seen)
    if not isinstance(body, bytes):
        body.seek(0)
        body = body.read()
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def named(failed: OSError, what: str) -> str:
    name = errno.errorcode.get(failed.errno or 0, "OSError")
    return f"{what}: {failed.strerror or failed} ({name})"


def read(path: str, start: int = 0, most_bytes: int | None = None) -> tuple[bytes, os.stat_result] | None:
    try:
        descriptor = os.open(path, _READ)
    except OSError as failed:
        if failed.errno in ABSENT:
            return None
        raise
    try:
        seen = os.fstat(descriptor)
        if (seen.st_mode & 0o170000) != 0o100000:
            return None  # a directory, a socket, a fifo: no object
        if start:
            os.lseek(descriptor, start, os.SEEK_SET)
        wanted = max(0, seen.st_size - start if most_bytes is None else min(most_bytes, seen.st_size - start))
        body = os.read(descriptor, wanted + 1 if most_bytes is None else wanted)
        while len(body) < wanted:
            more = os.read(descriptor, wanted - len(body))
            if not more:
                break
            body += more
        return body, seen
    finally:
        os.close(descriptor)


def again_if_stale(step: Callable[[], T]) -> T:
    """A network disk invalidates a handle when another host removed the file: opened afresh, once."""
    try:
        return step()
    except OSError as failed:
        if failed.errno != errno.ESTALE:
            raise
    return step()


def locked(path: str, ambient: Ambient, within_s: float) -> int:
    """A descriptor that holds the lock of the file `path` until it is closed. Opened anew each time: threads and forked
    children that shared one would not exclude each other. (The same lock as `filelock` takes, at a tenth of its cost,
    which was a fifth of a submit's.) Raises TimeoutError, FileNotFoundError where its folder is not there."""
    descriptor = os.open(path, _LOCK, 0o666)
    deadline_s = ambient.boot_s() + within_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if ambient.boot_s() < deadline_s:
                ambient.sleep(LOCK_AGAIN_S)
                continue
            os.close(descriptor)
            raise TimeoutError from None
        except OSError:
            os.close(descriptor)
            raise
