"""A bucket in which nothing went wrong gives no finding, whatever its jobs are doing, and a check writes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.delete import delete_job
from stado_like.errors import StoreUnavailable
from stado_like.fsck.check import check
from stado_like.job import keys
from stado_like.job.states import Cause, TaskState
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Object, Page
from tests.builders_check import DAY_AND_MORE_S, Yard, codes, only_entry
from tests.builders_jobs import Clock, attempt, beat, claim, end, run, submit, worker


@pytest.fixture
def yard(request: pytest.FixtureRequest) -> Yard:
    return Yard(request.node.nodeid)


def _queued(b: Bucket) -> None:
    submit(b)


def _preparing(b: Bucket) -> None:
    claim(b, attempt(submit(b)))


def _running(b: Bucket) -> None:
    worker(b)
    a = attempt(submit(b))
    claim(b, a)
    beat(b, a, TaskState.RUNNING)


def _completed(b: Bucket) -> None:
    run(b, attempt(submit(b)))


def _waits_for_retry(b: Bucket) -> None:
    run(b, attempt(submit(b)), 1)


def _retries_spent(b: Bucket) -> None:
    j = submit(b, template={"resilience": {"max_restarts": 2}})
    for n in (1, 2, 3):
        run(b, attempt(j, n=n), 1)


def _moved_and_lost(b: Bucket) -> None:
    j = submit(b)
    for n, cause in enumerate((Cause.MOVED, Cause.MACHINE_LOST, Cause.PREEMPTED, Cause.UNDELIVERED, Cause.NONE), 1):
        run(b, attempt(j, n=n), cause=cause, reason="x", ran_s=700.0 if n == 3 else 1.0)


def _overran(b: Bucket) -> None:
    run(b, attempt(submit(b)), cause=Cause.TIME_LIMIT, reason="x")


def _cancelled_queued(b: Bucket) -> None:
    cancel.cancel_job(b, submit(b))


def _being_cancelled(b: Bucket) -> None:
    j = submit(b)
    claim(b, attempt(j))
    cancel.cancel_job(b, j)


def _cancelled_by_its_holder(b: Bucket) -> None:
    _being_cancelled(b)
    end(b, attempt(keys.parse_job("jobs/default/train.1.json")), cause=Cause.REQUESTED, reason="x")
    Tick(b).step()


def _array(b: Bucket) -> None:
    submit(b, array={"size": 70, "block": 1})


def _array_half_way(b: Bucket) -> None:
    j = submit(b, array={"size": 5, "max_parallel": 2})
    run(b, attempt(j, 0))
    run(b, attempt(j, 1), 1)
    claim(b, attempt(j, 2))


def _wide_array_half_way(b: Bucket) -> None:
    j = submit(b, array={"size": 130, "block": 1})
    claim(b, attempt(j, 0))
    run(b, attempt(j, 1))
    run(b, attempt(j, 2), 1)
    run(b, attempt(j, 65))


def _array_over(b: Bucket) -> None:
    j = submit(b, array={"size": 3, "max_parallel": 2})
    for rank in range(3):
        run(b, attempt(j, rank))


def _array_failed(b: Bucket) -> None:
    j = submit(b, array={"size": 5, "max_parallel": 2}, template={"restart_policy": "Never"})
    run(b, attempt(j, 0), 1)
    Tick(b).step()


def _array_cancelled(b: Bucket) -> None:
    j = submit(b, array={"size": 5, "max_parallel": 2})
    run(b, attempt(j, 0))
    cancel.cancel_job(b, j)


def _unreleased_rank_stopped(b: Bucket) -> None:
    cancel.stop_task(b, submit(b, array={"size": 5, "max_parallel": 2}), 4)


def _rank_stopped(b: Bucket) -> None:
    cancel.stop_task(b, submit(b, array={"size": 5, "max_parallel": 2}), 1)


def _deleted(b: Bucket) -> None:
    for name, more in (("train", {}), ("arr", {"array": {"size": 2}})):
        j = submit(b, name, **more)
        cancel.cancel_job(b, j)
        delete_job(b, j)


def _name_used_again(b: Bucket) -> None:
    _deleted(b)
    run(b, attempt(submit(b)))


def _ticked(b: Bucket) -> None:
    _running(b)
    Tick(b).step()


STATES: tuple[Callable[[Bucket], None], ...] = (
    _queued,
    _preparing,
    _running,
    _completed,
    _waits_for_retry,
    _retries_spent,
    _moved_and_lost,
    _overran,
    _cancelled_queued,
    _being_cancelled,
    _cancelled_by_its_holder,
    _array,
    _array_half_way,
    _wide_array_half_way,
    _array_over,
    _array_failed,
    _array_cancelled,
    _unreleased_rank_stopped,
    _rank_stopped,
    _deleted,
    _name_used_again,
    _ticked,
)


@pytest.mark.parametrize("make", STATES, ids=lambda make: make.__name__[1:])
def test_nothing_is_found_in_a_bucket_where_nothing_went_wrong(yard: Yard, make: Callable[[Bucket], None]) -> None:
    make(yard.bucket())
    before = yard.contents()
    for audit in (False, True):
        said = yard.check(audit=audit, repair=True)
        assert (said.findings, said.repaired) == ([], [])
    yard.clock.now_s += DAY_AND_MORE_S  # nothing becomes wrong by waiting
    assert yard.check().findings == []
    assert yard.contents() == before


def test_all_states_side_by_side_are_counted(yard: Yard) -> None:
    """Names of which one begins like another lie in the same order in every room."""
    b = yard.bucket()
    for name in ("a", "a-b", "a0", "a_", "b", "A"):
        run(b, attempt(submit(b, name)))
        submit(b, f"{name}-2", metadata={"workspace": "w-1"})
    said = yard.check(audit=True)
    assert said.findings == []
    assert {name: said.counts[name] for name in ("jobs", "ends", "ends_read", "entries", "claims", "workers")} == {
        "jobs": 12,
        "ends": 6,
        "ends_read": 6,
        "entries": 6,
        "claims": 0,
        "workers": 0,
    }


def test_a_store_that_does_not_answer_is_never_clean(yard: Yard) -> None:
    """A transport error is not taken for an answer."""

    class Away(MemoryStore):
        broken = ""

        def get(self, key: str) -> Object | None:
            if self.broken and key.startswith(self.broken):
                raise StoreUnavailable(f"no answer for {key}")
            return super().get(key)

        def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
            if self.broken and prefix.startswith(self.broken):
                raise StoreUnavailable(f"no answer for {prefix}")
            return super().list(prefix, start_after=start_after, limit=limit)

    _completed(yard.bucket())
    for broken in ("jobs/", "status/", "running/", "deleted/"):
        store = Away(yard.name, yard.clock)
        store.broken = broken
        with pytest.raises(StoreUnavailable):
            check(Bucket(store, ambient=yard.clock), repair=True)


# ---- a bucket in use


class _Meanwhile(MemoryStore):
    """Somebody acts once, when a listing of `room` has just been made."""

    def __init__(self, name: str, clock: Clock, room: str, act: Callable[[], object]) -> None:
        super().__init__(name, clock)
        self._room, self._act = room, act

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        page = super().list(prefix, start_after=start_after, limit=limit)
        if prefix == self._room:
            self._room = "done"
            self._act()
        return page


ROOMS = ("queued/later/", "queued/open/", "running/", "cancels/", "open/", "deleted/", "jobs/", "status/", "logs/")
ACTS: dict[str, Callable[[Bucket], object]] = {
    "submit": lambda b: submit(b, "new"),
    "submit an array": lambda b: submit(b, "new", array={"size": 70, "block": 1}),
    "claim": lambda b: claim(b, attempt(keys.parse_job("jobs/default/train.1.json"))),
    "run": lambda b: run(b, attempt(keys.parse_job("jobs/default/train.1.json"))),
    "run, retry": lambda b: run(b, attempt(keys.parse_job("jobs/default/train.1.json")), 1),
    "cancel": lambda b: cancel.cancel_job(b, keys.parse_job("jobs/default/train.1.json")),
    "delete": lambda b: delete_job(b, keys.parse_job("jobs/default/over.1.json")),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("repair", [False, True])
def test_what_goes_on_meanwhile_is_no_finding(yard: Yard, act: str, room: str, repair: bool) -> None:
    """Counts that differ between two listings: whatever looks wrong is asked for by its key before anything is done."""
    b = yard.bucket()
    submit(b)
    run(b, attempt(submit(b, "over")))
    store = _Meanwhile(yard.name, yard.clock, room, lambda: ACTS[act](yard.bucket()))
    said = check(Bucket(store, ambient=yard.clock), repair=repair)
    assert (said.findings, said.repaired) == ([], [])
    assert yard.check(audit=True).findings == []


def test_a_suspect_is_looked_at_again_after_a_while_and_nobody_waits_for_a_clean_bucket(yard: Yard) -> None:
    b = yard.bucket()
    key = only_entry(b, submit(b))
    assert yard.check(settle_s=2.0).findings == []
    assert yard.clock.slept_s == []
    body = b.store.get(key)
    assert body is not None
    b.store.delete(key)
    yard.clock.while_asleep = lambda: b.store.put(key, body.body)  # its submitter was only slow
    assert yard.check(settle_s=2.0).findings == []
    assert yard.clock.slept_s == [2.0]
    b.store.delete(key)
    yard.clock.while_asleep = None
    assert codes(yard.check(settle_s=2.0).findings) == {"attempt-lost"}
