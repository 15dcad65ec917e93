"""What a kill leaves half done, and the next tick finishes: one test per transition, each cut after every one of its
writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, delete
from stado_like.bucket.end import Ours, Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.errors import Exit, StadoError
from stado_like.job import keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Final
from stado_like.job.states import Cause, JobState
from stado_like.store.protocol import Applied, Unknown, Write
from tests.builders_tick import BreakableStore, Stage


class Killed(BaseException):
    """The process is gone: nothing after this line runs."""


class Fragile:
    """Kills the caller at its `after`-th write, before that write (or after it) is carried out."""

    def __init__(self, store: BreakableStore, after: int) -> None:
        self.left = after
        self.store = store
        for name in ("create", "put", "replace", "delete"):
            setattr(store, name, self._dying(getattr(store, name)))

    def _dying(self, real: Callable[..., Write]) -> Callable[..., Write]:
        def call(*args: object) -> Write:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return real(*args)

        return call

    def heal(self) -> None:
        for name in ("create", "put", "replace", "delete"):
            self.store.__dict__.pop(name, None)


def cut(stage: Stage, writes: int, act: Callable[[], object]) -> bool:
    """Carry out `act` and kill it after `writes` writes. True: it was killed; False: it came to its end."""
    fragile = Fragile(stage.store, writes)
    try:
        act()
    except Killed:
        return True
    finally:
        fragile.heal()
    return False


def every_cut(act: Callable[[Stage], Callable[[], object]], check: Callable[[Stage], None]) -> int:
    """Cut one transition after 0, 1, 2, … writes; each time three ticks must mend it.

    Returns how many cuts there were.
    """
    writes = 0
    while True:
        stage = Stage()
        work = act(stage)
        killed = cut(stage, writes, work)
        for _ in range(3):
            report = Tick(stage.bucket).step()
            assert report.exit_code is Exit.DONE, report.as_json()
        check(stage)
        if not killed:
            return writes
        writes += 1


def queued(stage: Stage) -> list[str]:
    return [str(keys.parse_entry(key).attempt) for key in stage.keys(keys.QUEUED_OPEN)]


def finish(stage: Stage, a: AttemptId, *, cause: Cause = Cause.NONE, reason: str = "done") -> None:
    job, terms = stage.job(a.job)
    ended = end_attempt(stage.bucket, a, terms, Ended(cause, reason), Seen(worker="w1", by="w1"))
    assert isinstance(ended, Ours)
    settle(stage.bucket, a, ended.end, job=job)


def test_submit_of_one_task_cut_anywhere() -> None:
    def check(stage: Stage) -> None:
        exists = bool(stage.keys(keys.JOBS))
        assert queued(stage) == (["default.train.1.00000.000001"] if exists else [])

    assert every_cut(lambda stage: lambda: stage.submit(), check) >= 3


def test_submit_of_an_array_cut_anywhere() -> None:
    def check(stage: Stage) -> None:
        exists = bool(stage.keys(keys.JOBS))
        assert len(queued(stage)) == (3 if exists else 0)
        assert stage.keys(keys.OPEN) != [] or not exists

    assert every_cut(lambda stage: lambda: stage.submit(size=5, cap=3), check) >= 6


def test_index_without_a_job_is_dropped_after_a_day() -> None:
    stage = Stage()
    assert cut(stage, 1, lambda: stage.submit(size=5))
    Tick(stage.bucket).step()
    assert len(stage.keys(keys.OPEN)) == 1
    stage.clock.pass_s(86_401)
    Tick(stage.bucket).step()
    assert stage.keys(keys.OPEN) == []


def test_retry_cut_anywhere() -> None:
    def act(stage: Stage) -> Callable[[], object]:
        a = AttemptId(stage.submit(), 0, 1)
        stage.claim(a)
        stage.beat(a)
        return lambda: finish(stage, a, cause=Cause.FAILURE, reason="Exited with code 1")

    def check(stage: Stage) -> None:
        ended = bool(stage.keys(keys.end(AttemptId(JobId("default", "train", 1), 0, 1))))
        assert len(stage.keys(keys.QUEUED_LATER)) == int(ended)
        assert len(stage.keys(keys.RUNNING)) == int(not ended)

    assert every_cut(act, check) >= 4


def test_last_end_of_an_array_cut_anywhere() -> None:
    def act(stage: Stage) -> Callable[[], object]:
        j = stage.submit(size=2, cap=1)
        first, second = AttemptId(j, 0, 1), AttemptId(j, 1, 1)
        stage.claim(first)
        finish(stage, first)
        stage.claim(second)
        return lambda: finish(stage, second)

    def check(stage: Stage) -> None:
        j = JobId("default", "train", 1)
        if stage.keys(keys.end(AttemptId(j, 1, 1))):
            final = stage.bucket.read(Final, keys.final(j))
            assert final is not None and final.record.state is JobState.COMPLETED
            assert final.record.counts == {"Completed": 2}
            assert stage.keys(keys.OPEN) == stage.keys(keys.RUNNING) == stage.keys("queued/") == []

    assert every_cut(act, check) >= 5


def test_end_that_releases_the_lane_cut_anywhere() -> None:
    def act(stage: Stage) -> Callable[[], object]:
        a = AttemptId(stage.submit(size=3, cap=1), 0, 1)
        stage.claim(a)
        return lambda: finish(stage, a)

    def check(stage: Stage) -> None:
        ended = bool(stage.keys(keys.end(AttemptId(JobId("default", "train", 1), 0, 1))))
        assert queued(stage) == (["default.train.1.00001.000001"] if ended else [])

    assert every_cut(act, check) >= 4


def test_cancel_of_a_waiting_array_cut_anywhere() -> None:
    def act(stage: Stage) -> Callable[[], object]:
        j = stage.submit(size=4, cap=2)
        return lambda: cancel.cancel_job(stage.bucket, j)

    def check(stage: Stage) -> None:
        j = JobId("default", "train", 1)
        if stage.keys(keys.verdict(j)):
            final = stage.bucket.read(Final, keys.final(j))
            assert final is not None and final.record.state is JobState.CANCELLED
            assert stage.keys("queued/") == stage.keys(keys.CANCELS) == stage.keys(keys.OPEN) == []
        else:
            assert len(queued(stage)) == 2

    assert every_cut(act, check) >= 8


@pytest.mark.parametrize("stop", [False, True])
def test_cancel_of_one_waiting_task_cut_anywhere(stop: bool) -> None:
    """Early verdict, or a person's stop, found without its index."""

    def act(stage: Stage) -> Callable[[], object]:
        j = stage.submit()
        if stop:
            return lambda: cancel.stop_task(stage.bucket, j, 0)
        return lambda: cancel.cancel_job(stage.bucket, j)

    def check(stage: Stage) -> None:
        j = JobId("default", "train", 1)
        decided = stage.keys(keys.stop(j, 0) if stop else keys.verdict(j))
        assert len(stage.keys(keys.end(AttemptId(j, 0, 1)))) == len(decided)
        assert len(queued(stage)) == 1 - len(decided)
        assert stage.keys(keys.CANCELS) == []

    assert every_cut(act, check) >= 4


def test_delete_cut_anywhere() -> None:
    def act(stage: Stage) -> Callable[[], object]:
        j = stage.submit(size=2, cap=2)
        for rank in (0, 1):
            a = AttemptId(j, rank, 1)
            stage.claim(a)
            stage.beat(a)
            finish(stage, a)
        return lambda: delete.delete_job(stage.bucket, j)

    def check(stage: Stage) -> None:
        if stage.keys(keys.DELETED):
            assert (
                stage.keys(keys.JOBS) == stage.keys(keys.STATUS) == stage.keys(keys.OPEN) == stage.keys("queued/") == []
            )
        else:
            assert len(stage.keys(keys.JOBS)) == 1

    assert every_cut(act, check) >= 5


def test_due_retry_is_moved_and_cut_anywhere() -> None:
    def act(stage: Stage) -> Callable[[], object]:
        a = AttemptId(stage.submit(), 0, 1)
        stage.claim(a)
        finish(stage, a, cause=Cause.FAILURE, reason="Exited with code 1")
        stage.clock.pass_s(60)
        return lambda: Tick(stage.bucket).step()

    def check(stage: Stage) -> None:
        assert queued(stage) == ["default.train.1.00000.000002"]
        assert stage.keys(keys.QUEUED_LATER) == []

    assert every_cut(act, check) >= 4


def test_reaping_cut_anywhere() -> None:
    """The tick itself is killed while it carries out a death."""

    def act(stage: Stage) -> Callable[[], object]:
        a = AttemptId(stage.submit(), 0, 1)
        stage.claim(a)
        stage.beat(a)
        tick = Tick(stage.bucket)
        stage.clock.pass_s(76)
        tick.step()
        stage.clock.pass_s(60)
        return tick.step

    def check(stage: Stage) -> None:
        a = AttemptId(JobId("default", "train", 1), 0, 1)
        end = stage.bucket.end(a)
        assert end is not None and end.cause is Cause.MACHINE_LOST
        assert stage.keys(keys.RUNNING) == [] and len(stage.keys(keys.QUEUED_LATER)) == 1
        assert stage.keys(keys.TICK_LOCK) == []

    assert every_cut(act, check) >= 5


def test_spent_entry_is_deleted_and_a_waiting_one_stays() -> None:
    stage = Stage()
    a = AttemptId(stage.submit("held"), 0, 1)
    b = AttemptId(stage.submit("waits"), 0, 1)
    stage.claim(a, entry_deleted=False)
    assert len(queued(stage)) == 2
    report = Tick(stage.bucket).step()
    assert report.passes["later"]["spent"] == 1
    assert queued(stage) == [str(b)]


def test_lost_entry_of_a_retry_is_written_again() -> None:
    stage = Stage()
    a = AttemptId(stage.submit(size=2), 0, 1)
    stage.claim(a)
    finish(stage, a, cause=Cause.FAILURE, reason="Exited with code 1")
    (later,) = stage.keys(keys.QUEUED_LATER)
    stage.store.delete(later)
    Tick(stage.bucket).step()
    assert stage.keys(keys.QUEUED_LATER) == [later]


def test_large_array_is_gone_through_page_by_page() -> None:
    """Never every rank of a large array in one tick: the place where it goes on is kept, also for the next process."""
    stage = Stage()
    j = stage.submit(size=1000, cap=1000)
    for key in stage.keys(keys.QUEUED_OPEN):
        stage.store.delete(key)
    counts = []
    for _ in range(5):
        Tick(stage.bucket).step()
        counts.append(len(stage.keys(keys.QUEUED_OPEN)))
    assert counts == [256, 512, 768, 1000, 1000]
    assert stage.keys(keys.OPEN) == [keys.open_index(j)]


def test_bad_records_are_set_aside_and_the_rest_goes_on() -> None:
    stage = Stage()
    a = AttemptId(stage.submit("good"), 0, 1)
    stage.claim(a)
    finish(stage, a, cause=Cause.FAILURE, reason="Exited with code 1")
    stage.clock.pass_s(60)
    for key in (
        "running/rubbish.json",
        "queued/later/rubbish.json",
        "cancels/x.json",
        "open/y.json",
        "capacity/w.json",
    ):
        stage.store.put(key, b"{")
    stage.store.put("jobs/default/bad.1.json", b'{"v":1')
    stage.store.put(keys.running(AttemptId(JobId("default", "worse", 1), 0, 1)), b"[]")
    stage.store.put(
        keys.job(JobId("default", "odd", 1)),
        b'{"v":1,"nonce":"n","request_id":"r","workspace":"default",'
        b'"name":"odd","incarnation":1,"created_ms":1,"document":{}}',
    )
    report = Tick(stage.bucket).step()
    assert report.exit_code is Exit.PARTLY
    named = " ".join(one.what + one.why for one in report.set_aside)
    for what in ("rubbish", "cancels/x", "open/y", "default.bad.1", "worse", "default.odd.1"):
        assert what in named, (what, named)
    assert queued(stage) == [str(a.next)]


def test_store_that_fails_in_one_room_defers_that_pass_only() -> None:
    stage = Stage()
    a = AttemptId(stage.submit("one"), 0, 1)
    stage.claim(a)
    finish(stage, a, cause=Cause.FAILURE, reason="Exited with code 1")
    stage.clock.pass_s(60)
    with stage.store.failing(keys.CANCELS, keys.OPEN, keys.RUNNING):
        report = Tick(stage.bucket).step()
    assert report.exit_code is Exit.PARTLY
    assert {what for what, _ in report.deferred} == {"cancels", "open", "reap"}
    assert queued(stage) == [str(a.next)]


def test_quiet_store_is_cheap_and_a_resident_writes_nothing_twice() -> None:
    stage = Stage()
    tick = Tick(stage.bucket, resident=True)
    tick.step()
    stage.store.writes.clear()
    stage.clock.pass_s(5)
    report = tick.step()
    assert report.is_idle
    assert stage.store.writes == [("create", keys.TICK_LOCK), ("delete", keys.TICK_LOCK)]
    assert report.requests["list"] == 4 and report.requests["put"] == 0 and report.requests["total"] <= 7
    stage.clock.pass_s(60)
    tick.step()
    assert ("put", keys.TICK_REPORT) in stage.store.writes


def test_reasons_of_a_cancel_reach_the_tasks_that_the_tick_ends() -> None:
    stage = Stage()
    j = stage.submit(size=2, cap=1)
    assert cut(stage, 2, lambda: cancel.cancel_job(stage.bucket, j, reason="wrong data"))
    Tick(stage.bucket).step()
    end = stage.bucket.end(AttemptId(j, 0, 1))
    assert end is not None and end.reason == "wrong data" and end.reason != reasons.RUN_CANCELLED


def test_errors_of_the_store_are_errors_of_ours() -> None:
    stage = Stage()
    stage.store.no_writes = (keys.TICK_LOCK,)
    with pytest.raises(StadoError):
        Tick(stage.bucket).step()
    assert isinstance(stage.store.create("x/y.json", b""), Applied | Unknown)


def test_stop_of_a_rank_not_released_yet_waits_in_the_index_and_costs_little() -> None:
    stage = Stage()
    j = stage.submit(size=3, cap=1)
    stage.claim(AttemptId(j, 0, 1))
    assert not cancel.stop_task(stage.bucket, j, 2)
    tick = Tick(stage.bucket, resident=True)
    tick.step()
    stage.clock.pass_s(1)
    assert tick.step().requests["get"] <= 3
    finish(stage, AttemptId(j, 0, 1))
    stage.claim(AttemptId(j, 1, 1))
    finish(stage, AttemptId(j, 1, 1))
    for _ in range(4):
        stage.clock.pass_s(15)
        tick.step()
    final = stage.bucket.final(j)
    assert final is not None and final.state is JobState.CANCELLED
    assert final.counts == {"Completed": 2, "Cancelled": 1}
    assert stage.keys(keys.CANCELS) == stage.keys(keys.OPEN) == stage.keys("queued/") == []
