"""A part of a file, as an upload reads it, which afterwards tells what was really sent.

A client that signs what it sends reads it twice; only the last time counts. The digest of that reading is compared with
the one that the object is named by: a program that wrote meanwhile is noticed even where the file's times do not show
it (a mapped file's change when the kernel writes it back).
"""

from __future__ import annotations

import hashlib
import os
from typing import BinaryIO

PIECE_BYTES = 1 << 20


class Slice:
    """Bytes `start` to `start + size_bytes` of an open file; positions are counted from the slice's beginning."""

    def __init__(self, file: BinaryIO, start: int, size_bytes: int) -> None:
        self._file = file
        self._start = start
        self._size_bytes = size_bytes
        self._at = 0
        self._hash = hashlib.sha256()
        self._hashed_to = 0

    def read(self, size: int = -1, /) -> bytes:
        left = self._size_bytes - self._at
        wanted = left if size is None or size < 0 else min(size, left)
        if self._at == 0:
            self._hash, self._hashed_to = hashlib.sha256(), 0
        self._file.seek(self._start + self._at)
        piece = self._file.read(wanted)
        if self._at == self._hashed_to:
            self._hash.update(piece)
            self._hashed_to += len(piece)
        self._at += len(piece)
        return piece

    def seek(self, to: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = to + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    @property
    def sent(self) -> str:
        """The digest of the last whole reading; empty when there was none."""
        return self._hash.hexdigest() if self._hashed_to == self._size_bytes else ""


def digest_of(file: BinaryIO, start: int, size_bytes: int) -> str:
    """The digest of a part; empty when the file ends before it does."""
    found = hashlib.sha256()
    file.seek(start)
    left = size_bytes
    while left:
        piece = file.read(min(PIECE_BYTES, left))
        if not piece:
            return ""
        found.update(piece)
        left -= len(piece)
    return found.hexdigest()
