"""The newest complete checkpoint of a task's earlier attempts, laid out before the next one starts, on any machine.

Not obvious because what is newest may not be whole: a blob was lost, a manifest is damaged, an earlier attempt that
still runs somewhere is cleaning up. So each candidate, from the newest on, is checked against the store and its digests
while it is laid out; what fails is told in a note, and the next older one is taken. A store that does not answer is
waited for: it says nothing about a checkpoint. None left is a start without one, with a note.

What lies in the directory before (a bundle's own files there) goes when a checkpoint is laid out, for the checkpoint is
the whole directory; without a checkpoint it stays.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from stado_like.bucket import checkpoints
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.checkpoints import Held
from stado_like.bundle.limits import words
from stado_like.errors import BadRecord, StadoError, StoreUnavailable
from stado_like.job import reasons
from stado_like.job.checkpoint import Blob, Manifest, Piece, Ref
from stado_like.job.checkpoint_keys import Shelf
from stado_worker.checkpoints.scan import Seen, seen_of
from stado_worker.shim.preparing import GivenUp, Pause, Say

T = TypeVar("T")
PIECE_BYTES = 4 << 20
IN_MEMORY_BYTES = 16 << 20
"""Blobs up to here are read whole, checked, and then written to the files that share them."""
WAIT_FIRST_S = 0.5
WAIT_MOST_S = 30.0


class Damaged(StadoError):
    """It cannot be laid out as it was. The message says why."""

    code = "CHECKPOINT_DAMAGED"


@dataclass(frozen=True, slots=True)
class Restored:
    """`seen`: the files as they lie there now. `is_newest`: of this task's own checkpoints, none newer was passed
    over."""

    manifest: Manifest
    seen: dict[bytes, Seen]
    is_newest: bool


class Restoring:
    def __init__(self, bucket: Bucket, root: bytes, say: Say, pause: Pause) -> None:
        self._bucket = bucket
        self._root = root
        self._say = say
        self._pause = pause
        self.notes: list[str] = []
        self.held = Held()
        """What the last listing showed."""

    def newest(self, shelf: Shelf, *, before: int | None, own: bool = True) -> Restored | None:
        """Lay out the newest complete checkpoint of attempts below `before` (None: of all). `own`: they are of the same
        task. None: there is none that could be. Raises `GivenUp`, `StoreError` that is no outage, and OSError: this
        machine's own trouble."""
        tried: set[Ref] = set()
        while True:
            self.held = self.ask(
                lambda: checkpoints.held(self._bucket, shelf, before=before), reasons.LOOKING_FOR_CHECKPOINT
            )
            left = [ref for ref in self.held.newest_first if ref not in tried]
            if not left:
                return None
            ref = left[0]
            try:
                manifest, seen = self._restore(shelf, ref)
            except (Damaged, BadRecord) as bad:
                tried.add(ref)
                self.notes.append(f"{ref} was not restored: {bad.message}")
                clear(self._root)
            else:
                return Restored(manifest, seen, is_newest=own and not tried)

    def _restore(self, shelf: Shelf, ref: Ref) -> tuple[Manifest, dict[bytes, Seen]]:
        goes_on = reasons.LOOKING_FOR_CHECKPOINT
        manifest = self.ask(lambda: checkpoints.read(self._bucket, shelf, ref), goes_on)
        if manifest is None:
            raise Damaged("it was removed a moment ago")
        lacks = self.held.lacks(manifest)
        if lacks:  # a listing is a hint: asked by name
            lacks = self.ask(lambda: checkpoints.missing(self._bucket, shelf, lacks), goes_on)
        if lacks:
            raise Damaged(f"{len(lacks)} of the {len(manifest.blobs)} objects that it is made of are not in the store")
        telling = reasons.restoring(str(ref), words(manifest.size_bytes))
        self._say(telling)
        clear(self._root)
        laying = _LayingOut(self._root, manifest, lambda blob: self._pieces(shelf, blob, telling))
        return manifest, laying.run()

    def _pieces(self, shelf: Shelf, blob: Blob, telling: str) -> Iterator[bytes]:
        """The bytes of a blob, which are what its name says once the last one was taken. Raises `Damaged`."""
        key, found, at = shelf.blob(blob.n, blob.digest), hashlib.sha256(), 0
        while at < blob.size_bytes:
            piece = self.ask(self._reader(key, at, min(PIECE_BYTES, blob.size_bytes - at)), telling)
            if not piece:
                raise Damaged(f"{key} is gone, or ends after {at} of {blob.size_bytes} bytes")
            found.update(piece)
            at += len(piece)
            yield piece
        if found.hexdigest() != blob.digest:
            raise Damaged(f"{key} is not what its name says")

    def _reader(self, key: str, at: int, size_bytes: int) -> Callable[[], bytes | None]:
        return lambda: self._bucket.store.get_range(key, at, size_bytes)

    def ask(self, ask: Callable[[], T], goes_on: str = reasons.LOOKING_FOR_CHECKPOINT) -> T:
        """Until the store answers; then it is said that it goes on."""
        wait_s = WAIT_FIRST_S
        while True:
            self._rest(0.0)
            try:
                answer = ask()
                if wait_s > WAIT_FIRST_S:
                    self._say(goes_on)
                return answer
            except StoreUnavailable as away:
                self._say(reasons.checkpoint_waits(away.message))
            self._rest(wait_s)
            wait_s = min(2 * wait_s, WAIT_MOST_S)

    def _rest(self, seconds: float) -> None:
        if self._pause(seconds):
            raise GivenUp("the checkpoint is not wanted any more")


class _LayingOut:
    """Directories first, then the bytes blob by blob, then links: until the last file is written, none is there that a
    write could follow. The manifest was judged when it was read (`job/checkpoint`)."""

    def __init__(self, root: bytes, manifest: Manifest, pieces: Callable[[Blob], Iterator[bytes]]) -> None:
        self._root = root
        self._manifest = manifest
        self._pieces = pieces

    def run(self) -> dict[bytes, Seen]:
        for path in sorted(self._manifest.directories):
            os.mkdir(self._at(path), 0o700)
        wanted: dict[Blob, list[tuple[bytes, int, Piece]]] = {}
        for path, kept in self._manifest.files.items():
            with self._new(path):
                at = 0
                for piece in kept.pieces:
                    wanted.setdefault(piece.blob, []).append((path, at, piece))
                    at += piece.size_bytes
        for blob, places in wanted.items():
            if blob.size_bytes <= IN_MEMORY_BYTES:
                self._share_out(blob, places)
            else:
                for path, at, piece in places:
                    self._stream(blob, path, at, piece)
        seen = {path: self._settle(path) for path in self._manifest.files}
        for path, target in self._manifest.links.items():
            os.symlink(target, self._at(path))
        for path, mode in sorted(self._manifest.directories.items(), reverse=True):
            os.chmod(self._at(path), mode)
        return seen

    def _at(self, path: bytes) -> bytes:
        return os.path.join(self._root, path)

    def _new(self, path: bytes) -> BinaryIO:
        return self._open(path, os.O_CREAT | os.O_EXCL)

    def _open(self, path: bytes, flags: int = 0) -> BinaryIO:
        descriptor = os.open(self._at(path), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o600)
        return os.fdopen(descriptor, "wb", buffering=0)

    def _share_out(self, blob: Blob, places: list[tuple[bytes, int, Piece]]) -> None:
        body = memoryview(b"".join(self._pieces(blob)))
        for path, at, piece in places:
            with self._open(path) as file:
                _write(file, at, body[piece.offset : piece.offset + piece.size_bytes])

    def _stream(self, blob: Blob, path: bytes, at: int, piece: Piece) -> None:
        if (piece.offset, piece.size_bytes) != (0, blob.size_bytes):
            raise Damaged(f"it takes a part of an object of {blob.size_bytes} bytes; those are taken whole")
        with self._open(path) as file, closing(self._pieces(blob)) as pieces:  # type: ignore[type-var]
            for body in pieces:
                at = _write(file, at, memoryview(body))

    def _settle(self, path: bytes) -> Seen:
        kept, place = self._manifest.files[path], self._at(path)
        os.chmod(place, kept.mode)
        os.utime(place, ns=(kept.mtime_ns, kept.mtime_ns))
        return seen_of(os.lstat(place))


def _write(file: BinaryIO, at: int, body: memoryview) -> int:
    while body:
        done = os.pwrite(file.fileno(), body, at)
        body, at = body[done:], at + done
    return at


def clear(root: bytes) -> None:
    """Remove what lies in the directory, and follow no link."""
    with os.scandir(root) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
