"""Times and sizes in words. Store time comes in as seconds since 1970 UTC; nothing here asks a clock."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(seconds: float | None) -> str | None:
    """`2026-01-31T12:00:00.250Z`: ISO 8601, UTC, always milliseconds, so that texts sort as times do."""
    if seconds is None:
        return None
    whole_ms = round(seconds * 1000)
    moment = datetime.fromtimestamp(whole_ms // 1000, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{whole_ms % 1000:03d}Z"


def duration(seconds: float | None) -> str:
    """`850ms`, `12.3s`, `3m05s`, `2h07m`, `4d06h`: two units at most, as a person would say it."""
    if seconds is None:
        return "-"
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    minutes = whole // 60
    if minutes < 24 * 60:
        return f"{minutes // 60}h{minutes % 60:02d}m"
    hours = minutes // 60
    return f"{hours // 24}d{hours % 24:02d}h"


def size(size_bytes: float | None) -> str:
    """`512 B`, `1.5 KiB`, `16.0 GiB`: powers of 1,024."""
    if size_bytes is None:
        return "-"
    if size_bytes < 1024:
        return f"{size_bytes:.0f} B"
    left = float(size_bytes)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        left /= 1024
        if left < 1023.95:
            return f"{left:.1f} {unit}"
    return f"{left / 1024:.1f} PiB"
