"""Facts that are only "yes, this was seen", kept on this machine's disk by the hundred thousand: eight bytes each.

A mark is a digest of what was seen, so a damaged file says nothing wrong: bytes that are no digest of anything match
nothing. For the same reason two processes may append at once. What is about another store differs in every digest.
A file that has grown too large is replaced by its newer half.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from stado_like.ambient import REAL

BYTES_EACH = 8

K = TypeVar("K")


class KeptMarks:
    """Marks of one store. Without a path they end with the process."""

    def __init__(self, path: Path | None, about: str, *, most: int) -> None:
        self._path = path
        self._about = blake2b(about.encode(), digest_size=16).digest()
        self._most = most
        self._marks: array[int] | None = None
        self._news: array[int] = array("Q")

    def among(self, wanted: Mapping[K, str]) -> set[K]:
        """Those of `wanted`, by what is said of them, that were marked."""
        digests = {self._digest(said): one for one, said in wanted.items()}
        known = set(digests).intersection(self._known())
        return {digests[one] for one in known.union(set(digests).intersection(self._news))}

    def mark(self, said: Iterable[str]) -> None:
        """What was not marked yet, if the caller can help it: nothing looks for doubles here."""
        self._news.extend(map(self._digest, said))
        if self._path is None and len(self._news) > self._most:
            del self._news[: len(self._news) - self._most // 2]

    def save(self) -> None:
        """Append what is new."""
        if self._path is None or not self._news:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, self._news.tobytes())
                size_bytes = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
            if size_bytes > self._most * BYTES_EACH:
                self._shorten()
        self._known().extend(self._news)
        self._news = array("Q")

    def _shorten(self) -> None:
        assert self._path is not None
        body = self._path.read_bytes()
        whole = self._path.with_name(f"{self._path.name}.{REAL.token()}")
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(body[-(self._most // 2) * BYTES_EACH :])
            whole.replace(self._path)
        except OSError:
            whole.unlink(missing_ok=True)
            raise

    def _known(self) -> array[int]:
        if self._marks is None:
            self._marks = array("Q")
            if self._path is not None:
                with suppress(OSError):  # nothing was marked yet, or it cannot be read: all is looked at
                    body = self._path.read_bytes()
                    if len(body) % BYTES_EACH:
                        self._path.unlink()  # whoever wrote last was cut short: nothing behind it would be found again
                    else:
                        self._marks.frombytes(body)
        return self._marks

    def _digest(self, said: str) -> int:
        return int.from_bytes(blake2b(said.encode(), digest_size=BYTES_EACH, key=self._about).digest(), "little")
