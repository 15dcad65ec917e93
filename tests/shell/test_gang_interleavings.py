"""Two who act on one gang at once, and one who dies half-way, at every request: what is decided holds, the gang comes
to an end, and a check finds nothing that does not agree."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from stado_like.bucket import cancel, claim, gang, generations, mend
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.settle import settle
from stado_like.errors import Conflict, StoreUnavailable
from stado_like.fsck.check import check
from stado_like.job import gang_keys, keys
from stado_like.job.keys import JobId
from stado_like.job.states import Cause, JobState
from stado_like.reading.view import read_job
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import Applied, Object, Page, Stat, Unknown, Write
from tests.builders_gangs import (
    end_member,
    make_ready,
    orders,
    place,
    send_ordered,
    start,
    stops,
    submit_gang,
    take_ordered,
    tend,
    terms_of,
)
from tests.builders_jobs import Clock, attempt

Act = Callable[[Bucket, JobId], object]
ROUNDS = 60


class _Dies(Exception):
    """The process of whoever acts is gone."""


class _Struck(MemoryStore):
    """Before its n-th request something happens."""

    def __init__(self, name: str, clock: Clock, n: int, happens: Callable[[], object]) -> None:
        super().__init__(name, clock)
        self.left, self.happens, self.made = n, happens, 0

    def _strike(self) -> None:
        self.made += 1
        self.left -= 1
        if self.left == 0:
            self.happens()

    def get(self, key: str) -> Object | None:
        self._strike()
        return super().get(key)

    def head(self, key: str) -> Stat | None:
        self._strike()
        return super().head(key)

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        self._strike()
        return super().list(prefix, start_after=start_after, limit=limit)

    def create(self, key: str, body: bytes) -> Write:
        self._strike()
        return super().create(key, body)

    def put(self, key: str, body: bytes) -> Write:
        self._strike()
        return super().put(key, body)

    def delete(self, key: str) -> Applied | Unknown:
        self._strike()
        return super().delete(key)


# ---- who acts


def go(bucket: Bucket, j: JobId) -> object:
    return gang.try_go(bucket, j, 1, "w0")


def abort(bucket: Bucket, j: JobId) -> object:
    return generations.close(bucket, j, 1, "Gang barrier timed out waiting for all members", by="w1")


def ends(rank: int, cause: Cause) -> Act:
    def act(bucket: Bucket, j: JobId) -> object:
        a = attempt(j, rank)
        if bucket.end(a) is None and bucket.claim(a) is not None:
            return end_member(bucket, a, cause)
        return None

    return act


def cancels(bucket: Bucket, j: JobId) -> object:
    with suppress(Conflict):
        return cancel.cancel_job(bucket, j)
    return None


def stops_one(bucket: Bucket, j: JobId) -> object:
    with suppress(Conflict):
        return cancel.stop_task(bucket, j, 1)
    return None


def places(bucket: Bucket, j: JobId) -> object:
    wanted = gang.waits(bucket, j, terms_of(bucket, j))
    return gang.place(bucket, j, wanted.generation, dict.fromkeys(wanted.members, "w9")) if wanted else None


def claims(bucket: Bucket, j: JobId) -> object:
    _claim(bucket, "w1")
    return None


def refuses(bucket: Bucket, j: JobId) -> object:
    for asked in orders(bucket, "w1"):
        gang.refuse(bucket, asked, "w1", "no room")
    return None


def mends(bucket: Bucket, j: JobId) -> object:
    tend(bucket, j)
    return mend.mend_job(bucket, j, since=bucket.now(), claimed={}, waiting={})


# ---- what stands before


def _waits(bucket: Bucket, clock: Clock) -> JobId:
    return submit_gang(bucket)


def _placed(bucket: Bucket, clock: Clock) -> JobId:
    j = submit_gang(bucket)
    place(bucket, j)
    take_ordered(bucket, "w0")
    return j


def _placed_long_ago(bucket: Bucket, clock: Clock) -> JobId:
    j = _placed(bucket, clock)
    clock.now_s += 61
    return j


def _at_barrier(bucket: Bucket, clock: Clock) -> JobId:
    j = _placed(bucket, clock)
    take_ordered(bucket, "w1")
    for rank in (0, 1):
        make_ready(bucket, attempt(j, rank), 1)
    return j


def _running(bucket: Bucket, clock: Clock) -> JobId:
    j = submit_gang(bucket)
    start(bucket, j)
    return j


def _one_failed(bucket: Bucket, clock: Clock) -> JobId:
    j = _running(bucket, clock)
    end_member(bucket, attempt(j), Cause.FAILURE)
    return j


FAILS, OTHER_FAILS, EXITS = ends(0, Cause.FAILURE), ends(1, Cause.FAILURE), ends(0, Cause.NONE)
LOST, STOPPED = ends(0, Cause.MACHINE_LOST), ends(1, Cause.GANG)
DONE, CANCELLED = {JobState.COMPLETED}, {JobState.CANCELLED}
EITHER = DONE | CANCELLED

CASES: tuple[tuple[str, Callable[[Bucket, Clock], JobId], Act, Act, set[JobState]], ...] = (
    ("go, abort", _at_barrier, go, abort, DONE),
    ("go, an end", _at_barrier, go, LOST, DONE),
    ("go, a cancel", _at_barrier, go, cancels, CANCELLED),
    ("go, a tick", _at_barrier, go, mends, DONE),
    ("two who open", _at_barrier, go, go, DONE),
    ("placement, cancel", _waits, places, cancels, CANCELLED),
    ("placement, a person's stop of one", _waits, places, stops_one, CANCELLED),
    ("two placements", _waits, places, places, DONE),
    ("a tick that orders, a claim", _placed, mends, claims, DONE),
    ("a tick that aborts, a claim", _placed_long_ago, mends, claims, DONE),
    ("a tick that aborts, a refusal", _placed_long_ago, mends, refuses, DONE),
    ("two ticks that abort", _placed_long_ago, mends, mends, DONE),
    ("a claim, an abort", _placed, claims, abort, DONE),
    ("a claim, a cancel", _placed, claims, cancels, CANCELLED),
    ("a failure, another", _running, FAILS, OTHER_FAILS, DONE),
    ("a failure, exit 0 of the other", _running, OTHER_FAILS, EXITS, DONE),
    ("a failure, a lost machine", _running, OTHER_FAILS, LOST, DONE),
    ("a failure, a cancel", _running, FAILS, cancels, CANCELLED),
    ("a failure, a tick", _running, FAILS, mends, DONE),
    ("the last end, a tick", _one_failed, STOPPED, mends, DONE),
    ("the last end, a cancel", _one_failed, STOPPED, cancels, CANCELLED),
    ("the last end, a placement", _one_failed, STOPPED, places, DONE),
)


@pytest.mark.parametrize(("name", "setup", "one", "other", "allowed"), CASES, ids=[case[0] for case in CASES])
def test_both_at_once_come_to_a_right_end(
    name: str, setup: Callable[[Bucket, Clock], JobId], one: Act, other: Act, allowed: set[JobState]
) -> None:
    for way, first, second in ((1, one, other), (2, other, one)):
        n = 1
        while _meets(f"{name} {way} {n}", setup, first, second, n, allowed):
            n += 1


@pytest.mark.parametrize(("name", "setup", "one", "other", "allowed"), CASES, ids=[case[0] for case in CASES])
def test_who_dies_half_way_leaves_a_gang_that_others_bring_to_an_end(
    name: str, setup: Callable[[Bucket, Clock], JobId], one: Act, other: Act, allowed: set[JobState]
) -> None:
    n = 1
    while _meets(f"{name} dies {n}", setup, one, None, n, EITHER):
        n += 1


def _meets(
    name: str, setup: Callable[[Bucket, Clock], JobId], one: Act, other: Act | None, n: int, allowed: set[JobState]
) -> bool:
    """Whether the n-th request of `one` was made: before it the other acts, whole, or (None) its process dies."""
    clock = Clock()
    bucket = Bucket(MemoryStore(name, clock), ambient=clock)
    j = setup(bucket, clock)

    def happens() -> object:
        if other is None:
            raise _Dies
        return other(Bucket(MemoryStore(name, clock), ambient=clock), j)

    store = _Struck(name, clock, n, happens)
    with suppress(_Dies, StoreUnavailable):
        one(Bucket(store, ambient=clock), j)
    if store.made < n:
        return False
    state = _drain(Bucket(MemoryStore(name, clock), ambient=clock), clock, j)
    assert state in allowed, f"{name}: {state}"
    left = check(Bucket(MemoryStore(name, clock), ambient=clock), audit=True, repair=True)
    assert left.findings == [], name  # what an index still shows goes by a sweep
    return True


def _drain(bucket: Bucket, clock: Clock, j: JobId) -> JobState:
    """Ticks, and workers that live, until the job is over."""
    for _ in range(ROUNDS):
        mends(bucket, j)
        if bucket.verdict(j) is not None:
            job = bucket.job(j)
            assert job is not None
            cancel.carry_out(bucket, j, job, bucket.terms(job))
        if bucket.final(j) is not None:
            for row in bucket.store.list(keys.INBOX).rows:
                bucket.drop(row.key)  # as their workers do at a sweep
            return read_job(bucket, j).state
        for worker in ("w0", "w1", "w9"):
            while orders(bucket, worker):
                _claim(bucket, worker)
        _members_go_on(bucket, j)
        clock.now_s += 16
        wanted = gang.waits(bucket, j, terms_of(bucket, j))
        if wanted is not None and wanted.not_before <= bucket.now():
            place(bucket, j)
    raise AssertionError(f"the gang never ends: {read_job(bucket, j)}")


def _claim(bucket: Bucket, worker: str) -> None:
    """As a worker does: what is another's, or over, is no order any more."""
    found = orders(bucket, worker)
    if not found:
        return
    asked = found[0]
    sent = send_ordered(bucket, worker)
    opened = claim.gate(bucket, asked.attempt, sent[1]) if sent is not None else None
    if sent is not None and isinstance(opened, claim.Open):
        claim.confirm(bucket, asked.attempt, opened, sent[1])
    else:
        bucket.drop(asked.key)


def _members_go_on(bucket: Bucket, j: JobId) -> None:
    for row in bucket.store.list(keys.running_of(j)).rows:
        a = keys.parse_running(row.key)
        found = bucket.claim(a)
        if found is None:
            continue
        ended = bucket.end(a)
        if ended is not None:
            settle(bucket, a, ended, mending=True)
            continue
        g = found.record.generation
        verdict = generations.read_barrier(bucket, j, g)
        told = [one for one in stops(bucket, found.record.worker) if one[0] == a]
        if any(bucket.present(keys.verdict(j), keys.stop(j, a.rank))):
            end_member(bucket, a, Cause.REQUESTED, "Run cancelled")
        elif told:
            end_member(bucket, a, told[0][1], told[0][2])
        elif verdict is None:
            if not any(bucket.present(gang_keys.ready(a, g))):
                make_ready(bucket, a, g)
            gang.try_go(bucket, j, g, found.record.worker)
        else:
            end_member(bucket, a, Cause.NONE if verdict.go else Cause.BARRIER, "" if verdict.go else verdict.reason)
