"""A directory as a store: object `k` is the file `<path>/k`, holding the body and nothing else.

Several processes of one machine, or of several over a network disk, decide by `link(2)`, which creates a name or
fails, and never replaces. A body is written to a temporary first, so that a name never stands for half a body.
Crash safety needs three syncs: the file before it gets its name, its directory after, and the parent of any
directory that was made for it. Heartbeats and capacity (`put`) are renamed into place without a sync: they are
written again in seconds anyway; and so is the doorbell, which only saves others a sweep.

Syncs are what a durable store spends its time on, so they go side by side where the order between them does not matter:
`ahead` begins that of a body whose key is created later, and within `synced_together` directories are synced at the
end of the block, before anybody is told that something stands.

Store time is the file system's, for a network disk has a clock of its own: every write learns it from its temporary,
a reader by touching a file at most every few seconds.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from threading import Lock, local
from typing import BinaryIO

from stado_like.ambient import REAL, Ambient
from stado_like.errors import BucketMissing, CredentialsRefused, StoreUnavailable
from stado_like.store.clock import StoreClock
from stado_like.store.directory_names import DirectoryNames
from stado_like.store.files import ABSENT, LARGE_BYTES, again_if_stale, etag_of, identity, locked, named, read
from stado_like.store.key_shape import check_read, check_written
from stado_like.store.protocol import Applied, Object, Page, Rejected, Row, Stat, Unchanged, Unknown, Write
from stado_like.store.syncing import Begun, sync_directory, together
from stado_like.store.temporaries import SWEEP_EVERY_S, TEMPORARY, sweep

CARRIED_S = 5.0  # how long store time is carried forward before a reader touches a file again
GRAIN_S = 1.5  # the coarsest modification time of a file system that we expect, and a margin
LOCK_WAIT_S = 5.0
MOST_AHEAD = 64
HINTS = frozenset({"state/doorbell.json"})
"""Replaced for every job, and decides nothing: a loss of power may take it, and then workers sweep."""
REMEMBERED_KEYS = 50_000
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class LocalStore:
    """Objects as files. `durable=False` drops every sync. Shared by threads; a forked child may go on using it."""

    def __init__(self, path: str, durable: bool = True, ambient: Ambient = REAL, *, url: str | None = None) -> None:
        self._root = os.path.abspath(path)
        if os.path.exists(self._root) and not os.path.isdir(self._root):
            raise BucketMissing(
                f"the store {self._root} is a file, not a directory",
                "Name a directory, or one that does not exist yet.",
            )
        self._durable = durable
        self._ambient = ambient
        self._url = url or f"file://{self._root}" + ("" if durable else "?durable=0")
        self._temporary = os.path.join(self._root, TEMPORARY)
        self._token = ambient.token()
        self._numbers = count()
        self._clock = StoreClock(ambient, set_back_s=0.05)
        self._names = DirectoryNames(self._root, TEMPORARY)
        self._seen: dict[str, tuple[str, str]] = {}  # key -> identity of the file, its etag
        self._swept_at_s = ambient.boot_s() - SWEEP_EVERY_S + 60.0  # a short-lived command does not sweep
        self._sweeping = Lock()
        self._ahead: dict[tuple[str, bytes], Begun[tuple[str, os.stat_result]]] = {}
        self._waiting = local()

    @property
    def url(self) -> str:
        return self._url

    @property
    def can_replace(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing is held open."""

    # --- writing ---------------------------------------------------------------------------------------------------

    def create(self, key: str, body: bytes) -> Write:
        check_written(key)
        final = f"{self._root}/{key}"
        begun = self._ahead.pop((key, body), None) if self._ahead else None
        try:
            temporary, seen = begun.result() if begun is not None else self._write_temporary(body, sync=self._durable)
        except OSError as failed:
            return Unknown(named(failed, f"writing {key} below {self._root}"))
        try:
            self._with_parents(final, lambda: os.link(temporary, final))  # guard: create-if-absent
            if self._durable:
                self._sync_soon(os.path.dirname(final))
        except FileExistsError:
            # An NFS server may refuse a repeated request that it has carried out: the second link of our file tells.
            with suppress(OSError):
                if os.stat(temporary).st_nlink == 2:
                    return Applied(etag_of(body, seen), seen.st_mtime)
            return Rejected(seen.st_mtime)
        except OSError as failed:
            hint = "; this file system refuses hard links" if failed.errno in (errno.EPERM, errno.ENOTSUP) else ""
            return Unknown(named(failed, f"naming {key} below {self._root}") + hint)
        finally:
            with suppress(OSError):  # left behind, it is swept after a day
                os.unlink(temporary)
        return Applied(etag_of(body, seen), seen.st_mtime)

    def ahead(self, key: str, body: bytes) -> None:
        """This will be created next, unless something comes in between: begin to write it beside what the caller does
        until then. Nobody sees it before its `create`; what never comes to that is swept after a day."""
        if not self._durable:
            return
        check_written(key)
        if len(self._ahead) > MOST_AHEAD:
            self._ahead.clear()
        folder = os.path.dirname(f"{self._root}/{key}")

        def write() -> tuple[str, os.stat_result]:
            made: list[tuple[str, os.stat_result]] = []
            together(lambda: made.append(self._write_temporary(body, sync=True)), lambda: self._make(folder))
            return made[0]

        self._ahead[(key, body)] = Begun(write)

    @contextmanager
    def synced_together(self) -> Iterator[None]:
        """Creates of this thread within the block leave the syncs of their directories to its end, where all go at
        once. What the block does counts as done only after it. Raises `StoreUnavailable`."""
        if not self._durable or getattr(self._waiting, "folders", None) is not None:
            yield
            return
        folders: dict[str, None] = {}
        self._waiting.folders = folders
        try:
            yield
        finally:
            self._waiting.folders = None
        try:
            together(*[partial(sync_directory, folder) for folder in folders])
        except OSError as failed:
            raise StoreUnavailable(
                named(failed, f"syncing {', '.join(folders)}"),
                f"Check the disk that holds {self._root}; the same command can be repeated.",
            ) from failed

    def _sync_soon(self, folder: str) -> None:
        waiting = getattr(self._waiting, "folders", None)
        if waiting is not None:
            waiting[folder] = None
        else:
            sync_directory(folder)

    def put(self, key: str, body: bytes) -> Write:
        check_written(key)
        return self._rename_into_place(key, body, sync=False)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        """Synced, unlike `put`: nobody writes it again in seconds."""
        check_written(key)
        file.seek(0)
        return self._rename_into_place(key, file, sync=self._durable)

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        """Compare and rename under a lock file: atomic among `replace`s of all processes that share the directory."""
        check_written(key)
        name = hashlib.blake2b(key.encode(), digest_size=12).hexdigest()
        lock = -1
        try:
            lock = self._locked(name)
            found = self.get(key)
            if found is None or found.etag != etag:  # guard: replace-if-same
                return Rejected(self.now())
            return self._rename_into_place(key, body, sync=self._durable and key not in HINTS)
        except FileNotFoundError:
            return Rejected(self.now())  # nothing was ever written here
        except TimeoutError:
            return Unknown(f"the lock of {key} was held by others for {LOCK_WAIT_S:g} s")
        except (OSError, StoreUnavailable) as failed:
            return Unknown(named(failed, f"replacing {key}") if isinstance(failed, OSError) else failed.message)
        finally:
            if lock >= 0:
                os.close(lock)

    def _locked(self, name: str) -> int:
        path = f"{self._temporary}/lock.{name}"
        try:
            return locked(path, self._ambient, LOCK_WAIT_S)
        except FileNotFoundError:
            if not os.path.isdir(self._root):
                raise
            self._make(self._temporary)
        return locked(path, self._ambient, LOCK_WAIT_S)

    def delete(self, key: str) -> Applied | Unknown:
        check_read(key)
        self._seen.pop(key, None)
        try:
            again_if_stale(lambda: os.unlink(f"{self._root}/{key}"))
        except OSError as failed:
            # A directory is no object, and unlink of one says EPERM on some systems.
            if failed.errno not in ABSENT and not os.path.isdir(f"{self._root}/{key}"):
                return Unknown(named(failed, f"deleting {key} below {self._root}"))
        return Applied("", self._time())

    def _rename_into_place(self, key: str, body: bytes | BinaryIO, *, sync: bool) -> Write:
        final = f"{self._root}/{key}"
        temporary = ""
        try:
            temporary, seen = self._write_temporary(body, sync=sync)
            self._with_parents(final, lambda: os.rename(temporary, final))
            if sync:
                sync_directory(os.path.dirname(final))
        except OSError as failed:
            with suppress(OSError):
                os.unlink(temporary)
            return Unknown(named(failed, f"writing {key} below {self._root}"))
        return Applied(etag_of(body, seen), seen.st_mtime)

    def _write_temporary(self, body: bytes | BinaryIO, *, sync: bool) -> tuple[str, os.stat_result]:
        """A new file in `.tmp` that holds `body`; its time is the store's."""
        temporary = f"{self._temporary}/{self._token}.{self._ambient.pid:x}.{next(self._numbers):x}"
        try:
            descriptor = again_if_stale(lambda: os.open(temporary, _NEW, 0o666))
        except FileNotFoundError:
            self._make(self._temporary)
            descriptor = os.open(temporary, _NEW, 0o666)
        try:
            for piece in (body,) if isinstance(body, bytes) else iter(lambda: body.read(LARGE_BYTES), b""):
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            if sync:
                os.fsync(descriptor)
            seen = os.fstat(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        self._clock.learn(seen.st_mtime)
        if self._ambient.boot_s() - self._swept_at_s > SWEEP_EVERY_S:
            self._sweep(seen.st_mtime)
        return temporary, seen

    def _with_parents(self, final: str, step: Callable[[], None]) -> None:
        """Carry out `step`, which gives `final` its name, and make its directory first when it is missing."""
        try:
            step()
        except FileNotFoundError:
            self._make(os.path.dirname(final))
            step()

    def _make(self, folder: str) -> None:
        """Whoever makes a directory syncs it, also for a heartbeat: others rely on it without looking again."""
        missing: list[str] = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(missing):
            try:
                os.mkdir(folder)
            except FileExistsError as exists:  # made by another a moment ago, perhaps not yet synced; or a foreign file
                if not os.path.isdir(folder):
                    raise NotADirectoryError(errno.ENOTDIR, "a file stands where a directory is needed") from exists
            if self._durable:
                sync_directory(os.path.dirname(folder))

    def _sweep(self, now_s: float) -> None:
        if self._sweeping.acquire(blocking=False):
            try:
                self._swept_at_s = self._ambient.boot_s()
                sweep(self._temporary, now_s)
            finally:
                self._sweeping.release()

    # --- reading ---------------------------------------------------------------------------------------------------

    def get(self, key: str) -> Object | None:
        check_read(key)
        path = f"{self._root}/{key}"
        try:
            found = again_if_stale(lambda: read(path))
        except OSError as failed:
            raise self._unreadable(failed, path) from failed
        if found is None:
            return None
        body, seen = found
        now = self._time()
        etag = etag_of(body, seen)
        if now - seen.st_mtime > GRAIN_S:
            if len(self._seen) > REMEMBERED_KEYS:
                self._seen.clear()
            self._seen[key] = (identity(seen), etag)
        return Object(body, etag, seen.st_mtime, now)

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        known = self._seen.get(key)
        if known is not None and known[1] == etag:
            try:
                if identity(os.stat(f"{self._root}/{key}")) == known[0]:
                    return Unchanged(self._time())
            except OSError:
                self._seen.pop(key, None)  # gone or unreadable: the reading below says which
        found = self.get(key)
        return Unchanged(found.now) if found is not None and found.etag == etag else found

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        check_read(key)
        path = f"{self._root}/{key}"
        try:
            found = again_if_stale(lambda: read(path, start, size_bytes))
        except OSError as failed:
            raise self._unreadable(failed, path) from failed
        return None if found is None else found[0]

    def head(self, key: str) -> Stat | None:
        check_read(key)
        path = f"{self._root}/{key}"
        try:
            seen = os.stat(path)
        except OSError as failed:
            if failed.errno in ABSENT:
                return None
            if failed.errno != errno.ESTALE:
                raise self._unreadable(failed, path) from failed
        else:
            if seen.st_size > LARGE_BYTES and os.path.isfile(path):
                return Stat(identity(seen), seen.st_size, seen.st_mtime, self._time())
        found = self.get(key)
        return None if found is None else Stat(found.etag, len(found.body), found.last_modified, found.now)

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        return [self.head(key) for key in keys]

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        limit = max(1, min(limit, 1000))
        try:
            return again_if_stale(lambda: self._page(prefix, start_after, limit))
        except OSError as failed:
            raise self._unreadable(failed, f"{self._root}/{prefix}") from failed

    def _page(self, prefix: str, start_after: str, limit: int) -> Page:
        now = self._time()
        rows: list[Row] = []
        for key in self._names.walk(prefix, start_after, now):
            if len(rows) == limit:
                return Page(tuple(rows), True, now)
            try:
                seen = os.stat(f"{self._root}/{key}", follow_symlinks=False)
            except OSError as failed:
                if failed.errno in ABSENT:
                    continue  # deleted since the names were read
                raise
            rows.append(Row(key, identity(seen), seen.st_size, seen.st_mtime))
        return Page(tuple(rows), False, now)

    def _unreadable(self, failed: OSError, path: str) -> CredentialsRefused | StoreUnavailable:
        why = named(failed, f"reading {path}")
        if failed.errno in (errno.EACCES, errno.EPERM):
            return CredentialsRefused(why, f"Give this user read access to {self._root}, or use a store of your own.")
        return StoreUnavailable(why, f"Check the disk that holds {self._root}; the same command can be repeated.")

    # --- time ------------------------------------------------------------------------------------------------------

    def now(self) -> float:
        return self._time()

    def _time(self) -> float:
        if self._clock.age_s > CARRIED_S:
            self._touch()
        now = self._clock.now()
        # Nobody has written here yet, or we may not write: there are no ages to judge by a better clock.
        return self._ambient.wall_s() if now is None else now

    def _touch(self) -> None:
        """Learn the file system's time. Only in a store that exists: a reader makes nothing."""
        path = f"{self._temporary}/clock"
        with suppress(OSError):  # a read-only store tells no time; `_time` says what follows
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:
                if not os.path.isdir(self._root):
                    return
                self._make(self._temporary)
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.utime(descriptor)
                self._clock.learn(os.fstat(descriptor).st_mtime)
            finally:
                os.close(descriptor)
