"""Day files: what lists tell of jobs that are over, in a few objects instead of two for each job.

    create days/<ws>/<day>.<…>   →   (joined with others of its day: create the whole, then delete the parts)

They decide nothing and nobody relies on them: a row is true only as long as `jobs/` lists its job's record, and what no
file has is read from the job itself. A file is created once under a name that says what is in it, so two ticks that
write the same rows write one object, and of two that write different ones both stand until they are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import day_keys, day_rows
from stado_like.job.day_rows import DayRow
from stado_like.store import conditional
from stado_like.store.protocol import list_all

READABLE = (BadRecord, ValueError, TypeError)
"""What a file that another version wrote, or that was cut off, may raise: then it is as if it were not there."""


@dataclass(frozen=True, slots=True)
class Part:
    """A day file, as a listing names it."""

    key: str
    workspace: str
    day: str
    size_bytes: int


def parts(bucket: Bucket, workspace: str = "") -> dict[tuple[str, str], list[Part]]:
    """The files of each workspace and day that this version can read; of one workspace, or of all. Raises
    `StoreUnavailable`."""
    found: dict[tuple[str, str], list[Part]] = {}
    for row in list_all(bucket.store, day_keys.days_of(workspace)):
        try:
            seen = day_keys.parse_day_part(row.key)
        except BadRecord:
            continue  # a stray object is no day file; `storage fsck` shows it
        if seen.format == day_keys.FORMAT:
            one = Part(row.key, seen.workspace, seen.day, row.size_bytes)
            found.setdefault((one.workspace, one.day), []).append(one)
    return found


def lines(bucket: Bucket, part: Part) -> list[bytes]:
    """The lines of a file; none where it was joined with others since. Raises `StoreUnavailable`, `BadRecord`."""
    found = bucket.store.get(part.key)
    return [] if found is None else day_rows.lines(found.body, part.key)


def write(bucket: Bucket, workspace: str, day: str, rows: Iterable[DayRow]) -> list[Part]:
    """Rows of one workspace and day, in as few files as they fit into. Raises `StoreUnavailable`: call again."""
    made = []
    for file in day_rows.files(rows):
        key = day_keys.day_part(workspace, day, file.digest)
        conditional.ensure(bucket.store, key, file.body, budget_s=bucket.budget_s, ambient=bucket.ambient)
        made.append(Part(key, workspace, day, len(file.body)))
    return made


def join(bucket: Bucket, some: Sequence[Part], rows: Iterable[DayRow]) -> list[Part]:
    """Replace files of one day by files of these rows. Raises `StoreUnavailable`: call again."""
    made = write(bucket, some[0].workspace, some[0].day, rows)
    standing = {one.key for one in made}
    bucket.drop(*(one.key for one in some if one.key not in standing))
    return made
