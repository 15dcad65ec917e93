"""Which jobs a list may show, from listings alone.

A job is created once and never changed, so the `last_modified` of its key is its age, and the indexes (queue, claims,
`open/`) name every job that is not over. Not obvious is how a million keys are listed quickly: a page follows from the
one before it, unless the space of keys is cut at keys that are known from elsewhere. Where those lie is a guess that
makes ranges of about one size, and whatever it is, each key is in one range.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple, TypeVar

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import AT_ONCE, side_by_side
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.store.protocol import Page, list_all

PAGE = 1_000
PAGES_IN_TURN = 4
WORTH_A_RANGE = 4
"""Pages. A range ends within a page, so each costs half a page more."""

T = TypeVar("T")


class Candidate(NamedTuple):
    """A job that may be shown, as a listing named it. A million of them sort by themselves, and take 250 MB."""

    at: float
    key: str
    etag: str

    @property
    def j(self) -> JobId:
        return keys.parse_job(self.key)


@dataclass(slots=True)
class Indexed:
    """What the indexes say of jobs that are not over. `unfinished`: the keys of all of them."""

    unfinished: set[str] = field(default_factory=set)
    opened: list[JobId] = field(default_factory=list)
    claimed: set[JobId] = field(default_factory=set)
    first: set[JobId] = field(default_factory=set)
    """Jobs with a first attempt on the queue."""


@dataclass(frozen=True, slots=True)
class Known:
    """Keys of jobs that are known from elsewhere, and about how many jobs there are by that."""

    keys: Sequence[str] = ()
    jobs: int = 0


def every_job(bucket: Bucket, workspace: str, known: Callable[[], Known], take: Callable[[Page], None]) -> None:
    """Hand over every page of the jobs of a workspace, or of all, in no particular order, one at a time. `known` is
    asked only where there are many. Raises `StoreUnavailable`."""
    prefix = keys.jobs_of(workspace) if workspace else keys.JOBS
    after = ""
    for _ in range(PAGES_IN_TURN if bucket.store.url.startswith("s3:") else sys.maxsize):
        page = bucket.store.list(prefix, start_after=after)
        take(page)
        if not page.more or not page.rows:
            return
        after = page.rows[-1].key
    ranges = _cut(after, known())
    turn = Lock()

    def take_range(ends: tuple[str, str]) -> None:
        for page in _pages(bucket, prefix, *ends):
            with turn:
                take(page)

    side_by_side(bucket, take_range, ranges)


def _cut(after: str, known: Known) -> list[tuple[str, str]]:
    """Ranges of keys behind `after`, each with its last key; the last one has none."""
    many = max(1, min(AT_ONCE, known.jobs // PAGE // WORTH_A_RANGE))
    behind = sorted(one for one in known.keys if one > after)
    cuts = [behind[at * len(behind) // many] for at in range(1, many)] if len(behind) >= many else []
    return list(zip([after, *cuts], [*cuts, ""], strict=True))


def _pages(bucket: Bucket, prefix: str, after: str, last: str) -> Iterator[Page]:
    while True:
        page = bucket.store.list(prefix, start_after=after)
        beyond = bool(last and page.rows) and page.rows[-1].key > last
        yield replace(page, rows=tuple(row for row in page.rows if row.key <= last)) if beyond else page
        if beyond or not page.more or not page.rows:
            return
        after = page.rows[-1].key


def indexed(bucket: Bucket, set_aside: dict[str, str]) -> Indexed:
    """Raises `StoreUnavailable`."""
    found = Indexed()
    jobs: set[JobId] = set()
    for prefix in (keys.QUEUED_OPEN, keys.QUEUED_HELD, keys.QUEUED_LATER):
        for a in parsed(bucket, prefix, keys.attempt_of_entry, set_aside):
            jobs.add(a.job)
            if a.n == 1 and prefix != keys.QUEUED_LATER:
                found.first.add(a.job)
    found.opened.extend(parsed(bucket, keys.OPEN, keys.parse_open_index, set_aside))
    found.claimed.update(a.job for a in parsed(bucket, keys.RUNNING, keys.parse_running, set_aside))
    found.unfinished.update(keys.job(j) for j in {*jobs, *found.opened, *found.claimed})
    return found


def parsed(bucket: Bucket, prefix: str, parse: Callable[[str], T], set_aside: dict[str, str]) -> Iterator[T]:
    """What the keys below a prefix say; those that say nothing are set aside. Raises `StoreUnavailable`."""
    for row in list_all(bucket.store, prefix):
        try:
            yield parse(row.key)
        except BadRecord as bad:
            set_aside[row.key] = bad.message


def dying(bucket: Bucket, opened: list[JobId]) -> set[str]:
    """The keys of jobs in `open/` that have a tombstone: what is left of them is on its way out."""
    present = bucket.present(*(keys.tombstone(j) for j in opened))
    return {keys.job(j) for j, buried in zip(opened, present, strict=True) if buried}
