"""The keys of day files: what lists tell of jobs that are over. `keys` has all others.

    days/<ws>/<day>.<format>.<digest>.gz    rows of jobs of one workspace, submitted on one day, that are over

`<day>` is the UTC day of the job's key (its `last_modified`), `<format>` counts up whenever a row says the same in
another form, `<digest>` names the rows themselves: who writes the same rows writes the same key, and whoever reads can
tell whether they are whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from stado_like.job.ids import bad, is_workspace

DAYS = "days/"
FORMAT = 1
DAY_S = 86_400
_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})\.([1-9]\d*)\.([0-9a-f]{32})\.gz\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class DayPart:
    key: str
    workspace: str
    day: str
    format: int
    digest: str


def day_of(at: float) -> str:
    """`2026-01-31`: the UTC day of a moment of store time."""
    return _named(int(at // DAY_S))


@lru_cache(maxsize=1_000)
def _named(day: int) -> str:
    return f"{datetime.fromtimestamp(day * DAY_S, tz=UTC):%Y-%m-%d}"


def days_of(workspace: str) -> str:
    """The prefix under which a workspace's day files lie; all of them for none."""
    return f"{DAYS}{workspace}/" if workspace else DAYS


def day_part(workspace: str, day: str, digest: str) -> str:
    key = f"{days_of(workspace)}{day}.{FORMAT}.{digest}.gz"
    parse_day_part(key)
    return key


def parse_day_part(key: str) -> DayPart:
    parts = key.split("/")
    found = _NAME.match(parts[2]) if len(parts) == 3 and f"{parts[0]}/" == DAYS else None
    if found is None or not is_workspace(parts[1]):
        raise bad(key, "a day file")
    return DayPart(key, parts[1], found[1], int(found[2]), found[3])
