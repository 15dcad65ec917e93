"""Which keys a store takes: one rule for every kind of store, so that a job moves between them unchanged.

Writing is strict: segments of `[A-Za-z0-9_.-]`, none of them `.` or `..`, at most 255 bytes each (a file name) and
1,024 in all (an object's key). Reading and deleting take whatever a foreign hand may have left in a bucket, except
what could leave the store's own folder on a directory, or meet its temporaries in `.tmp`.
"""

from __future__ import annotations

import re

from stado_like.errors import UsageError

_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[A-Za-z0-9_.\-]{1,255}"
_WRITABLE = re.compile(rf"(?!\.tmp(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*").fullmatch
_LEAVES = re.compile(r"\A\.tmp(?:/|\Z)|(?:\A|/)\.{0,2}(?:/|\Z)|\x00").search
_MOST_BYTES = 1024


def check_written(key: str) -> None:
    """Raises `UsageError` unless an object may be written under `key`."""
    if _WRITABLE(key) is None or len(key) > _MOST_BYTES:
        raise UsageError(
            f"{key[:200]!r} is not a key of {len(key)} characters that can be written",
            "Keys are at most 1,024 characters: segments of letters, digits, '_', '.' and '-' joined by '/', "
            "each at most 255 characters and neither '.' nor '..'; none begins with '.tmp/'.",
        )


def check_read(key: str) -> None:
    """Raises `UsageError` when `key` has an empty, `.` or `..` segment: it could name something outside the store."""
    if _LEAVES(key) is not None:
        raise UsageError(
            f"{key[:200]!r} cannot be the key of an object",
            "A key has no empty, '.' or '..' segment, neither begins nor ends with '/', and is not below '.tmp/'.",
        )
