"""The rules of day files: a row is written of a job that is over, as what it ended; and what lists tell by them is what
the jobs themselves say.
"""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.bucket import days
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import day_keys, day_rows, keys
from stado_like.reading.candidates import Candidate
from stado_like.reading.day_rows import DayRows
from stado_like.reading.rows import read_over
from stado_like.store.protocol import list_all
from tests.sim.fault_store import Change
from tests.sim.seen import Seen


def day_files_tell_what_is_over(seen: Seen, change: Change) -> Iterator[str]:
    """Each row is of a job that had ended for good by then, under the state it ended in."""
    if not change.key.startswith(day_keys.DAYS) or change.after is None:
        return
    part = day_keys.parse_day_part(change.key)
    for line in day_rows.lines(change.after, change.key):
        row = day_rows.read(part.workspace, line)
        state = seen.came_to.get(row.j)
        if state is None or row.said[0] != state.value:
            yield f"{change.actor} wrote {row.said[0]} of {row.j} into {change.key}: it came to {state}"


def day_files_are_created_whole(seen: Seen, change: Change) -> Iterator[str]:
    """Under one name lie the same bytes for ever."""
    if change.key.startswith(day_keys.DAYS) and change.before is not None and change.after is not None:
        yield f"{change.actor} wrote over {change.key}"


def lists_by_day_files_say_what_the_jobs_say(seen: Seen) -> Iterator[str]:
    bucket = Bucket(seen.shared.store, ambient=seen.shared.clock)
    listed = [(keys.parse_job(row.key), row) for row in list_all(bucket.store, keys.JOBS)]
    asked = [Candidate(row.last_modified, row.key, row.etag) for _, row in listed]
    told = DayRows(bucket, "", worth_a_listing=0).rows(asked)
    for j, _ in listed:
        job = bucket.job(j) if keys.job(j) in told else None
        itself = read_over(bucket, j, job) if job is not None else None
        if told.get(keys.job(j)) != itself:
            yield f"day files say {told[keys.job(j)]} of {j}, and the job itself {itself}"
    seen.told_by_days += len(told)


def day_files_are_whole(seen: Seen) -> Iterator[str]:
    """Each holds the bytes that its name says, and no row twice."""
    bucket = Bucket(seen.shared.store, ambient=seen.shared.clock)
    for parts in days.parts(bucket).values():
        for part in parts:
            try:
                lines = days.lines(bucket, part)
            except BadRecord as bad:
                yield bad.message
                continue
            if len(lines) != len(set(lines)):
                yield f"{part.key} says something twice"


ON_CHANGE = (day_files_tell_what_is_over, day_files_are_created_whole)
AT_REST = (lists_by_day_files_say_what_the_jobs_say, day_files_are_whole)
