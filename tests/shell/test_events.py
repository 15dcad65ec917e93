"""Events: every change of a job and its tasks in one order, each told once however often somebody looks; and what a
tick notes of jobs that wait."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.job import keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.records import Change, Heartbeat, History, Room, TickLock
from stado_like.job.states import Cause, TaskState
from stado_like.job.waits import Waiting
from stado_like.reading.events import Event, Follower, event_json, events_of
from stado_like.reading.explaining import explain, explain_json
from stado_like.reading.view import read_job
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, beat, claim, end, submit, worker


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket(clock: Clock) -> Bucket:
    return build.make_bucket(clock)


def shown(events: list[Event]) -> list[tuple[str, int, str, str]]:
    return [(one.task or "-", one.attempt, one.change.state, one.change.reason) for one in events]


def test_events_are_the_jobs_and_its_tasks_changes_oldest_first(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    clock.now_s += 5
    claim(bucket, attempt(j))
    beat(bucket, attempt(j))
    clock.now_s += 60
    end(bucket, attempt(j), 1, ran_s=60)
    events = events_of(read_job(bucket, j))
    assert shown(events)[0] == ("-", 0, "Pending", "Run created")
    assert [one[1:] for one in shown(events) if one[0] == "train-0"] == [
        (1, "Pending", "Run created"),
        (1, "Preparing", "Preparing"),
        (1, "Starting", "Process started"),
        (1, "Running", "Process running"),
        (1, "Failed", "Exited with code 1"),
        (2, "Pending", "Restarted by policy (restart 1/10)"),
    ]
    assert [one.change.at for one in events] == sorted(one.change.at for one in events)
    assert [one.worker for one in events if one.task and one.attempt == 1][1:] == ["w1"] * 4
    again = event_json(next(one for one in events if one.attempt == 2))
    assert (again["cause"], again["details"]["restart"]["count"], again["rank"]) == ("failure", 1, 0)
    assert again["details"]["restart_at"].endswith("Z")


def test_follower_tells_each_event_once(bucket: Bucket, clock: Clock) -> None:
    """A claim is seen before its supervisor's first word, a late heartbeat before its supervisor tells that it was: the
    same events, later told by who wrote them, at slightly other times."""
    j = submit(bucket, array={"size": 2})
    follower, told = Follower(), list[Event]()

    def look() -> None:
        told.extend(follower.news(read_job(bucket, j)))

    look()
    claim(bucket, attempt(j))
    look()
    look()
    assert shown(told)[-2:] == [("train-0", 1, "Preparing", "Preparing"), ("-", 0, "Pending", reasons.WAITING_TO_START)]
    assert event_json(told[-2])["details"] == {"seen_by": "reader"}
    clock.now_s += 1
    beat(bucket, attempt(j))
    began_s = clock.now_s
    look()
    clock.now_s += 80
    look()
    assert shown(told)[-1] == ("train-0", 1, "Stale", reasons.LEASE_EXPIRED)
    _beat_after_silence(bucket, j, began_s, late_at=began_s + 75.4)
    look()
    assert shown(told)[-1] == ("train-0", 1, "Running", reasons.HEARTBEAT_RECEIVED)
    _exit_0(bucket, j)
    look()
    cancel.stop_task(bucket, j, 1)
    Tick(bucket).step()
    look()
    look()
    whole = [one for one in shown(told) if one[0] != "-"]
    assert len(whole) == len(set(whole)), "nothing is told twice"
    assert [one[2] for one in whole if one[0] == "train-0"] == [
        *("Pending", "Preparing", "Starting", "Running", "Stale", "Running", "Completed")
    ]
    assert shown(told)[-1] == ("-", 0, "Cancelled", reasons.SOME_CANCELLED)


def _exit_0(bucket: Bucket, j: keys.JobId) -> None:
    """As its supervisor ends it: with the history of its heartbeats."""
    a, found, job = attempt(j), bucket.heartbeat(attempt(j)), bucket.job(j)
    assert found is not None and job is not None
    seen = Seen(worker="w1", claimed_at=bucket.now() - 90, ended_at=bucket.now(), history=found.record.history)
    done = end_attempt(bucket, a, bucket.terms(job), Ended(Cause.NONE, reasons.exited(0), 80.0), seen)
    settle(bucket, a, done.end, job=job)


def _beat_after_silence(bucket: Bucket, j: keys.JobId, began_s: float, *, late_at: float) -> None:
    found = bucket.heartbeat(attempt(j))
    assert found is not None
    history: History = found.record.history
    for state, reason, at in (
        (TaskState.STALE, reasons.LEASE_EXPIRED, late_at),
        (TaskState.RUNNING, reasons.HEARTBEAT_RECEIVED, bucket.now()),
    ):
        history = history.add(Change(state=state.value, reason=reason, at=at))
    again = Heartbeat(
        seq=2, nonce="n", worker="w1", state=TaskState.RUNNING, reason=reasons.HEARTBEAT_RECEIVED,
        started_at=began_s, running_at=began_s, at=bucket.now(), history=history,
    )  # fmt: skip
    bucket.put(keys.heartbeat(attempt(j)), again)


def test_stop_that_nobody_has_heard_is_a_readers_view(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    claim(bucket, attempt(j))
    beat(bucket, attempt(j))
    clock.now_s += 10
    cancel.cancel_job(bucket, j, reason="enough")
    events = [event_json(one) for one in events_of(read_job(bucket, j))]
    stopping = [one for one in events if one["state"] == "Stopping"]
    assert [(one["reason"], one["cause"], one["details"]) for one in stopping] == [
        ("enough", "requested", {"seen_by": "reader"})
    ]


def test_parents_end_has_its_stable_code(bucket: Bucket) -> None:
    j = submit(bucket)
    cancel.cancel_job(bucket, j, reason=reasons.PARENT_TERMINATED)
    codes = [event_json(one)["reason_code"] for one in events_of(read_job(bucket, j))]
    assert codes.count("ParentJobTerminated") == 2 and set(codes) == {None, "ParentJobTerminated"}


# ---- what a tick notes


def hint(bucket: Bucket, j: keys.JobId) -> Waiting | None:
    found = bucket.read(Waiting, keys.waiting(j))
    return found.record if found is not None else None


def test_tick_notes_why_a_job_waits_once_per_reason(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    tick = Tick(bucket)
    tick.step()
    assert hint(bucket, j) is None, "it has waited for less than a tick"
    clock.now_s += 30
    noted_at = bucket.now()
    assert tick.step().passes["waits"] == {"noted": 1}
    clock.now_s += 30
    assert tick.step().passes["waits"] == {}
    worker(bucket, free=Room(cpu_millis=10, memory_bytes=1 << 20))
    clock.now_s += 30
    assert tick.step().passes["waits"] == {"noted": 1}
    found = hint(bucket, j)
    assert found is not None and found.attempt == str(attempt(j))
    told = ["No machine fits: no machines are registered", "No machine fits: 1 of 1 machines ready"]
    assert [one.reason for one in found.history.changes] == told
    history = read_job(bucket, j).history.changes
    assert [one.reason for one in history] == ["Run created", *told]
    assert history[1].at == pytest.approx(noted_at, abs=1)


def test_another_process_goes_on_where_the_hint_stands(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    clock.now_s += 30
    Tick(bucket).step()
    clock.now_s += 60
    assert Tick(bucket).step().passes["waits"] == {}
    clock.now_s += 400
    assert Tick(bucket).step().passes["waits"] == {"noted": 1}, "put again, so that it stays young"
    found = hint(bucket, j)
    assert found is not None and len(found.history.changes) == 1


def test_hint_of_a_scheduler_is_shown_while_ticks_come_and_not_after(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    said = "Next to run (priority 0): waits for running work to end"
    bucket.put(keys.waiting(j), Waiting(attempt=str(attempt(j)), reason=said, at=bucket.now()))
    assert read_job(bucket, j).reason == "No machine fits: no machines are registered"
    bucket.put(keys.TICK_LOCK, TickLock(nonce="n", pid=1, host="h", boot_id="b", started_at=0, since=clock.now_s))
    assert read_job(bucket, j).reason == said
    clock.now_s += 700
    bucket.put(keys.TICK_LOCK, TickLock(nonce="n", pid=1, host="h", boot_id="b", started_at=0, since=clock.now_s))
    assert read_job(bucket, j).reason == "No machine fits: no machines are registered"


def test_hint_that_cannot_be_read_is_none(bucket: Bucket) -> None:
    j = submit(bucket)
    bucket.store.put(keys.waiting(j), b"no json")
    assert read_job(bucket, j).reason == "No machine fits: no machines are registered"


# ---- explain


def test_explain_names_every_machine_and_the_last_tick(bucket: Bucket, clock: Clock) -> None:
    j = submit(bucket)
    worker(bucket, "w1", free=Room(cpu_millis=500, memory_bytes=8 << 30))
    worker(bucket, "w2")
    found = explain_json(explain(bucket, j))
    machines = [(one["name"], one["fits"], one["reasons"]) for one in found["machines"]]
    assert machines == [("w1", False, ["insufficient cpu: need 1 cores, 0.5 free"]), ("w2", True, [])]
    assert (found["state"], found["reason"], found["last_tick_at"]) == ("Pending", reasons.WAITING_TO_START, None)
    assert found["tick"].startswith("no tick on this store since it was made: run `stado up`")
    assert found["waiting"] == [{"name": "train-0", "rank": 0, "reason": reasons.WAITING_TO_START}]
    Tick(bucket).step()
    clock.now_s += 30
    assert explain_json(explain(bucket, j))["tick"].startswith("the last tick on this store was at ")
