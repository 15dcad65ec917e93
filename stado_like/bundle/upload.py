"""A bundle on its way to the store, before the job that names it.

Not obvious because a bundle belongs to nobody: it lies there under its digest for every job that has the same files,
and whoever cleans up takes what no job names and what is older than a week. Between "it is there already" and the
creation of `jobs/…` it could be taken. So one that is older than a day is put again, with the same bytes, which makes
it young: a cleaner that looked before sees that now, with the look that it owes right before it deletes.

One request carries the whole archive, from a file; nothing of it is held in memory.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from typing import BinaryIO, cast

from stado_like.ambient import REAL, Ambient
from stado_like.bundle.archive import Packed, Progress, unwatched
from stado_like.bundle.limits import PIECE_BYTES, short
from stado_like.errors import NotFound, Refused, StoreUnavailable
from stado_like.job import keys
from stado_like.store.protocol import Applied, ObjectStore, Stat, Unknown

OLD_S = 86_400.0
TRIES = 4
WAIT_FIRST_S = 0.5


def upload(store: ObjectStore, packed: Packed, on_progress: Progress = unwatched, *, ambient: Ambient = REAL) -> bool:
    """Make sure that the store holds `packed`, and for another day at least. Returns whether it was sent.

    Raises `StoreUnavailable` after a few tries; the same call can be repeated.
    """
    stat = store.head(keys.bundle(packed.digest))
    if stat is not None and stat.size_bytes == packed.size_bytes and not _is_old(stat):
        return False
    _put(store, packed.digest, packed.archive, packed.size_bytes, on_progress, ambient)
    return True


def keep(store: ObjectStore, digest: str, on_progress: Progress = unwatched, *, ambient: Ambient = REAL) -> None:
    """For a job that names a bundle whose files are not at hand: it is there, and for another day at least.

    Raises `NotFound` when it is gone.
    """
    stat = look(store, digest)
    if not _is_old(stat):
        return
    with tempfile.TemporaryFile("w+b") as file:
        archive = cast(BinaryIO, file)
        _fetch(store, digest, stat.size_bytes, archive)
        _put(store, digest, archive, stat.size_bytes, on_progress, ambient)


def look(store: ObjectStore, digest: str) -> Stat:
    """Raises `NotFound` when it is gone."""
    stat = store.head(keys.bundle(digest))
    if stat is None:
        raise _gone(digest)
    return stat


def _is_old(stat: Stat) -> bool:
    return stat.now - stat.last_modified > OLD_S


def _gone(digest: str) -> NotFound:
    return NotFound(
        f"bundle {short(digest)} is not in the store any more, and a job that names it could not start",
        "Submit again with --workdir DIR, from the folder that it was made of.",
        code="BUNDLE_MISSING",
    )


def _fetch(store: ObjectStore, digest: str, size_bytes: int, archive: BinaryIO) -> None:
    seen = hashlib.sha256()
    for start in range(0, size_bytes, PIECE_BYTES):
        piece = store.get_range(keys.bundle(digest), start, min(PIECE_BYTES, size_bytes - start))
        if piece is None:
            raise _gone(digest)
        seen.update(piece)
        archive.write(piece)
    if seen.hexdigest() != digest:
        raise Refused(
            f"bundle {short(digest)} in the store is not what its name says",
            f"Remove it (`stado storage rm {keys.bundle(digest)}`) and submit again with --workdir DIR.",
            code="BUNDLE_REFUSED",
        )


def _put(
    store: ObjectStore, digest: str, archive: BinaryIO, size_bytes: int, on_progress: Progress, ambient: Ambient
) -> None:
    """Idempotent, so sent again when the answer was lost."""
    wait_s = WAIT_FIRST_S
    why = ""
    for left in reversed(range(TRIES)):
        watched = _Watched(archive, lambda done: on_progress(done, size_bytes))
        answer = store.put_file(keys.bundle(digest), cast(BinaryIO, watched))
        if isinstance(answer, Applied):
            return
        why = answer.why if isinstance(answer, Unknown) else "refused"
        asked_s = answer.retry_after_s if isinstance(answer, Unknown) else 0.0
        if left:
            ambient.sleep(max(asked_s, ambient.uniform(wait_s / 2, wait_s)))
            wait_s *= 2
    raise StoreUnavailable(
        f"bundle {short(digest)} could not be sent in {TRIES} tries; last: {why}",
        "Nothing was submitted; the same command can be repeated.",
    )


class _Watched:
    """A file that tells how far it was read. A client that signs what it sends reads it twice, so it may begin
    again."""

    def __init__(self, file: BinaryIO, tell: Callable[[int], None]) -> None:
        self._file = file
        self._tell = tell

    def read(self, size: int = -1, /) -> bytes:
        piece = self._file.read(size)
        self._tell(self._file.tell())
        return piece

    def seek(self, to: int, whence: int = 0, /) -> int:
        return self._file.seek(to, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True
