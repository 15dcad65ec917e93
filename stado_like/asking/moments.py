"""A deadline as people write it, and the one form in which it is stored: `2026-01-31T12:00:00Z`.

Stored is a moment and never a duration: a job that waits for a day in a queue must not gain a day. A time without a
zone is UTC and is said back as that; the zone of whoever types is not known to whoever reads the job later.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Final

from stado_like.errors import UsageError
from stado_like.job.spec import units

FORMS: Final = "2026-01-31T12:00:00Z, 2026-01-31T12:00:00+01:00, 2026-01-31 12:00 (UTC), or from now: +2h, +90m, +1-12"
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2})(:[0-9]{2}(?:\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?",
    re.IGNORECASE,
)
_LAST_S: Final = 253_402_300_799  # the end of the year 9999
_STORED: Final = "%Y-%m-%dT%H:%M:%SZ"


def deadline(text: str, now_s: float) -> str:
    """The moment that `text` means, as it is stored. Raises `UsageError`, also when it has passed."""
    bare = text.strip()
    moment_s = now_s + units.duration_s(bare[1:]) if bare.startswith("+") else _moment_s(bare)
    whole_s = min(math.ceil(moment_s), _LAST_S)
    if moment_s <= now_s:
        ago = units.duration_words(round(now_s - whole_s))
        raise UsageError(f"the deadline {_words(whole_s)} passed {ago} ago", "Give a later one, or none.")
    return datetime.fromtimestamp(whole_s, UTC).strftime(_STORED)


def _moment_s(text: str) -> float:
    match = _MOMENT.fullmatch(text)
    if match is not None:
        day, minute, seconds, zone = match.groups()
        try:
            read = datetime.fromisoformat(f"{day}T{minute}{seconds or ':00'}{(zone or 'Z').upper()}")
            return read.timestamp()
        except (ValueError, OverflowError):
            pass  # a 13th month, a 25th hour: refused below like any other text
    raise UsageError(f"{text[:60]!a} is not a moment", f"Accepted forms: {FORMS}.")


def _words(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def words(stored: str) -> str:
    """`2026-01-31 12:00:00 UTC`: what was understood, said back."""
    return _words(datetime.strptime(stored, _STORED).replace(tzinfo=UTC).timestamp())
