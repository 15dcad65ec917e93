"""From a directory that a program writes to, to a checkpoint that holds only what stood still.

    scan  →  read what changed, send what the store lacks  →  scan again: the same?  →  manifest  →  older ones go

Not obvious because nobody stops the program meanwhile. A file is read only a moment after it was last written to, and
counts only if it looks the same afterwards and what was sent is what was read before. When a second scan finds
the whole directory as it was, the checkpoint is that very moment; after a few tries without such luck (a program that
writes all the time) it is put together of files each of which stood still when it was read: one that never did is there
as it was in the checkpoint before, or comes with the next.

Whether a file changed is asked of its size, times and inode; its content decides what is sent. Small files travel
together, large ones in parts: a hundred thousand small requests cost more than the bytes, a part is sent again by
itself, and each that arrives is a sign of life.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BytesIO
from typing import BinaryIO, cast

from stado_like.bucket import checkpoints
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.checkpoints import Held
from stado_like.errors import StoreUnavailable
from stado_like.job.checkpoint import Blob, Kept, Manifest, Piece, Ref
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.ids import AttemptId
from stado_like.store.protocol import Applied, Unknown
from stado_worker.checkpoints.restore import Restored
from stado_worker.checkpoints.scan import Seen, Tree, open_inner, scan, seen_of
from stado_worker.checkpoints.slices import Slice, digest_of
from stado_worker.shim.preparing import GivenUp, Pause

PASSES = 3
WAITS = 20
QUIET_S = 0.1
"""A file written to a moment ago may be written to again without its times showing it: clocks of file systems tick."""
TRIES = 4
WAIT_FIRST_S = 0.5
_MOVED = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO)


@dataclass(frozen=True, slots=True)
class Sizes:
    """`small`: up to here files share a blob of about `pack`. `part`: what a large file is cut into. `thin`: a shared
    blob of which less than this share is still in use is not kept for the rest."""

    small: int = 256 << 10
    pack: int = 8 << 20
    part: int = 64 << 20
    thin: float = 0.25


class _Changing(Exception):
    """The file is not what it was a moment ago."""


class Sender:
    """Saves one attempt's directory, round after round, and remembers what it knows of it and of the store."""

    def __init__(
        self,
        bucket: Bucket,
        shelf: Shelf,
        a: AttemptId,
        root: bytes,
        keep: int,
        pause: Pause,
        accepted: Callable[[], None] = lambda: None,
        sizes: Sizes | None = None,
    ) -> None:
        """`accepted` is told of each request that the store accepted."""
        self._bucket = bucket
        self._shelf = shelf
        self._a = a
        self._root = root
        self._keep = keep
        self._pause = pause
        self._accepted = accepted
        self._sizes = sizes or Sizes()
        self._files: dict[bytes, tuple[Seen, Kept]] = {}
        self._large: dict[str, Blob] = {}
        self._small: dict[tuple[str, int], Piece] = {}
        self._held = Held()
        self._known: dict[Ref, Manifest] = {}
        self._seq = 0
        self._waits = 0
        self._unreadable: dict[bytes, str] = {}
        self.published: Manifest | None = None
        """The newest complete checkpoint that the next one is compared with."""
        self.late: tuple[bytes, ...] = ()
        """Files that never stood still in the last round."""
        self.notes: tuple[str, ...] = ()

    def start_from(self, held: Held, restored: Restored | None) -> None:
        """What earlier attempts left, and what the directory was laid out from. Blobs are taken over only from the
        newest checkpoint of this task: what else lies there, an attempt that still runs may be removing."""
        self._held = held
        if restored is None or not restored.is_newest:
            return
        self.published = manifest = restored.manifest
        self._known[manifest.ref] = manifest
        self._files = {path: (restored.seen[path], kept) for path, kept in manifest.files.items()}
        for kept in manifest.files.values():
            self._remember(kept)

    def _remember(self, kept: Kept) -> None:
        if kept.digest:
            for piece in kept.pieces:
                self._small[kept.digest, kept.size_bytes] = piece
            return
        for piece in kept.pieces:
            self._large[piece.blob.digest] = piece.blob

    # ---- a round

    def save(self, *, still: bool = False) -> Ref | None:
        """One round: a checkpoint, or None when nothing changed. `still`: nobody writes there any more.

        Raises `StoreError`, OSError, `TooMany`, `GivenUp`; what was sent until then is not sent again.
        """
        self._unreadable.clear()
        self._waits = 0 if still else WAITS
        if not os.path.isdir(self._root):
            return None  # the program removed it: nothing to save, and no reason to forget what was
        tree = scan(self._root)
        taken: set[bytes] = set()
        for _ in range(PASSES):
            self._send_thin_again(tree)
            changed = self._changed(tree)
            # A large file that stood still once in this round was sent: not again for every word written since.
            wanted = {path: seen for path, seen in changed.items() if path not in taken}
            if not wanted:
                break
            self._wait_for_quiet(tree.newest_ns)
            taken |= self._take(wanted)
            again = scan(self._root)
            same = again == tree
            tree = again
            if same:
                break
        return self._finish(tree)

    def _wait_for_quiet(self, written_ns: int) -> bool:
        """False: it was written to a moment ago, and in this round such files were waited for often enough."""
        if self._bucket.ambient.wall_s() - written_ns / 1e9 >= QUIET_S:
            return True
        self._waits -= 1
        if self._waits > 0:
            self._rest(QUIET_S)
        return self._waits >= 0

    def _changed(self, tree: Tree) -> dict[bytes, Seen]:
        return {
            path: seen
            for path, seen in tree.files.items()
            if path not in self._unreadable and (path not in self._files or self._files[path][0] != seen)
        }

    def _finish(self, tree: Tree) -> Ref | None:
        made = self._manifest(tree)
        for path in [path for path in self._files if path not in tree.files]:
            del self._files[path]
        for path, why in self._unreadable.items():
            tree.passed.setdefault(why, []).append(path)
        self.notes = tree.notes
        empty = not (made.directories or made.links or made.files)
        if made.says == self.published.says if self.published is not None else empty:
            return None
        self._rest(0.0)
        checkpoints.publish(self._bucket, self._shelf, made)
        self._accepted()
        self._seq = made.ref.seq
        self.published = self._known[made.ref] = made
        self._held.manifests.add(made.ref)
        checkpoints.collect(self._bucket, self._shelf, self._a, self._held, self._known, self._keep)
        self._forget_what_went()
        return made.ref

    def _manifest(self, tree: Tree) -> Manifest:
        before = self.published.files if self.published is not None else {}
        files: dict[bytes, Kept] = {}
        late = []
        for path, seen in tree.files.items():
            if path in self._unreadable:
                continue
            known = self._files.get(path)
            if known is None or known[0] != seen:
                late.append(path)
            if known is not None:
                files[path] = known[1]  # as it was when it last stood still
            elif path in before:
                files[path] = before[path]
        self.late = tuple(late)
        ref = Ref(self._a.n, self._seq + 1)
        return Manifest(str(self._a), ref, self._bucket.now(), tree.directories, tree.links, files)

    def _forget_what_went(self) -> None:
        there = self._held.blobs
        self._large = {digest: blob for digest, blob in self._large.items() if (blob.n, digest) in there}
        self._small = {name: piece for name, piece in self._small.items() if (piece.blob.n, piece.blob.digest) in there}

    def _send_thin_again(self, tree: Tree) -> None:
        """Files of a shared blob of which little else is in use count as changed: the blob can go."""
        used: Counter[Blob] = Counter()
        sharing: dict[Blob, list[bytes]] = {}
        for path in tree.files:
            known = self._files.get(path)
            if known is not None and known[1].digest:
                for piece in known[1].pieces:
                    used[piece.blob] += piece.size_bytes
                    sharing.setdefault(piece.blob, []).append(path)
        for blob, paths in sharing.items():
            if used[blob] < blob.size_bytes * self._sizes.thin:
                for path in paths:
                    _, kept = self._files.pop(path)
                    self._small.pop((kept.digest, kept.size_bytes), None)

    # ---- reading and sending

    def _take(self, changed: dict[bytes, Seen]) -> set[bytes]:
        """Returns the large files that stood still."""
        self._bucket.now()  # the very first request of a process is bounded in time: not one that carries gigabytes
        pack = _Pack()
        large = set()
        for path, scanned in sorted(changed.items()):
            self._rest(0.0)
            try:
                with self._opened(path) as file:
                    seen = seen_of(os.fstat(file.fileno()))
                    if seen != scanned and not self._wait_for_quiet(seen.mtime_ns):
                        raise _Changing
                    if seen.size_bytes > self._sizes.small:
                        self._take_large(path, seen, file)
                        large.add(path)
                    else:
                        self._take_small(path, seen, file, pack)
            except _Changing:
                continue
            except PermissionError as refused:
                self._unreadable[path] = str(refused.strerror)
            if pack.size_bytes >= self._sizes.pack:
                pack = self._send_pack(pack)
        self._send_pack(pack)
        return large

    def _opened(self, path: bytes) -> BinaryIO:
        """What lies at `path` now, reached without following a link. Raises `_Changing`, OSError."""
        try:
            descriptor = open_inner(self._root, path)
        except OSError as moved:
            if moved.errno in _MOVED:
                raise _Changing from moved
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise _Changing
        return cast(BinaryIO, os.fdopen(descriptor, "rb", buffering=0))

    def _take_small(self, path: bytes, seen: Seen, file: BinaryIO, pack: _Pack) -> None:
        content = file.read(seen.size_bytes + 1)
        if len(content) != seen.size_bytes or not _stood_still(file, seen):
            raise _Changing
        digest = hashlib.sha256(content).hexdigest()
        known = self._small.get((digest, len(content)))
        if known is not None or not content:
            self._files[path] = (seen, _small(seen, digest, known))
        else:
            pack.add(path, seen, digest, content)

    def _send_pack(self, pack: _Pack) -> _Pack:
        if pack.contents:
            body = b"".join(pack.contents.values())
            blob = Blob(self._a.n, hashlib.sha256(body).hexdigest(), len(body))
            self._put(blob, cast(BinaryIO, BytesIO(body)))
            at = 0
            for digest, content in pack.contents.items():
                self._small[digest, len(content)] = Piece(blob, at, len(content))
                at += len(content)
            for path, (seen, digest) in pack.files.items():
                self._files[path] = (seen, _small(seen, digest, self._small[digest, seen.size_bytes]))
        return _Pack()

    def _take_large(self, path: bytes, seen: Seen, file: BinaryIO) -> None:
        pieces = []
        for start in range(0, seen.size_bytes, self._sizes.part):
            self._rest(0.0)
            size = min(self._sizes.part, seen.size_bytes - start)
            digest = digest_of(file, start, size)
            blob = self._large.get(digest)
            if blob is None or blob.size_bytes != size:
                if not digest or not _stood_still(file, seen):
                    raise _Changing
                blob = Blob(self._a.n, digest, size)
                self._send_part(blob, Slice(file, start, size))
            pieces.append(Piece(blob, 0, size))
        if not _stood_still(file, seen):
            raise _Changing
        self._files[path] = (seen, Kept(seen.mode, seen.mtime_ns, seen.size_bytes, "", tuple(pieces)))

    def _send_part(self, blob: Blob, part: Slice) -> None:
        self._put(blob, cast(BinaryIO, part))
        if part.sent != blob.digest:  # written to while it was sent: what lies there now is not what its name says
            self._bucket.drop(self._shelf.blob(blob.n, blob.digest))
            self._held.blobs.pop((blob.n, blob.digest), None)
            raise _Changing
        self._large[blob.digest] = blob

    def _put(self, blob: Blob, file: BinaryIO) -> None:
        """Idempotent, so sent again when the answer was lost."""
        key = self._shelf.blob(blob.n, blob.digest)
        wait_s = WAIT_FIRST_S
        why = ""
        for left in reversed(range(TRIES)):
            file.seek(0)
            answer = self._bucket.store.put_file(key, file)
            if isinstance(answer, Applied):
                self._held.blobs[blob.n, blob.digest] = blob.size_bytes
                self._accepted()
                return
            asked_s = answer.retry_after_s if isinstance(answer, Unknown) else 0.0
            why = answer.why if isinstance(answer, Unknown) else "refused"
            if left:
                self._rest(max(asked_s, wait_s))
                wait_s *= 2
        raise StoreUnavailable(
            f"a part of its checkpoint could not be sent in {TRIES} tries; last: {why}", "It is tried again later."
        )

    def _rest(self, seconds: float) -> None:
        if self._pause(seconds):
            raise GivenUp("nobody waits for this checkpoint any more")


def _stood_still(file: BinaryIO, seen: Seen) -> bool:
    """Whether an open file is as it was. One whose name was given to another meanwhile is: only its last link went."""
    found = os.fstat(file.fileno())
    now = seen_of(found)
    return now == seen or (found.st_nlink == 0 and now == replace(seen, ctime_ns=now.ctime_ns))


class _Pack:
    """Small files that travel together; equal ones once."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        self.files: dict[bytes, tuple[Seen, str]] = {}
        self.size_bytes = 0

    def add(self, path: bytes, seen: Seen, digest: str, content: bytes) -> None:
        self.files[path] = (seen, digest)
        if digest not in self.contents:
            self.contents[digest] = content
            self.size_bytes += len(content)


def _small(seen: Seen, digest: str, piece: Piece | None) -> Kept:
    return Kept(seen.mode, seen.mtime_ns, seen.size_bytes, digest, (piece,) if piece is not None else ())
