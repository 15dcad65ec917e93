"""How much a bundle may hold. Both sides count the same: the bytes of the files, before compression."""

from __future__ import annotations

MOST_BYTES = 512 << 20
"""Default of the setting `bundle_max`."""
CACHE_BYTES = 4 << 30
"""Default of the setting `bundle_cache`."""
MOST_MEMBERS = 200_000
"""Files, links and empty folders. More is not a folder of programs, and takes minutes to lay out."""
ENVELOPE_BYTES = 64 << 20
"""What names and headers may add to the files, compressed."""
PIECE_BYTES = 4 << 20
"""Read and written at a time."""


def words(size_bytes: int) -> str:
    """`12.3 MiB`: for messages, where a round figure says enough."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    figure = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB"):
        figure /= 1024
        if figure < 1024 or unit == "GiB":
            break
    return f"{figure:.1f} {unit}"


def short(digest: str) -> str:
    """Enough of a digest for people to compare."""
    return digest[:12]
