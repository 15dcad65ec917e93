"""Moments of the near future, as they are told to people."""

from __future__ import annotations

import math
from datetime import UTC, datetime

DAY_S = 86_400


def clock(at: float, now: float) -> str:
    """`14:20`, UTC, rounded up to the minute, so that "by" stays true; with its date a day ahead."""
    minute = datetime.fromtimestamp(math.ceil(at / 60) * 60, UTC)
    return f"{minute:%H:%M}" if at - now < DAY_S else f"{minute:%Y-%m-%d %H:%M}"
