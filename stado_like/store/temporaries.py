"""What a killed writer left in `.tmp`, and when it may go.

A temporary may belong to a writer that is only paused, so a day passes first. Locks stay for ever: to remove one
under its holder would let two hold it. There is one lock per key that was ever replaced, a handful.
"""

from __future__ import annotations

import os
from contextlib import suppress

TEMPORARY = ".tmp"
SWEPT_AFTER_S = 86_400.0
SWEEP_EVERY_S = 3_600.0
_KEPT = ("lock.", "clock")


def sweep(folder: str, now_s: float) -> int:
    """Remove temporaries last written more than a day before `now_s` (the disk's own time). Returns how many went."""
    gone = 0
    with suppress(OSError), os.scandir(folder) as entries:  # sweeping is a courtesy: the next writer tries again
        for entry in entries:
            if entry.name.startswith(_KEPT):
                continue
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False) and now_s - entry.stat().st_mtime > SWEPT_AFTER_S:
                    os.unlink(entry.path)
                    gone += 1
    return gone
