"""One task whose directories are saved and laid out again in this process: a store, and a directory per attempt."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from stado_like.bucket.bucket import Bucket
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.ids import AttemptId, JobId
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import Write
from stado_worker.checkpoints.restore import Restored, Restoring
from stado_worker.checkpoints.sending import Sender, Sizes
from tests.builders_jobs import Clock

J = JobId("default", "train", 1)
SMALL = Sizes(small=64, pack=256, part=128)


class Watched(MemoryStore):
    """`before_put(key)` runs before each upload of a file."""

    before_put: Callable[[str], None] = staticmethod(lambda key: None)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        self.before_put(key)
        return super().put_file(key, file)


class Bench:
    """One task: a store, and a directory for each attempt."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = Clock()
        self.clock.now_s = 4e9  # every file was written long ago
        self.inner = Watched(str(place), self.clock)
        self.meter = Meter()
        self.bucket = Bucket(MeteredStore(self.inner, self.meter), ambient=self.clock)
        self.shelf = Shelf(J, 0)
        self.said: list[str] = []

    def attempt(self, n: int) -> AttemptId:
        return AttemptId(J, 0, n)

    def folder(self, n: int) -> Path:
        path = self.place / f"attempt-{n}"
        path.mkdir(exist_ok=True)
        return path

    def sender(self, n: int = 1, keep: int = 2, sizes: Sizes = SMALL) -> Sender:
        return Sender(
            self.bucket, self.shelf, self.attempt(n), os.fsencode(self.folder(n)), keep, lambda s: False, sizes=sizes
        )

    def restoring(self, n: int) -> Restoring:
        return Restoring(self.bucket, os.fsencode(self.folder(n)), self.said.append, lambda s: False)

    def next(self, n: int, keep: int = 2) -> tuple[Sender, Restored | None, list[str]]:
        """Attempt `n`, laid out from what the earlier ones left."""
        restoring = self.restoring(n)
        restored = restoring.newest(self.shelf, before=n)
        sender = self.sender(n, keep)
        sender.start_from(restoring.held, restored)
        return sender, restored, restoring.notes

    @property
    def keys(self) -> list[str]:
        return [row.key for row in self.inner.list("checkpoints/").rows]


def tree(folder: Path) -> dict[str, Any]:
    """Everything below a folder: mode and content."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name, mode = str(path.relative_to(folder)), stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = oct(mode)
        elif path.is_file():
            found[name] = (oct(mode), path.read_bytes(), path.stat().st_mtime_ns)
    return found


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
