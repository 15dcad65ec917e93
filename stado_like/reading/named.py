"""A person's words -> the job as it is now, in fewer requests than finding it and then reading it.

Not obvious because two listings seem to be needed: of the incarnations of a name, and of the status of the one that
was meant. A name has one living incarnation at most, and whatever has started left something under `status/`; so one
listing of what all incarnations of the name left there finds the job and says what became of it. What that listing
names is a hint: the job is read by its key, its tombstone is looked for, and where it is no more, or nothing has
started yet, the name is looked up as everywhere.
"""

from __future__ import annotations

from collections import defaultdict

from stado_like.bucket import load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load import Listed
from stado_like.errors import BadRecord, NotFound
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.reading.resolve import Meant, newest_incarnation, no_such_job, parse
from stado_like.reading.shapes import JobView
from stado_like.reading.view import read_job
from stado_like.store.protocol import Row, list_all


def read_named(bucket: Bucket, words: str, workspace: str) -> JobView:
    """Raises `UsageError`, `NotFound` with the nearest names, `StoreUnavailable`, `BadRecord`."""
    meant = parse(words, workspace)
    if meant.k:
        return read_job(bucket, JobId(meant.workspace, meant.name, meant.k))
    found = _statuses(bucket, meant)
    listed: Listed | None = Listed()
    if found:
        newest = max(found)
        try:
            return read_job(bucket, newest, listed=found[newest])
        except NotFound:
            listed = None  # deleted, or just being deleted: the name may have been used again
    j = newest_incarnation(bucket, meant.workspace, meant.name)
    if j is None:
        raise no_such_job(bucket, meant)
    return read_job(bucket, j, listed=listed)


def _statuses(bucket: Bucket, meant: Meant) -> dict[JobId, Listed]:
    """What each incarnation of a name has left under its status."""
    prefix = keys.statuses_of_name(meant.workspace, meant.name)
    rows: dict[JobId, list[Row]] = defaultdict(list)
    for row in list_all(bucket.store, prefix):
        try:
            rows[JobId.parse(f"{meant.workspace}.{meant.name}.{row.key[len(prefix) :].partition('/')[0]}")].append(row)
        except BadRecord:
            continue  # a stray object under status/ is no job's; `storage fsck` shows it
    return {j: load.listed_of(j, found) for j, found in rows.items()}
