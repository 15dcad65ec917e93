"""The worker as a process: one per id, how it stops and starts again, and the warm supervisors it keeps."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from stado_like.bucket import cancel, doorbell
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.job import keys
from stado_like.job.budget import Ended
from stado_like.job.records import Capacity
from stado_like.job.states import Cause, Outcome
from stado_like.job.terms import terms_of
from tests.process.rig import Rig, carrying, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "2", "--memory", "4GiB")


def test_second_worker_of_an_id_is_refused_and_names_the_pid(rig: Rig) -> None:
    first = rig.worker("w1", *ROOM)
    second = rig.worker("w1", *ROOM, ready=False)
    assert second.process.wait(15) == 4
    assert f"pid {first.pid}" in second.said()
    assert "Traceback" not in second.said()
    assert rig.end(rig.submit("still-works", "true")).outcome is Outcome.COMPLETED


def test_same_id_on_another_machine_is_refused_while_its_word_is_fresh(rig: Rig) -> None:
    """Replicas collide under one node name: two machines, one worker id."""
    rig.worker("w1", *ROOM)
    until(lambda: rig.bucket.read(Capacity, keys.capacity("w1")), 10, "the first one has spoken")
    second = rig.worker("w1", *ROOM, state=rig.folder / "another-machine", ready=False)
    assert second.process.wait(15) == 4
    assert "already runs on" in second.said()


def test_sigterm_leaves_tasks_running_says_so_and_the_next_start_adopts(rig: Rig) -> None:
    first = rig.worker("w1", *ROOM)
    gate = rig.folder / "gate"
    j = rig.submit("goes-on", f"while [ ! -e {gate} ]; do sleep 0.05; done")
    rig.running(j)
    said = first.terminate()
    assert first.process.returncode == 0
    assert "1 tasks go on" in said or "1 task goes on" in said
    assert rig.bucket.store.head(keys.capacity("w1")) is None
    assert first.folder(keys.AttemptId(j, 0, 1)).is_alive()
    second = rig.worker("w1", *ROOM)
    assert "adopted 1" in second.said()
    gate.touch()
    assert rig.end(j).outcome is Outcome.COMPLETED
    rig.settled(j)
    second.terminate()


def test_adopted_task_is_cancelled_within_two_seconds(rig: Rig) -> None:
    first = rig.worker("w1", *ROOM)
    j = rig.submit("adopted", "exec sleep 300", task={"heartbeat_ttl_seconds": 60})
    rig.running(j)
    first.kill()
    rig.worker("w1", *ROOM)
    asked_s = time.monotonic()
    cancel.cancel_job(rig.bucket, j)
    assert rig.end(j).outcome is Outcome.CANCELLED
    assert time.monotonic() - asked_s < 2


def test_once_ends_after_what_it_claimed(rig: Rig) -> None:
    jobs = [rig.submit(f"once-{i}", "sleep 0.3", cores=2) for i in range(2)]
    worker = rig.worker("w1", *ROOM, "--once", ready=False)
    assert worker.process.wait(20) == 0
    assert rig.end(jobs[0]).outcome is Outcome.COMPLETED
    assert rig.bucket.claim(keys.AttemptId(jobs[1], 0, 1)) is None


def test_until_idle_ends_by_itself_and_takes_its_word_away(rig: Rig) -> None:
    j = rig.submit("busy", "sleep 1.5")
    worker = rig.worker("w1", *ROOM, "--until-idle", "1s", ready=False)
    assert worker.process.wait(20) == 0
    end = rig.end(j)
    assert end.outcome is Outcome.COMPLETED
    assert rig.bucket.store.head(keys.capacity("w1")) is None


def test_cancel_of_queued_jobs_ends_them_at_once(rig: Rig) -> None:
    j = rig.submit("nobody", "true", array={"size": 3})
    done = cancel.cancel_job(rig.bucket, j)
    assert (done.ended, done.running, done.over) == (3, 0, True)
    rig.worker("w1", *ROOM)
    after = rig.submit("after", "true")
    assert rig.end(after).outcome is Outcome.COMPLETED
    assert {rig.end(j, rank).by for rank in range(3)} == {"canceller"}


def test_lost_bell_cancel_begins_within_a_quarter_ttl(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    j = rig.submit("unheard", "exec sleep 300")
    rig.running(j)
    bell = rig.folder / "store" / keys.DOORBELL
    asked_s = time.monotonic()
    cancel.cancel_job(rig.bucket, j)
    bell.unlink()
    assert rig.end(j).outcome is Outcome.CANCELLED
    assert time.monotonic() - asked_s < 10 / 4 + 1.0


# ---- warm supervisors


def test_warm_supervisors_take_many_short_tasks(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    log = rig.folder / "parents"
    j = rig.submit("short", f"echo $PPID >> {log}", cores=1, array={"size": 50})
    for rank in range(50):
        assert rig.end(j, rank).outcome is Outcome.COMPLETED
    parents = log.read_text().split()
    assert len(parents) == 50
    assert len(set(parents)) <= 10


def test_nothing_of_one_task_reaches_the_next_in_a_warm_supervisor(rig: Rig) -> None:
    """A stop, a follower, a leftover child, an output: each ends with its own task."""
    worker = rig.worker("w1", "--cpus", "1", "--memory", "1GiB")
    log = rig.folder / "log"
    for i in range(12):
        j = rig.submit(f"stopped-{i}", f"echo $PPID >> {log}; sleep 0.5 & exec sleep 300", cores=1)
        until(lambda j=j: worker.folder(keys.AttemptId(j, 0, 1)).read_proc(), 5, "it starts")  # type: ignore[misc]
        doorbell.ring(rig.bucket, ("follow", str(j)), until=rig.bucket.now() + 60)
        cancel.cancel_job(rig.bucket, j)
        following = rig.submit(
            f"free-{i}", f'echo $PPID >> {log}; echo mine; [ ! -e "$STADO_STOP_FILE" ] || exit 9', cores=1
        )
        os.kill(worker.pid, 0)
        doorbell.ring(rig.bucket, ("cancel", str(j)))  # a nudge at the border, for one that has ended
        stopped, free = rig.end(j), rig.end(following)
        assert (stopped.outcome, free.outcome, free.exit_code) == (Outcome.CANCELLED, Outcome.COMPLETED, 0)
        assert rig.output(following) == b"mine\n"
        assert free.notes == ()
    assert len(set(log.read_text().split())) < 24  # else nothing was shared, and nothing proven


def test_fenced_task_retires_its_supervisor_and_is_killed(rig: Rig) -> None:
    """Two live copies after a partition: who finds its attempt ended by another kills it and writes nothing more."""
    worker = rig.worker("w1", "--cpus", "1", "--memory", "1GiB")
    j = rig.submit("fenced", "sleep 511.5 & exec sleep 511.5", cores=1)
    a = keys.AttemptId(j, 0, 1)
    pid = worker.supervisor(a)
    rig.running(j)
    job = rig.bucket.job(j)
    assert job is not None
    made = end_attempt(
        rig.bucket, a, terms_of(job.document), Ended(Cause.MACHINE_LOST, "thought dead"), Seen(by="tick")
    )
    settle(rig.bucket, a, made.end, job=job)
    before = rig.beat(j)
    until(lambda: not psutil.pid_exists(pid), 5, "the fenced supervisor ends")
    after = rig.beat(j)
    assert before is not None and after is not None
    assert after.seq - before.seq <= 1
    assert rig.bucket.end(a) == made.end
    until(lambda: worker.folder(keys.AttemptId(j, 0, 2)).read_proc(), 10, "the second attempt starts here again")
    assert len(carrying("sleep 511.5")) == 2  # only the second attempt's
    cancel.cancel_job(rig.bucket, j)
    rig.last(j)


def test_idle_supervisor_ends_with_its_agent(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    log = rig.folder / "parent"
    rig.end(rig.submit("short", f"echo $PPID > {log}"))
    pid = int(log.read_text())
    assert psutil.pid_exists(pid)
    worker.kill()
    until(lambda: not _lives(pid), 5, "the idle supervisor ends")


def test_idle_supervisor_is_let_go_after_some_seconds(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    log = rig.folder / "parent"
    rig.end(rig.submit("short", f"echo $PPID > {log}"))
    until(lambda: not _lives(int(log.read_text())), 10, "the idle supervisor ends")


def test_stopped_warm_supervisor_does_not_hold_up_the_next_task(rig: Rig) -> None:
    """One that takes the message and never reads it: the attempt is started by another, once."""
    worker = rig.worker("w1", *ROOM)
    log = rig.folder / "log"
    first = rig.submit("first", f"echo $PPID > {log}")
    until(worker.folder(keys.AttemptId(first, 0, 1)).is_done, 10, "it is idle")
    pid = int(log.read_text())
    os.kill(pid, signal.SIGSTOP)
    effect = rig.folder / "effect"
    try:
        j = rig.submit("second", f"echo $STADO_ATTEMPT >> {effect}")
        n, end = rig.last(j, within_s=30)
        assert end.outcome is Outcome.COMPLETED
        assert end.budgets.failures == end.budgets.machine == 0
    finally:
        with suppress(ProcessLookupError):  # killed by its agent, as deaf
            os.kill(pid, signal.SIGCONT)
    until(lambda: not _lives(pid), 15, "it wakes, finds its work done by another, and ends")
    assert effect.read_text().split() == [str(n)]


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
