"""A job's folder, laid out for one attempt: fetched once for a machine's worker, unpacked afresh each time.

Not obvious because several supervisors do this at once, none of them may wait for ever, and what came over the network
is not trusted. An archive is kept in the worker's cache under its own digest: it gets that name by a rename when it is
whole and its digest right, and is checked again whenever it is used, so that a disk that lost a bit costs a download
and not a wrong run. A lock per digest saves the second of two supervisors the download; it is not what makes it right.

The cache is bounded: before a download, what was longest unused goes. Whoever has a file open keeps it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from stado_like import config
from stado_like.bucket.bucket import Bucket
from stado_like.bundle.limits import CACHE_BYTES, ENVELOPE_BYTES, MOST_BYTES, PIECE_BYTES, short, words
from stado_like.bundle.unpack import BadArchive, Stopped, unpack
from stado_like.errors import NotFound, Refused, StoreUnavailable
from stado_like.job import keys
from stado_like.store.protocol import Stat
from stado_worker.shim.preparing import CouldNotPrepare, GivenUp, Pause, Say

T = TypeVar("T")
WAIT_FIRST_S = 0.5
WAIT_MOST_S = 30.0
LOCK_LOOK_S = 0.1
LEFT_BEHIND_S = 86_400.0
"""A part file that nobody wrote to for so long belongs to a supervisor that died."""


class BundleMissing(NotFound):
    """It is not in the store, hence nowhere: another attempt finds nothing either, and none of them is to blame."""

    code = "BUNDLE_MISSING"


class BundleRefused(CouldNotPrepare):
    """What lies there must not be laid out, or is not what its name says."""

    code = "BUNDLE_REFUSED"


@dataclass(frozen=True, slots=True)
class Room:
    """`most_bytes`: what one bundle may unpack to. `cache_bytes`: what archives of a worker may hold together."""

    most_bytes: int
    cache_bytes: int

    @classmethod
    def here(cls) -> Room:
        """By this machine's settings. Of a file that was broken since the worker started, the defaults: no job is to
        blame for it."""
        try:
            settings = config.load()
        except Refused:
            return cls(MOST_BYTES, CACHE_BYTES)
        return cls(settings.bundle_max, settings.bundle_cache)


def lay_out(
    bucket: Bucket, digest: str, cache: Path, target: Path, say: Say, pause: Pause, *, room: Room | None = None
) -> None:
    """Lay out the bundle `digest` in `target` (not there yet, or empty), by way of `cache`, a folder of this worker.

    Waits for a store that does not answer until `pause` says to give up. Raises `BundleMissing`, `BundleRefused`,
    `GivenUp`, a `StoreError` that is no outage, or OSError: this machine's own trouble (a full disk). Whatever it
    raises, nothing of the bundle is left in `target`.
    """
    room = room or Room.here()
    fetching = _Fetching(bucket, digest, _Cache(cache, bucket), say, pause, room)
    with fetching.opened() as archive:
        try:
            unpack(archive, target, most_bytes=room.most_bytes, stop_asked=lambda: pause(0.0))
        except BadArchive as bad:
            raise BundleRefused(f"Bundle {short(digest)} was not laid out: {bad.message}") from bad
        except Stopped:
            raise GivenUp(f"bundle {short(digest)} is not wanted any more") from None


class _Cache:
    """Archives of one worker by digest. `used` is a file's modification time: access times are often not kept."""

    def __init__(self, path: Path, bucket: Bucket) -> None:
        self.path = path
        self._ambient = bucket.ambient
        path.mkdir(parents=True, exist_ok=True)

    def open(self, digest: str) -> BinaryIO | None:
        """The archive, when it is there and is what its name says. One that is not is dropped."""
        path = self.path / digest
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            file.close()
            path.unlink(missing_ok=True)
            return None
        with suppress(OSError):  # a full or read-only disk: it may go earlier than it should
            os.utime(path)
        file.seek(0)
        return file

    def part(self) -> Path:
        return self.path / f".part.{self._ambient.pid}.{self._ambient.token()}"

    def keep(self, part: Path, digest: str) -> None:
        os.replace(part, self.path / digest)

    def make_room(self, wanted_bytes: int, bound_bytes: int) -> bool:
        """Let go of what was longest unused until `wanted_bytes` more fit. False: they never do."""
        held: list[tuple[float, int, Path]] = []
        newest = 0.0
        for path in self.path.iterdir():
            try:
                seen = path.stat()
            except FileNotFoundError:
                continue  # another supervisor let it go
            newest = max(newest, seen.st_mtime)
            if len(path.name) == 64 or path.name.startswith(".part."):
                held.append((seen.st_mtime, seen.st_size, path))
        for used_at, _, path in held:
            if path.name.startswith(".part.") and newest - used_at > LEFT_BEHIND_S:
                path.unlink(missing_ok=True)
        kept = sorted(one for one in held if len(one[2].name) == 64)
        total = sum(size for _, size, _ in kept)
        for _, size, path in kept:
            if total + wanted_bytes <= bound_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size
        return wanted_bytes <= bound_bytes

    def lock(self, digest: str) -> int | None:
        """A descriptor that holds the lock of this digest; None: another has it. A few hundred lock files at the most,
        and they stay: to remove one under its holder would let two hold it."""
        descriptor = os.open(self.path / f".lock.{digest[:2]}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


@dataclass(frozen=True, slots=True)
class _Fetching:
    bucket: Bucket
    digest: str
    cache: _Cache
    say: Say
    pause: Pause
    room: Room

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        file = self.cache.open(self.digest) or self._fetched()
        try:
            yield file
        finally:
            file.close()

    def _fetched(self) -> BinaryIO:
        """Ask the store for it, one supervisor at a time for each digest."""
        lock = self._lock()
        try:
            return self.cache.open(self.digest) or self._download()  # another may have brought it meanwhile
        finally:
            os.close(lock)

    def _lock(self) -> int:
        said = False
        while (lock := self.cache.lock(self.digest)) is None:
            if not said:
                self.say(f"Waiting for {self._name}, which another task fetches")
                said = True
            self._rest(LOCK_LOOK_S)
        return lock

    def _download(self) -> BinaryIO:
        stat = self._look()
        most = self.room.most_bytes + ENVELOPE_BYTES
        if stat.size_bytes > most:
            raise BundleRefused(
                f"Bundle {short(self.digest)} has {words(stat.size_bytes)}, and this machine takes {words(most)} "
                "(setting bundle_max)"
            )
        self.say(self._fetching(stat.size_bytes))
        keeps = self.cache.make_room(stat.size_bytes, self.room.cache_bytes)
        part = self.cache.part()
        try:
            file = part.open("x+b")
            try:
                self._fill(file, stat.size_bytes)
                if keeps:
                    self.cache.keep(part, self.digest)
                file.seek(0)
                return file
            except BaseException:
                file.close()
                raise
        finally:
            part.unlink(missing_ok=True)

    def _fill(self, file: BinaryIO, size_bytes: int) -> None:
        seen = hashlib.sha256()
        at = 0
        while at < size_bytes:
            piece = self._piece(at, size_bytes)
            seen.update(piece)
            file.write(piece)
            at += len(piece)
            self._rest(0.0)
        file.flush()
        if seen.hexdigest() != self.digest:
            raise BundleRefused(
                f"Bundle {short(self.digest)} is not what its name says: {words(size_bytes)} came whose SHA-256 is "
                f"{short(seen.hexdigest())}…; remove {keys.bundle(self.digest)} from the store and submit again"
            )

    def _look(self) -> Stat:
        stat = self._patiently(lambda: self.bucket.store.head(keys.bundle(self.digest)), f"Looking for {self._name}")
        if stat is None:
            raise self._missing()
        return stat

    @property
    def _name(self) -> str:
        return f"the bundle {short(self.digest)}"

    def _fetching(self, size_bytes: int) -> str:
        return f"Fetching {self._name} ({words(size_bytes)})"

    def _piece(self, start: int, whole_bytes: int) -> bytes:
        key, wanted = keys.bundle(self.digest), min(PIECE_BYTES, whole_bytes - start)
        piece = self._patiently(lambda: self.bucket.store.get_range(key, start, wanted), self._fetching(whole_bytes))
        if not piece:
            raise self._missing()  # collected, or written anew by somebody else, while it was read
        return piece

    def _missing(self) -> BundleMissing:
        return BundleMissing(f"bundle {short(self.digest)} is not in the store: submit again with --workdir")

    def _patiently(self, ask: Callable[[], T], goes_on: str) -> T:
        """Ask until the store answers, and say then that it goes on: an outage says nothing about the bundle."""
        wait_s = WAIT_FIRST_S
        while True:
            try:
                answer = ask()
                if wait_s > WAIT_FIRST_S:
                    self.say(goes_on)
                return answer
            except StoreUnavailable as away:
                self.say(f"The bundle {short(self.digest)} cannot be fetched yet: {away.message}")
            self._rest(wait_s)
            wait_s = min(2 * wait_s, WAIT_MOST_S)

    def _rest(self, seconds: float) -> None:
        if self.pause(seconds):
            raise GivenUp(f"bundle {short(self.digest)} is not wanted any more")
