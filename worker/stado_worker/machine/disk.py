"""Whether there is room on disk to take on another attempt.

Not obvious because a file system also fills up by number of files, and because a worker that goes on claiming on a
full disk fails every job it touches, fast: it must stop claiming and go on beating.
"""

from __future__ import annotations

import os
from pathlib import Path

LEAST_FREE_BYTES = 64 << 20
LEAST_FREE_FILES = 100


def free_bytes(directory: Path) -> int:
    """Bytes an ordinary user may still write below `directory`. Raises OSError when it cannot be told."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def disk_pressure(directory: Path, least_bytes: int = LEAST_FREE_BYTES) -> str | None:
    """Why nothing new may be claimed here (a sentence that starts with `disk`), or None.

    A directory that cannot be asked is a reason too: no attempt could be set up in it.
    """
    try:
        found = os.statvfs(directory)
    except OSError as error:
        return f"disk: {directory} cannot be read ({error.strerror})"
    free = found.f_bavail * found.f_frsize
    if free < least_bytes:
        return f"disk: {free} bytes free under {directory}, at least {least_bytes} are needed"
    # Some file systems (btrfs, many network disks) report no number of files at all: they have no such limit.
    if found.f_files > 0 and found.f_favail < LEAST_FREE_FILES:
        return f"disk: room for {found.f_favail} more files under {directory}, at least {LEAST_FREE_FILES} are needed"
    return None
