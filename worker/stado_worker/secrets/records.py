"""Which living attempts of this host use which placed path: one small file a path, under one lock.

Not obvious because state directories may lie on a disk that several hosts share, while the paths are each host's own:
so the records are kept by host. They lie on a disk, since the links they tell of survive a restart of the machine too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from stado_like.ambient import REAL
from stado_worker.machine.identity import host_label
from stado_worker.secrets import private

LOCKED_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class User:
    """An attempt, by its folder, and its copy of what is placed."""

    folder: str
    copy: str


@dataclass(frozen=True, slots=True)
class Record:
    """A placed path, who uses it, and the directories that were made for it."""

    path: str
    users: tuple[User, ...] = ()
    made: tuple[str, ...] = ()


class Records:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def of(cls, attempt: Path) -> Records:
        """Those of the worker's state directory: an attempt lies in `<state>/<worker>/attempts/`."""
        return cls(attempt.parents[2] / ".placed" / host_label(REAL.host))

    def any(self) -> bool:
        return next(self._directory.glob("*.json"), None) is not None

    @contextmanager
    def locked(self) -> Iterator[Records]:
        """Raises OSError, also when another holds the lock too long: that is said, and tried again by the caller."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock(fd)
            yield self
        finally:
            os.close(fd)

    def _lock(self, fd: int) -> None:
        until_s = time.monotonic() + LOCKED_WITHIN_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until_s:
                    raise TimeoutError(f"{self._directory}/lock is held for more than {LOCKED_WITHIN_S:g} s") from None
                time.sleep(0.01)

    def read(self, path: str) -> Record | None:
        return self._read(self._file(path))

    def every(self) -> list[Record]:
        found = [self._read(file) for file in sorted(self._directory.glob("*.json"))]
        return [record for record in found if record is not None]

    def write(self, record: Record) -> None:
        users = [[user.folder, user.copy] for user in record.users]
        said = {"path": record.path, "users": users, "made": list(record.made)}
        private.write(self._file(record.path), orjson.dumps(said), 0o600)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._file(path).unlink()

    def _file(self, path: str) -> Path:
        return self._directory / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"

    def _read(self, file: Path) -> Record | None:
        """None: there is none, or it was hurt, and then the link itself says whose it is."""
        try:
            plain = orjson.loads(file.read_bytes())
            return Record(plain["path"], tuple(User(*user) for user in plain["users"]), tuple(plain["made"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
