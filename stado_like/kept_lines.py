"""What a process learnt and can never change, kept on this machine's disk for the next one.

Not obvious is how one file serves several processes without a lock: lines are only ever appended, each with its
checksum, the last one of a key counts, and a line that does not agree with its checksum was never there. A file that
has grown too large is replaced as a whole: what this process asked for stays, and of the rest the newer part; what
another process appended meanwhile is lost, and costs that one requests. The first line says what the file is about: one
that says something else (another store, another program) is as good as none, and is replaced. The checksums count that
line in, so what a process appends to a file that was replaced under its hands is nothing to those who read it then.

All of it may be lost at any time, and nothing here ever raises for what the disk did: a cache that fails is empty.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import orjson

from stado_like.ambient import REAL

_CHECKED = 9  # eight digits of the checksum, and a space
_BEGIN = _CHECKED + 2  # and `["`: from there to the next quote is the key, which holds none


class KeptLines:
    """JSON values by key. Without a path they end with the process."""

    def __init__(self, path: Path | None, about: str, *, most_bytes: int) -> None:
        self._path = path
        self._head = b"%08x %b" % (crc32(about.encode()), orjson.dumps(["about", about]))
        self._seed = crc32(self._head)
        self._most_bytes = most_bytes
        self._lines: dict[bytes, bytes] | None = None
        self._news: list[bytes] = []
        self._asked: set[bytes] = set()
        self._size_bytes = 0
        self._ours = False
        """Whether the file on the disk begins with our head."""

    def said(self, key: str) -> Any:
        """What was kept under a key; None: nothing, or nothing that can be read."""
        name = key.encode()
        line = self._known().get(name)
        if line is None:
            return None
        try:
            if int(line[: _CHECKED - 1], 16) != crc32(memoryview(line)[_CHECKED:], self._seed):
                return None
            _, said = orjson.loads(memoryview(line)[_CHECKED:])
        except (ValueError, TypeError):
            return None
        self._asked.add(name)
        return said

    def names(self) -> list[str]:
        """What something may be kept under, in no order. Nothing is checked here but that a key can be asked for under
        it: a line that was damaged may say anything."""
        return [key for name in self._known() if name.isascii() and (key := name.decode()).isprintable() and key]

    def keep(self, key: str, value: Any) -> None:
        """`key` holds no quote and nothing that JSON would escape."""
        body, name = orjson.dumps([key, value]), key.encode()
        line = b"%08x %b" % (crc32(body, self._seed), body)
        known = self._known()
        if known.get(name) == line:
            return
        known.pop(name, None)  # so that the order is that of age
        known[name] = line
        self._asked.add(name)
        self._news.append(line)

    def save(self) -> None:
        """Append what is new."""
        if self._path is None or not self._news:
            return
        with suppress(OSError):
            if self._size_bytes <= self._most_bytes and (self._ours or self._is_ours_now()):
                self._append()
            else:
                self._replace()
        self._news = []

    def _is_ours_now(self) -> bool:
        """Whether another process has begun the file meanwhile."""
        assert self._path is not None
        with suppress(OSError), self._path.open("rb") as file:
            self._ours = file.read(len(self._head) + 1) == self._head + b"\n"
        return self._ours

    def _append(self) -> None:
        assert self._path is not None
        # Begins a line of its own, whatever a writer that was killed had left of his.
        said = b"\n" + b"\n".join(self._news) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, said)
            self._size_bytes = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def _replace(self) -> None:
        assert self._path is not None
        known, kept = self._known(), [self._head]
        left = self._most_bytes // 2 if self._size_bytes > self._most_bytes else self._most_bytes
        asked = [line for name, line in known.items() if name in self._asked]
        others = [line for name, line in known.items() if name not in self._asked]
        for line in (*reversed(asked), *reversed(others)):
            left -= len(line) + 1
            if left < 0:
                break
            kept.append(line)
        kept[1:] = reversed(kept[1:])
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        whole = self._path.with_name(f"{self._path.name}.{REAL.token()}")
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(b"\n".join(kept) + b"\n")
                self._size_bytes = file.tell()
            whole.replace(self._path)
        except OSError:
            whole.unlink(missing_ok=True)
            raise
        self._ours = True

    def _known(self) -> dict[bytes, bytes]:
        if self._lines is None:
            self._lines = {}
            body = b""
            if self._path is not None:
                with suppress(OSError):  # nothing was kept yet, or it cannot be read: all is asked for
                    body = self._path.read_bytes()
            self._ours = body.startswith(self._head + b"\n")
            self._size_bytes = len(body)
            for line in body.split(b"\n")[1:] if self._ours else ():
                key = line[_BEGIN : line.find(b'"', _BEGIN)]
                self._lines.pop(key, None)
                self._lines[key] = line
        return self._lines
