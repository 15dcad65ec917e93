"""Long listings in parallel, and ticks on a store that is asked over a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stado_coordinator.tick import Tick
from stado_like.bucket import ranges
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_board import with_queue
from stado_like.bucket.load_world import Memory, load_world
from stado_like.bucket.ranges import cuts_of, list_in_ranges
from stado_like.errors import StoreUnavailable
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.workspace import Quota, Workspace
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import Page, list_all
from tests.builders_queue import Waiting

PAGE = 10


class Far(MeteredStore):
    """A store that is asked over a network, in small pages. `fails`: prefixes that do not answer."""

    def __init__(self, store: Any, fails: tuple[str, ...] = ()) -> None:
        super().__init__(store, Meter())
        self.fails = fails

    @property
    def url(self) -> str:
        return "s3://far/away"

    def list(self, prefix: str, *, start_after: str = "", limit: int = PAGE) -> Page:
        if self.fails and prefix.startswith(self.fails):
            raise StoreUnavailable("no answer")
        return super().list(prefix, start_after=start_after, limit=min(limit, PAGE))


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "PAGE", PAGE)


@settings(max_examples=40, deadline=None)
@given(
    there=st.sets(st.integers(0, 400), max_size=120),
    cuts=st.lists(st.text("ab/0123456789", max_size=6).map(lambda text: f"a/{text}"), max_size=20),
)
def test_every_row_comes_once_and_in_order_wherever_it_is_cut(there: set[int], cuts: list[str]) -> None:
    store = MemoryStore("ranges")
    try:
        for row in list(list_all(store, "")):
            store.delete(row.key)
        for number in there:
            store.put(f"a/{number:04d}", b"")
            store.put(f"b/{number:04d}", b"")
        found = list_in_ranges(Bucket(Far(store)), "a/", sorted(cuts))
    finally:
        store.close()
    assert [row.key for row, _ in found] == sorted(f"a/{number:04d}" for number in there)


@pytest.mark.parametrize("rows", [0, 39, 40, 400, 1234])
def test_cuts_of_the_last_listing_cost_no_listing_more(rows: int) -> None:
    store = MemoryStore(f"aligned-{rows}")
    for number in range(rows):
        store.put(f"a/{number:05d}", b"")
    far = Far(store)
    whole = list_in_ranges(Bucket(far), "a/", [])
    before = far.meter.snapshot()["list"]
    cuts = cuts_of(whole)
    assert len(cuts) == (0 if rows < 40 else len(cuts)) and len(cuts) < 16
    assert [row for row, _ in list_in_ranges(Bucket(far), "a/", cuts)] == [row for row, _ in whole]
    assert far.meter.snapshot()["list"] - before <= before


def test_tick_over_a_network_sees_what_one_beside_the_disk_sees(tmp_path: Path) -> None:
    """The second time in ranges, by what it kept of the first."""
    stage = Waiting()
    stage.store.put(keys.STORE_VERDICT, b"{}")
    stage.store.put(keys.workspace("default"), codec.encode(Workspace(name="default", quota=Quota(max_cpus=2))))
    jobs = [stage.put(f"job-{number}") for number in range(120)]
    for j in jobs[:7]:
        stage.claim(AttemptId(j, 0, 1))
    stage.put("array", array={"size": 3})
    stage.machine("w1", free=0)
    Tick(Bucket(stage.store, ambient=stage.clock)).step()
    near, memory = Bucket(stage.store, ambient=stage.clock), Memory()
    wanted = with_queue(near, memory, load_world(near, memory))
    for _ in range(2):
        far = Bucket(Far(stage.store), ambient=stage.clock)
        kept = Memory.kept_in(tmp_path, "boot")
        kept.cache.open(far)
        seen = with_queue(far, kept, load_world(far, kept))
        kept.cache.save()
        assert seen.queue is not None and wanted.queue is not None
        assert seen.looks == wanted.looks and seen.open_jobs == wanted.open_jobs
        assert sorted(seen.queue.board.units, key=str) == sorted(wanted.queue.board.units, key=str)
        assert seen.queue.board.spots == wanted.queue.board.spots
        assert kept.cuts_of(keys.QUEUED_HELD)


@pytest.mark.parametrize("room", ["running", "cancels", "open"])
def test_listing_that_fails_beside_others_is_its_own_room_unread(room: str) -> None:
    stage = Waiting()
    stage.put("train")
    far = Bucket(Far(stage.store, fails=(f"{room}/",)), ambient=stage.clock)
    world = load_world(far, Memory())
    assert set(world.unread) == {room}
