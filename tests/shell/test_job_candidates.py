"""Which jobs a list may show: every key once, wherever the space of keys is cut, and the newest of very many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.errors import StoreUnavailable
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.reading import candidates, listing
from stado_like.reading.candidates import Known, every_job
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import Page
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, run, submit

PAGE = 10


class Far(MeteredStore):
    """A store that is asked over a network, in small pages."""

    def __init__(self, store: Any, *, fails_after: str = "") -> None:
        super().__init__(store, Meter())
        self._fails_after = fails_after

    @property
    def url(self) -> str:
        return "s3://far/away"

    def list(self, prefix: str, *, start_after: str = "", limit: int = PAGE) -> Page:
        if self._fails_after and start_after >= self._fails_after:
            raise StoreUnavailable("no answer")
        return super().list(prefix, start_after=start_after, limit=min(limit, PAGE))


@pytest.fixture(scope="module")
def near() -> Iterator[MemoryStore]:
    store = MemoryStore(REAL.token())
    for number in range(137):
        for workspace in ("default", "lab"):
            store.put(keys.job(JobId(workspace, f"job-{number * 7:04d}", 1)), b"{}")
    yield store


def found(store: Far, known: Known, workspace: str = "") -> Counter[str]:
    rows: Counter[str] = Counter()
    every_job(Bucket(store), workspace, lambda: known, lambda page: rows.update(row.key for row in page.rows))
    return rows


@settings(max_examples=60, deadline=None)
@given(
    cuts=st.lists(st.text("jobs/defaultlab-.0123456789", max_size=24).map(lambda text: f"jobs/{text}"), max_size=40),
    jobs=st.integers(0, 10_000_000),
)
def test_every_key_is_listed_once_whatever_is_known(near: MemoryStore, cuts: list[str], jobs: int) -> None:
    told = found(Far(near), Known(cuts, jobs))
    assert len(told) == 2 * 137 and set(told.values()) == {1}


def test_listing_in_parallel_costs_at_most_a_page_for_each_range(near: MemoryStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(candidates, "PAGE", PAGE)
    told, jobs = found(Far(near), Known()), 2 * 137
    far = Far(near)
    assert found(far, Known(list(told), jobs)) == told
    ranges = jobs // PAGE // candidates.WORTH_A_RANGE
    pages = -(-jobs // PAGE)
    assert ranges > 3 and pages <= far.meter.snapshot()["list"] <= pages + ranges


def test_few_pages_are_listed_one_after_another(near: MemoryStore) -> None:
    """Nothing is asked beside them."""

    def nobody_asks() -> Known:
        raise AssertionError("it was asked what is known")

    far = Far(MemoryStore(REAL.token()))
    for number in range(PAGE * candidates.PAGES_IN_TURN):
        far.put(keys.job(JobId("default", f"job-{number}", 1)), b"{}")
    every_job(Bucket(far), "", nobody_asks, lambda page: None)
    assert far.meter.snapshot()["list"] == candidates.PAGES_IN_TURN


def test_one_workspace_is_listed_alone(near: MemoryStore) -> None:
    told = found(Far(near), Known(["jobs/lab/job-0300.1.json"], 1_000_000), "lab")
    assert len(told) == 137 and all(key.startswith("jobs/lab/") for key in told)


def test_page_that_does_not_come_fails_the_list(near: MemoryStore) -> None:
    """Half a listing is none."""
    known = Known([f"jobs/lab/job-{number:04d}.1.json" for number in range(0, 900, 50)], 1_000_000)
    with pytest.raises(StoreUnavailable):
        found(Far(near, fails_after="jobs/lab/job-0500"), known)


def test_limit_goes_on_behind_what_cannot_be_shown(monkeypatch: Any) -> None:
    """Only the newest are held where there is a limit; where too many of them are unreadable, the older ones come."""
    monkeypatch.setattr(listing, "CAPPED_FROM", 4)
    bucket = build.make_bucket(Clock())
    jobs = []
    for number in range(40):
        j = submit(bucket, f"job-{number:02d}")
        run(bucket, attempt(j))
        bucket.ambient.now_s += 1.0  # type: ignore[attr-defined]
        jobs.append(j)
    assert [row.id for row in list_jobs(bucket, Wanted(limit=3)).rows] == jobs[:-4:-1]
    for j in jobs[30:]:
        bucket.store.put(keys.job(j), b"no JSON")
        bucket.ambient.now_s += 1.0  # type: ignore[attr-defined]
    told = list_jobs(bucket, Wanted(limit=3))
    assert [row.id for row in told.rows] == [jobs[29], jobs[28], jobs[27]]
    assert set(told.set_aside) == {str(j) for j in jobs[30:]}
