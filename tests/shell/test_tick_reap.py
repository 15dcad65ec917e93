"""Deaths decided by whole ticks on a store with a clock moved by hand: from a claim's last sign to the next attempt's
entry."""

from __future__ import annotations

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import submit as submitting
from stado_like.bucket.apply import apply
from stado_like.bucket.cancel import cancel_job
from stado_like.bucket.delete import delete_job
from stado_like.bucket.end import Seen, end_attempt
from stado_like.errors import Exit
from stado_like.job import keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, End
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from tests.builders_jobs import document as documents
from tests.builders_tick import TTL_S, Stage

STALE_S = TTL_S + 16.0


@pytest.fixture
def stage() -> Stage:
    return Stage()


def end_of(stage: Stage, a: AttemptId) -> End:
    found = stage.bucket.read(End, keys.end(a))
    assert found is not None
    return found.record


def dead(stage: Stage, name: str = "train", worker: str = "w1", **how: object) -> AttemptId:
    """A running attempt whose machine vanishes now."""
    a = AttemptId(stage.submit(name, **how), 0, 1)
    stage.claim(a, worker)
    stage.beat(a, running_at=stage.bucket.now())
    return a


def kill(stage: Stage, tick: Tick) -> None:
    """Time enough for two looks at a silent attempt."""
    stage.clock.pass_s(STALE_S)
    assert tick.step().passes["reap"]["armed"] > 0
    stage.clock.pass_s(TTL_S)
    tick.step()


def test_silent_attempt_is_reaped_once_and_its_task_queued_again(stage: Stage) -> None:
    """Long task runs twice: one attempt while it beats; stop the heartbeats, exactly one requeue."""
    a = dead(stage)
    tick = Tick(stage.bucket)
    for _ in range(20):
        stage.clock.pass_s(15)
        stage.beat(a, running_at=1.0, seq=2)
        tick.step()
    assert stage.keys(keys.running(a)) and not stage.keys(keys.QUEUED_LATER)
    last_beat_at = stage.bucket.now()
    kill(stage, tick)
    end = end_of(stage, a)
    assert (end.outcome, end.cause, end.decision) == (Outcome.DOWN, Cause.MACHINE_LOST, Decision.RETRY)
    assert end.reason == reasons.MACHINE_REMOVED and end.by == "tick" and end.budgets == Budgets(machine=1)
    assert f"{last_beat_at:.3f}" in end.notes[0]
    assert stage.keys(keys.RUNNING) == []
    (later,) = stage.keys(keys.QUEUED_LATER)
    assert keys.parse_later(later).attempt == a.next
    for _ in range(3):
        tick.step()
    assert stage.keys(keys.QUEUED_LATER) == [later] and stage.keys(keys.end(a.next)) == []


def test_first_tick_after_an_outage_of_the_coordinator_kills_nobody(stage: Stage) -> None:
    a = dead(stage)
    stage.clock.pass_s(7200)
    report = Tick(stage.bucket).step()
    assert report.passes["reap"] == {"armed": 1, "cleared": 0}
    assert stage.keys(keys.end(a)) == []


def test_ticks_of_different_processes_share_the_arming(stage: Stage) -> None:
    a = dead(stage)
    stage.clock.pass_s(STALE_S)
    Tick(stage.bucket).step()
    stage.clock.pass_s(TTL_S - 1)
    Tick(stage.bucket).step()
    assert stage.keys(keys.end(a)) == []
    stage.clock.pass_s(1)
    Tick(stage.bucket).step()
    assert end_of(stage, a).outcome is Outcome.DOWN


def test_store_clock_that_jumps_is_no_evidence_for_a_resident(stage: Stage) -> None:
    a = dead(stage)
    tick = Tick(stage.bucket, resident=True)
    stage.clock.jumped_s += 3600
    tick.step()
    stage.clock.jumped_s += 3600
    stage.clock.pass_s(5)
    tick.step()
    assert stage.keys(keys.end(a)) == []


def test_never_started_claim_is_undelivered_and_spends_nothing(stage: Stage) -> None:
    """Preemption count 250 against 3 real: worker dies between claim and exec, the attempt costs 0."""
    a = AttemptId(stage.submit(restart_policy="Never"), 0, 1)
    stage.claim(a)
    kill(stage, Tick(stage.bucket))
    end = end_of(stage, a)
    assert (end.cause, end.decision, end.budgets) == (Cause.UNDELIVERED, Decision.RETRY, Budgets())
    (entry,) = stage.keys(keys.QUEUED_OPEN)
    assert keys.parse_entry(entry).attempt == a.next


def test_own_checkpoints_keep_a_starved_attempt_alive(stage: Stage) -> None:
    a = dead(stage)
    tick = Tick(stage.bucket)
    for _ in range(8):
        stage.clock.pass_s(60)
        stage.store.put(f"{keys.checkpoints_of(a)}part", b"x")
        tick.step()
    assert stage.keys(keys.end(a)) == []
    kill(stage, tick)
    assert end_of(stage, a).outcome is Outcome.DOWN


def test_checkpoints_of_another_attempt_prove_nothing(stage: Stage) -> None:
    a = dead(stage)
    tick = Tick(stage.bucket)
    stage.clock.pass_s(STALE_S)
    stage.store.put(f"{keys.checkpoints_of(a.next)}part", b"x")
    tick.step()
    stage.clock.pass_s(TTL_S)
    tick.step()
    assert end_of(stage, a).outcome is Outcome.DOWN


def test_vouched_attempt_costs_no_read_of_its_own(stage: Stage) -> None:
    a = AttemptId(stage.submit(), 0, 1)
    claim = stage.claim(a)
    stage.clock.pass_s(10 * TTL_S)
    stage.broadcast("w1", (a, claim.nonce, True))
    tick = Tick(stage.bucket)
    tick.step()
    with stage.store.failing("status/"):
        report = tick.step()
    assert report.exit_code is Exit.DONE and not any(report.passes["reap"].values())


def test_unreadable_signals_for_ten_minutes_reap_nothing(stage: Stage) -> None:
    """Healthy job cancelled because its status could not be read: no reap, and the tick's exit says that it could not
    tell."""
    a = dead(stage)
    tick = Tick(stage.bucket)
    stage.clock.pass_s(STALE_S)
    tick.step()
    with stage.store.failing("status/"):
        for _ in range(10):
            stage.clock.pass_s(60)
            report = tick.step()
            assert report.exit_code is Exit.PARTLY
            assert any("liveness unknown for 1 jobs" in why for _, why in report.deferred)
    assert stage.keys(keys.end(a)) == []
    stage.beat(a)
    assert tick.step().passes["reap"]["cleared"] == 1


def test_end_written_between_read_and_reap_stands(stage: Stage) -> None:
    """Success overwritten by "failed": the reaper acted on an old read; its create is refused, and what stands is
    carried out."""
    a = dead(stage)
    tick = Tick(stage.bucket)
    stage.clock.pass_s(STALE_S)
    tick.step()
    stage.clock.pass_s(TTL_S)
    _, planned = tick.look()
    _, terms = stage.job(a.job)
    end_attempt(stage.bucket, a, terms, Ended(Cause.NONE, "Exited with code 0"), Seen(by="w1"))
    for action in planned.actions:
        apply(tick.bucket, action, tick.memory)
    assert end_of(stage, a).outcome is Outcome.COMPLETED
    assert stage.keys(keys.RUNNING) == [] and stage.keys("queued/") == []


def test_reads_older_than_ten_seconds_are_made_again(stage: Stage) -> None:
    a = dead(stage)
    tick = Tick(stage.bucket)
    stage.clock.pass_s(STALE_S)
    tick.step()
    stage.clock.pass_s(TTL_S)
    _, planned = tick.look()
    stage.clock.pass_s(11)
    stage.beat(a, seq=9)
    done = [apply(tick.bucket, action, tick.memory) for action in dict(planned.passes)["reap"]]
    assert done[-1].counts["recovered"] == 1 and stage.keys(keys.end(a)) == []
    stage.clock.pass_s(TTL_S + STALE_S)
    tick.step()
    stage.clock.pass_s(TTL_S)
    _, planned = tick.look()
    stage.clock.pass_s(11)
    done = [apply(tick.bucket, action, tick.memory) for action in dict(planned.passes)["reap"]]
    assert done[-1].counts["reaped"] == 1 and end_of(stage, a).outcome is Outcome.DOWN


def test_machine_lost_while_stopping_ends_cancelled(stage: Stage) -> None:
    a = dead(stage)
    cancel_job(stage.bucket, a.job)
    stage.beat(a, state=TaskState.STOPPING, running_at=1.0, stop_cause="requested")
    kill(stage, Tick(stage.bucket))
    end = end_of(stage, a)
    assert (end.outcome, end.decision) == (Outcome.CANCELLED, Decision.FINAL)
    assert end.reason == reasons.REMOVED_WHILE_STOPPING
    Tick(stage.bucket).step()
    assert stage.keys("running/") == stage.keys("queued/") == stage.keys("cancels/") == []


@pytest.mark.parametrize(
    ("promise_s", "why", "stopping"),
    [
        (1e9, reasons.NO_HEARTBEAT, reasons.LOST_WHILE_STOPPING),
        (1.0, reasons.MACHINE_LOST, reasons.LOST_WHILE_STOPPING),
        (None, reasons.MACHINE_REMOVED, reasons.REMOVED_WHILE_STOPPING),
    ],
)
def test_why_it_was_lost_is_what_its_worker_last_said(
    stage: Stage, promise_s: float | None, why: str, stopping: str
) -> None:
    """Its supervisor alone is silent; its whole machine is; its machine said good-bye."""
    for state, expected in ((TaskState.RUNNING, why), (TaskState.STOPPING, stopping)):
        a = dead(stage, state.value)
        stage.beat(a, state=state, running_at=1.0, stop_cause="moved")
        if promise_s is not None:
            stage.broadcast("w1", next_by_s=promise_s)
        kill(stage, Tick(stage.bucket))
        end = end_of(stage, a)
        assert end.reason == expected
        stale = [one for one in end.history.changes if one.state == "Stale"]
        assert [one.reason for one in stale] == ([reasons.LEASE_EXPIRED] if state is TaskState.RUNNING else [])


@pytest.mark.parametrize(
    ("asked", "decision", "state"),
    [("time-limit", Decision.FINAL, TaskState.FAILED), ("preempted", Decision.RETRY, TaskState.PENDING)],
)
def test_machine_lost_under_another_stop_ends_as_it_asked(
    stage: Stage, asked: str, decision: Decision, state: TaskState
) -> None:
    a = dead(stage)
    stage.beat(a, state=TaskState.STOPPING, running_at=1.0, stop_cause=asked)
    kill(stage, Tick(stage.bucket))
    end = end_of(stage, a)
    assert (end.cause.value, end.decision, end.state) == (asked, decision, state)


def test_lost_under_a_verdict_that_it_never_saw_is_final(stage: Stage) -> None:
    a = dead(stage)
    cancel_job(stage.bucket, a.job)
    kill(stage, Tick(stage.bucket))
    end = end_of(stage, a)
    assert (end.outcome, end.decision) == (Outcome.DOWN, Decision.FINAL)
    assert stage.keys("queued/") == []


def test_terminates_agent_job_is_completed_by_its_agents_end(stage: Stage) -> None:
    a = dead(stage, terminates_agent=True)
    kill(stage, Tick(stage.bucket))
    assert end_of(stage, a).outcome is Outcome.COMPLETED
    assert stage.keys("queued/") == []


def test_ten_minutes_running_reset_the_budget_of_machines(stage: Stage) -> None:
    a = dead(stage)
    tick = Tick(stage.bucket)
    kill(stage, tick)
    assert end_of(stage, a).budgets.machine == 1
    stage.clock.pass_s(400)
    tick.step()
    b = a.next
    stage.claim(b)
    began = stage.bucket.now()
    stage.clock.pass_s(700)
    stage.beat(b, running_at=began)
    kill(stage, tick)
    assert end_of(stage, b).budgets.machine == 1


def test_claim_of_a_job_that_is_gone_is_dropped_without_an_end(stage: Stage) -> None:
    a = dead(stage)
    stage.store.delete(keys.job(a.job))
    kill(stage, Tick(stage.bucket))
    assert stage.keys(keys.RUNNING) == [] and stage.keys(keys.end(a)) == []


def test_stray_claim_of_a_finished_task_reopens_nothing(stage: Stage) -> None:
    """Finished batch job starts again: an attempt that nobody asked for gets no end that could become the last."""
    j: JobId = stage.submit()
    a = AttemptId(j, 0, 1)
    _, terms = stage.job(j)
    end_attempt(stage.bucket, a, terms, Ended(Cause.NONE, "done"), Seen())
    stage.claim(a.next)
    kill(stage, Tick(stage.bucket))
    assert stage.keys(keys.RUNNING) == [] and stage.keys(keys.end(a.next)) == []


def test_brake_names_the_machines_and_the_exit_code_says_so(stage: Stage) -> None:
    lost = [dead(stage, f"job-{i}", f"w{i}") for i in range(3)]
    tick = Tick(stage.bucket)
    kill(stage, tick)
    report = tick.step()
    assert report.exit_code is Exit.PARTLY and report.brake is not None
    assert "3 of 3 machines" in dict(report.deferred)["brake"] and "w0, w1, w2" in dict(report.deferred)["brake"]
    assert all(stage.keys(keys.end(a)) == [] for a in lost)
    assert len(Tick(stage.bucket, reap_now=True).step().notes) == 3
    assert all(end_of(stage, a).outcome is Outcome.DOWN for a in lost)


def test_brake_lets_them_go_after_ten_minutes(stage: Stage) -> None:
    for i in range(7):
        dead(stage, f"job-{i}", f"w{i}")
    tick = Tick(stage.bucket, resident=True)
    kill(stage, tick)
    for waited_s in (299, 300):
        stage.clock.pass_s(waited_s)
        tick.step()
    assert len(stage.keys(keys.RUNNING)) == 7
    stage.clock.pass_s(1)
    tick.step()
    assert len(stage.keys(keys.RUNNING)) == 2
    stage.clock.pass_s(60)
    tick.step()
    assert stage.keys(keys.RUNNING) == []


def test_a_claim_of_a_rank_that_came_late_with_its_deleted_job_is_dropped(stage: Stage) -> None:
    """Its block never ends any more: the tombstone tells, or it would be left to that block for ever (seed 5076)."""
    j = JobId("default", "train", 1)
    job = submitting.submit(stage.bucket, documents("train", array={"size": 8, "block": 4}))
    assert isinstance(job, submitting.Submitted)
    body = stage.bucket.store.get(keys.job(j))
    assert body is not None
    cancel_job(stage.bucket, j)
    delete_job(stage.bucket, j)
    stage.bucket.store.create(keys.job(j), body.body)
    stage.claim(AttemptId(j, 2, 1))
    tick = Tick(stage.bucket)
    kill(stage, tick)
    assert stage.keys(keys.RUNNING) == [] and stage.keys(keys.STATUS) == []
