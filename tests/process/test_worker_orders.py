"""Orders and wishes on real workers: a drain moves a task to another machine, a requeue starts it again, a cordon and
a pause stop claims, and all of it holds across the death of an agent."""

from __future__ import annotations

import pytest

from stado_like.bucket import cancel, order, pausing, workers
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity, End
from stado_like.job.states import Cause, Decision, Outcome
from stado_like.store.protocol import list_all
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "2", "--memory", "4GiB")
WAITS = 'trap "cp $STADO_STOP_FILE {copy}; exit 0" TERM; while [ ! -e {gate} ]; do sleep 0.05; done'
TOLD = "; echo attempt=$STADO_ATTEMPT cause=$STADO_RESTART_CAUSE reason=$STADO_RESTART_REASON"


def waits(rig: Rig, name: str) -> str:
    """Until the gate is there; asked to stop, it keeps the stop file."""
    return WAITS.format(copy=rig.folder / f"{name}.stop", gate=rig.folder / "gate") + TOLD


def spoke(rig: Rig, worker: str) -> Capacity | None:
    found = rig.bucket.read(Capacity, keys.capacity(worker))
    return found.record if found is not None else None


def cordoned(rig: Rig, worker: str) -> None:
    """Until the worker says that it obeys the record that stands."""
    nonce = workers.read(rig.bucket, worker).nonce

    def obeys() -> bool:
        said = spoke(rig, worker)
        return said is not None and said.wanted == nonce

    until(obeys, 10, f"{worker} has heard; workers said: {[one.said() for one in rig.workers]}")


def nothing_spent(end: End) -> bool:
    return (end.budgets.failures, end.budgets.machine) == (0, 0)


def inbox(rig: Rig) -> list[str]:
    return [row.key for row in list_all(rig.bucket.store, keys.INBOX)]


def test_drain_moves_a_running_task_and_spends_nothing(rig: Rig) -> None:
    """Case: toggling a drain on the host of a completed job starts it again: here, none is made."""
    rig.worker("w1", *ROOM)
    done = rig.submit("done-before", "true")
    rig.end(done)
    rig.settled(done)
    j = rig.submit("moves", waits(rig, "moves"))
    rig.running(j)
    second = rig.worker("w2", *ROOM)
    workers.drain(rig.bucket, "w1", reason="a fan", by="ada")
    first = rig.end(j, within_s=15)
    assert (first.outcome, first.cause, first.decision) == (Outcome.CANCELLED, Cause.MOVED, Decision.RETRY)
    assert first.reason == "Moved off machine w1: it is being drained" and first.worker == "w1"
    assert nothing_spent(first)
    stop_file = (rig.folder / "moves.stop").read_text()
    assert "moved" in stop_file and "it is being drained" in stop_file
    beat = rig.running(j, n=2)
    assert beat.worker == "w2"

    def let_go() -> bool:
        said = spoke(rig, "w1")
        return said is not None and not said.held and not said.accepting and said.why_not == "cordoned: a fan"

    until(let_go, 10, "w1 says that it holds nothing")
    workers.uncordon(rig.bucket, "w1", by="ada")
    cordoned(rig, "w1")
    (rig.folder / "gate").touch()
    n, last = rig.last(j)
    assert (n, last.outcome) == (2, Outcome.COMPLETED)
    assert b"attempt=2 cause=moved reason=Moved off machine w1: it is being drained" in rig.output(j, n=2)
    assert rig.bucket.end(AttemptId(done, 0, 2)) is None
    assert "Traceback" not in second.said()


def test_drained_worker_puts_a_resident_job_back_and_another_runs_it_again(rig: Rig) -> None:
    """It is put back, not stopped: nothing is spent, not even an eviction, however often machines close."""
    rig.worker("w1", *ROOM)
    spends_none = {"max_retries_preemption": 0}
    j = rig.submit("serves", waits(rig, "serves"), lifetime="Service", resident=True, resilience=spends_none)
    for n, (here, there) in enumerate((("w1", "w2"), ("w2", "w1")), start=1):
        assert rig.running(j, n=n).worker == here
        if n == 1:
            rig.worker("w2", *ROOM)
        workers.drain(rig.bucket, here, by="ada")
        end = rig.end(j, n=n, within_s=15)
        assert (end.outcome, end.cause, end.decision) == (Outcome.CANCELLED, Cause.MOVED, Decision.RETRY)
        assert nothing_spent(end) and end.budgets.preemptions == 0
        assert rig.running(j, n=n + 1).worker == there
        workers.uncordon(rig.bucket, here, by="ada")
        cordoned(rig, here)
    assert rig.bucket.verdict(j) is None
    assert b"attempt=" not in rig.output(j, n=3)
    cancel.cancel_job(rig.bucket, j)
    assert rig.end(j, n=3, within_s=15).cause is Cause.REQUESTED


def test_requeue_starts_a_task_again_on_the_same_machine(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    j = rig.submit("again", waits(rig, "again"))
    rig.running(j)
    done = order.requeue(rig.bucket, j, 0, by="ada")
    assert (done.how, done.worker) == (order.Requeue.STOPPING, "w1")
    first = rig.end(j, within_s=15)
    assert (first.outcome, first.cause, first.decision) == (Outcome.CANCELLED, Cause.REQUEUED, Decision.RETRY)
    assert first.reason == "Requeued by ada" and nothing_spent(first) and first.budgets.preemptions == 0
    rig.running(j, n=2)
    (rig.folder / "gate").touch()
    assert rig.last(j)[0] == 2
    assert b"attempt=2 cause=requeued reason=Requeued by ada" in rig.output(j, n=2)
    until(lambda: not inbox(rig), 10, "the order is gone with its attempt")


def test_order_given_while_the_agent_is_away_is_carried_out_by_the_next(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    j = rig.submit("orphaned", waits(rig, "orphaned"))
    rig.running(j)
    worker.kill()
    order.requeue(rig.bucket, j, 0, by="ada")
    rig.worker("w1", *ROOM)
    assert rig.end(j, within_s=20).cause is Cause.REQUEUED
    (rig.folder / "gate").touch()
    assert rig.last(j)[0] == 2


def test_cordoned_worker_claims_nothing_also_after_its_restart(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    workers.cordon(rig.bucket, "w1", by="ada")
    cordoned(rig, "w1")
    j = rig.submit("waits", "true")
    worker.terminate()
    rig.worker("w1", *ROOM)
    cordoned(rig, "w1")
    assert rig.bucket.claim(AttemptId(j, 0, 1)) is None and rig.bucket.end(AttemptId(j, 0, 1)) is None
    workers.uncordon(rig.bucket, "w1", by="ada")
    assert rig.end(j).outcome is Outcome.COMPLETED


def test_paused_queue_is_claimed_from_by_nobody_until_it_goes_on(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    j = rig.submit("runs-on", waits(rig, "runs-on"))
    rig.running(j)
    pausing.pause(rig.bucket, reason="a new switch")
    until(lambda: "The queue is paused: a new switch" in worker.said(), 10, "w1 has heard of the pause")
    other = rig.submit("waits", "true")
    (rig.folder / "gate").touch()
    assert rig.end(j).outcome is Outcome.COMPLETED, "what runs goes on"
    rig.settled(j)
    assert rig.bucket.claim(AttemptId(other, 0, 1)) is None and rig.bucket.end(AttemptId(other, 0, 1)) is None
    pausing.resume(rig.bucket)
    assert rig.end(other).outcome is Outcome.COMPLETED
