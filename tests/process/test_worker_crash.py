"""Agents, nurseries and supervisors killed or stopped at the wrong moment: tasks go on or end, and none runs twice."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import orjson
import psutil
import pytest

from stado_like.bucket import doorbell, finish
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.job import keys
from stado_like.job.budget import Ended
from stado_like.job.keys import JobId
from stado_like.job.records import End
from stado_like.job.states import Cause, Outcome
from stado_like.job.terms import terms_of
from stado_worker.shim.cgroup import AttemptGroup
from tests.process.rig import Rig, WorkerProcess, carrying, document, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "4", "--memory", "8GiB")


def effects(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


def test_two_workers_200_tasks_each_runs_once(rig: Rig) -> None:
    """Finished work is neither lost nor doubled, whoever claims."""
    log = rig.folder / "effects"
    for name in ("w1", "w2"):
        rig.worker(name, *ROOM, state=rig.folder / f"state-{name}")
    j = rig.submit("many", f"echo $RANK.$STADO_ATTEMPT >> {log}", array={"size": 200})
    for rank in range(200):
        rig.end(j, rank, within_s=40)
        rig.settled(j, rank)
    job = rig.bucket.job(j)
    assert job is not None
    finish.finish_if_over(rig.bucket, j, job, terms_of(job.document))  # of so many tasks a tick or a waiter writes it
    final = rig.bucket.final(j)
    assert final is not None
    assert (final.state.value, dict(final.counts)) == ("Completed", {"Completed": 200})
    assert effects(log) == Counter({f"{rank}.1": 1 for rank in range(200)})
    workers = Counter(rig.end(j, rank).worker for rank in range(200))
    assert set(workers) == {"w1", "w2"}
    indexes = ("queued/", "running/", "open/", "cancels/")
    until(lambda: not any(rig.bucket.store.list(prefix).rows for prefix in indexes), 5, "nothing is left in any index")


def gated(rig: Rig, tasks: int) -> tuple[JobId, Path, Path]:
    """An array whose tasks say that they began, wait for a file, and say that they ended."""
    log, gate = rig.folder / "effects", rig.folder / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    script = f"echo b$RANK.$STADO_ATTEMPT >> {log}; {wait}; echo e$RANK.$STADO_ATTEMPT >> {log}"
    return rig.submit("gated", script, array={"size": tasks}), log, gate


def began(rig: Rig, log: Path, tasks: int) -> None:
    until(lambda: sum(1 for one in effects(log) if one.startswith("b")) == tasks, 15, f"{tasks} tasks began")


def all_once(rig: Rig, j: JobId, log: Path, tasks: int) -> None:
    until(lambda: rig.bucket.final(j), 20, "the job ends")
    ends = [rig.end(j, rank) for rank in range(tasks)]
    assert [(end.outcome, end.is_final) for end in ends] == [(Outcome.COMPLETED, True)] * tasks
    assert effects(log) == Counter({f"{what}{rank}.1": 1 for rank in range(tasks) for what in "be"})


def test_agent_killed_tasks_go_on_and_are_adopted(rig: Rig) -> None:
    """Orphans survive a killed worker: on restart it finds and adopts them."""
    first = rig.worker("w1", *ROOM)
    j, log, gate = gated(rig, 3)
    began(rig, log, 3)
    supervisors = {first.supervisor(keys.AttemptId(j, rank, 1)) for rank in range(3)}
    first.kill()
    second = rig.worker("w1", *ROOM)
    assert "adopted 3" in second.said()
    assert {second.supervisor(keys.AttemptId(j, rank, 1)) for rank in range(3)} == supervisors
    gate.touch()
    all_once(rig, j, log, 3)


def test_agent_killed_tasks_end_without_any_agent(rig: Rig) -> None:
    first = rig.worker("w1", *ROOM)
    j, log, gate = gated(rig, 2)
    began(rig, log, 2)
    first.kill()
    gate.touch()
    all_once(rig, j, log, 2)
    second = rig.worker("w1", *ROOM)
    assert "adopted" not in second.said()


def test_nursery_killed_tasks_go_on_and_new_ones_start(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    j, log, gate = gated(rig, 3)
    began(rig, log, 3)
    old = worker.nursery()
    os.kill(old, signal.SIGKILL)
    after = rig.submit("after", f"echo after >> {log}")
    assert rig.end(after).outcome is Outcome.COMPLETED
    assert worker.nursery() != old
    gate.touch()
    until(lambda: rig.bucket.final(j), 20, "the job ends")
    assert effects(log) == Counter({f"{what}{rank}.1": 1 for rank in range(3) for what in "be"}) + Counter(["after"])


def test_stopped_nursery_wakes_after_its_agent_was_replaced(rig: Rig) -> None:
    """An old nursery must not start what the new agent settled or started: nothing runs twice."""
    first = rig.worker("w1", *ROOM)
    log = rig.folder / "effects"
    old = first.nursery()
    os.kill(old, signal.SIGSTOP)
    j = rig.submit("asleep", f"echo $STADO_ATTEMPT >> {log}")
    a = keys.AttemptId(j, 0, 1)
    until(lambda: first.folder(a).read_task(), 10, "the launch is asked of the stopped nursery")
    first.kill()
    second = rig.worker("w1", *ROOM)
    n, end = rig.last(j)
    os.kill(old, signal.SIGCONT)
    until(lambda: old not in carrying("stado_worker.nursery"), 10, "the old nursery ends")
    assert end.outcome is Outcome.COMPLETED
    again = rig.submit("awake", "true")
    rig.end(again)
    assert effects(log) == Counter([str(n)])
    assert rig.bucket.end(keys.AttemptId(j, 0, n + 1)) is None
    assert second.process.poll() is None


def test_slow_nursery_is_replaced_and_nothing_runs_twice(rig: Rig) -> None:
    """The nursery sleeps through a launch under a living agent, and wakes when another has done its work."""
    worker = rig.worker("w1", *ROOM)
    log = rig.folder / "effects"
    old = worker.nursery()
    os.kill(old, signal.SIGSTOP)
    j = rig.submit("slow", f"echo $STADO_ATTEMPT >> {log}")
    n, end = rig.last(j, within_s=30)
    assert end.outcome is Outcome.COMPLETED
    assert effects(log) == Counter([str(n)])
    assert rig.end(j).budgets.failures == 0
    assert old not in carrying("stado_worker.nursery")


def wrapped(grouped: bool) -> list[str]:
    """How to start a worker that finds no control groups of version 2."""
    if grouped:
        if AttemptGroup.make(f"stado-probe-{os.getpid()}") is None:
            pytest.skip("no control group can be made here")
        AttemptGroup.find(f"stado-probe-{os.getpid()}").remove()  # type: ignore[union-attr]
        return []
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("hiding the control groups from a worker needs root and unshare")
    return ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified && exec "$@"', "sh"]


@pytest.mark.parametrize("grouped", [True, False], ids=["cgroup", "environment"])
def test_supervisor_killed_its_whole_tree_dies_and_the_attempt_is_down_at_once(rig: Rig, grouped: bool) -> None:
    """kill -9 of a supervisor whose command's children called setsid: nothing is left, retried as machine-lost."""
    worker = rig.worker("w1", *ROOM, wrap=wrapped(grouped))
    second_run = rig.folder / "second"
    clear = "env -i " if grouped else ""
    script = (
        f"[ $STADO_ATTEMPT = 2 ] && {{ touch {second_run}; exit 0; }}; "
        f"setsid {clear}sleep 417.25 & setsid sh -c '(trap \"\" TERM; sleep 417.25) & sleep 417.25' & sleep 417.25"
    )
    j = rig.submit("killed", script)
    a = keys.AttemptId(j, 0, 1)
    pid = worker.supervisor(a)
    until(lambda: len(carrying("sleep 417.25")) >= 4, 5, "the whole tree runs")
    assert (worker.folder(a).group_name() is not None) == grouped
    killed_s = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    end = rig.end(j, within_s=5)
    assert time.monotonic() - killed_s < 4
    assert carrying("417.25") == set()
    assert (end.outcome, end.cause, end.reason) == (
        Outcome.DOWN,
        Cause.MACHINE_LOST,
        "Machine lost: the task's supervisor died",
    )
    second = rig.end(j, n=2)
    assert (second.outcome, second.is_final, second.budgets.machine) == (Outcome.COMPLETED, True, 1)
    assert second_run.exists()
    assert 0.99 < end.due_ms / 1000 - end.ended_at < 1.01


def away(rig: Rig, *, gone: bool) -> None:
    """Take the directory store away, or bring it back: nothing can be created or read in its place."""
    store, aside = rig.folder / "store", rig.folder / "store-aside"
    if gone:
        store.rename(aside)
        store.write_text("not a directory\n")  # reading and writing below it fails
    else:
        store.unlink()
        aside.rename(store)


def kept_record(worker: WorkerProcess, j: JobId) -> bytes:
    plain = worker.folder(keys.AttemptId(j, 0, 1)).read_exit() or {}
    return str(plain.get("record", "")).encode()


@pytest.mark.parametrize("again", [False, True], ids=["supervisor", "agent-too"])
def test_end_is_replayed_with_the_same_bytes(rig: Rig, again: bool) -> None:
    """Agent and supervisor die between the exit and its record: the agent that comes sends what lay on the disk."""
    worker = rig.worker("w1", *ROOM)
    gate = rig.folder / "gate"
    script = f"while [ ! -e {gate} ]; do sleep 0.02; done; echo said; exit 7"
    j = rig.submit("replayed", script, task={"restart_policy": "Never"})
    a = keys.AttemptId(j, 0, 1)
    pid = worker.supervisor(a)
    rig.running(j)
    away(rig, gone=True)
    gate.touch()
    record = until(lambda: kept_record(worker, j), 10, "the end's bytes are on the disk")
    if again:
        worker.kill()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not worker.folder(a).is_alive(), 5, "the supervisor is dead")
    away(rig, gone=False)
    if again:
        worker = rig.worker("w1", *ROOM)
    end = rig.end(j)
    rig.settled(j)
    stored = rig.bucket.store.get(keys.end(a))
    assert stored is not None
    assert stored.body == record
    assert (end.exit_code, end.outcome, rig.output(j)) == (7, Outcome.FAILED, b"said\n")
    assert until(worker.folder(a).is_done, 5, "the folder is done")


def test_unlaunched_claim_is_taken_up_by_the_next_agent(rig: Rig) -> None:
    """Preemption count 250 against 3 real: undelivered work charged to the job. It costs nothing."""
    worker = rig.worker("w1", *ROOM)
    os.kill(worker.nursery(), signal.SIGSTOP)
    j = rig.submit("undelivered", "exit 0")
    a = keys.AttemptId(j, 0, 1)
    until(lambda: worker.folder(a).read_task(), 10, "it is claimed")
    worker.kill()
    rig.worker("w1", *ROOM)
    n, end = rig.last(j)
    assert end.outcome is Outcome.COMPLETED
    assert (end.budgets.failures, end.budgets.machine) == (0, 0)
    assert n <= 2


def test_claim_of_another_life_never_ends_what_somebody_else_runs(rig: Rig) -> None:
    """A machine that restarts with a claim it never won must not end the winner's attempt."""
    other = rig.worker("w2", *ROOM, state=rig.folder / "state-2")
    gate = rig.folder / "gate"
    j = rig.submit("theirs", f"while [ ! -e {gate} ]; do sleep 0.05; done")
    a = keys.AttemptId(j, 0, 1)
    rig.running(j)
    mine = rig.state / "w1" / "attempts" / str(a)
    shutil.copytree(other.folder(a).path, mine, ignore=lambda _f, names: [n for n in names if n != "claim.json"])
    plain = orjson.loads((mine / "claim.json").read_bytes())
    claim = {**plain["claim"], "nonce": "another-nonce", "worker": "w1", "boot_id": "an-earlier-boot"}
    (mine / "claim.json").write_bytes(orjson.dumps({**plain, "claim": claim, "boot_id": "an-earlier-boot"}))
    rig.worker("w1", *ROOM)
    until(lambda: (mine / "done").exists(), 10, "the restarted machine lets go of it")
    assert rig.bucket.end(a) is None
    gate.touch()
    end = rig.end(j)
    assert (end.outcome, end.worker) == (Outcome.COMPLETED, "w2")


GARBAGE = [
    ("claim.json", b"{"),
    ("claim.json", b""),
    ("task.json", b'{"attempt"'),
    ("task.json", b""),
    ("exit.json", b'{"cause": '),
    ("pulse", b"["),
    ("proc.json", b"["),
]


def test_garbage_in_attempts_folders_stops_nobody(rig: Rig) -> None:
    """One bad record never stops a loop: the worker goes on, and each attempt ends once and is run again."""
    worker = rig.worker("w1", "--cpus", "4", "--memory", "8GiB")
    jobs = [rig.submit(f"broken-{at}", "[ $STADO_ATTEMPT = 1 ] && sleep 300; exit 0") for at in range(len(GARBAGE))]
    pids = [worker.supervisor(keys.AttemptId(j, 0, 1)) for j in jobs]
    for j in jobs:
        rig.running(j)
    worker.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for j, (name, body) in zip(jobs, GARBAGE, strict=True):
        (worker.folder(keys.AttemptId(j, 0, 1)).path / name).write_bytes(body)
    (worker.home / "attempts" / "stray-file").write_text("x")
    (worker.home / "attempts" / "not-an-attempt").mkdir()
    rig.worker("w1", *ROOM)
    assert rig.end(rig.submit("after", "true")).outcome is Outcome.COMPLETED
    for j in jobs:
        n, end = rig.last(j)
        assert (j.name, n, end.outcome) == (j.name, 2, Outcome.COMPLETED)


def test_killed_supervisor_of_a_retried_task_many_times(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    j = rig.submit("again", "[ $STADO_ATTEMPT = 3 ] || sleep 300", resilience={"max_machine_restarts": 5})
    for n in (1, 2):
        os.kill(worker.supervisor(keys.AttemptId(j, 0, n)), signal.SIGKILL)
        assert rig.end(j, n=n).cause is Cause.MACHINE_LOST
    n, end = rig.last(j)
    assert (n, end.outcome, end.budgets.machine) == (3, Outcome.COMPLETED, 2)


def ended_by_others(rig: Rig, j: JobId, n: int = 1) -> End:
    """What a tick does with an attempt that it believes dead."""
    job = rig.bucket.job(j)
    assert job is not None
    a = keys.AttemptId(j, 0, n)
    ended = Ended(Cause.MACHINE_LOST, "thought dead")
    end = end_attempt(rig.bucket, a, terms_of(job.document), ended, Seen(by="tick")).end
    settle(rig.bucket, a, end, job=job)
    return end


def test_deaf_supervisor_of_an_ended_attempt_is_killed_by_its_agent(rig: Rig) -> None:
    """Two live copies after a partition: whoever does not hear that its attempt is over is killed."""
    worker = rig.worker("w1", "--cpus", "1", "--memory", "1GiB")
    j = rig.submit("deaf", "[ $STADO_ATTEMPT = 2 ] || exec sleep 613.75", cores=1)
    pid = worker.supervisor(keys.AttemptId(j, 0, 1))
    os.kill(pid, signal.SIGSTOP)
    end = ended_by_others(rig, j)

    def swept() -> bool:
        doorbell.ring(rig.bucket, ("queue", ""))  # as often as a minute's sweep would come
        return not carrying("sleep 613.75") and not psutil.pid_exists(pid)

    until(swept, 25, "the agent kills it")
    assert rig.end(j) == end
    second = rig.end(j, n=2)
    assert second.outcome is Outcome.COMPLETED


def test_supervisor_that_slept_longer_than_its_lease_goes_on_when_nobody_minded(rig: Rig) -> None:
    """A machine that slept: the tree is frozen, the gate asked again, and attempt 1 finishes."""
    worker = rig.worker("w1", *ROOM)
    gate = rig.folder / "gate"
    jobs = []
    for i in (0, 1):
        made = document(f"slept-{i}", f"while [ ! -e {gate} ]; do sleep 0.05; done; echo {i}")
        made["spec"]["task_template"]["heartbeat_ttl_seconds"] = 3  # shorter than a person may ask for
        jobs.append(rig.submit_document(made))
    pids = [worker.supervisor(keys.AttemptId(j, 0, 1)) for j in jobs]
    for j in jobs:
        rig.running(j)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    asleep_s = time.monotonic()
    ended_by_others(rig, jobs[1])
    until(lambda: time.monotonic() - asleep_s > 3.5, 4, "more than a lease")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    gate.touch()
    end = rig.end(jobs[0])
    assert (end.outcome, rig.output(jobs[0])) == (Outcome.COMPLETED, b"0\n")
    assert rig.end(jobs[1]).reason == "thought dead"
    assert rig.end(jobs[1], n=2).outcome is Outcome.COMPLETED


def test_task_that_removes_its_own_folder_is_not_run_beside_itself(rig: Rig) -> None:
    """The lock that says "alive" goes with the folder: whatever runs is killed before the attempt is ended."""
    rig.worker("w1", *ROOM)
    log = rig.folder / "log"
    folder = rig.state / "w1" / "attempts"
    vandalise = f"rm -rf {folder}/$STADO_ATTEMPT_ID; exec sleep 713.5"
    script = f"echo $STADO_ATTEMPT >> {log}; [ $STADO_ATTEMPT = 2 ] && exit 0; {vandalise}"
    j = rig.submit("vandal", script)
    first, second = rig.end(j), rig.end(j, n=2)
    assert (first.outcome, first.cause) == (Outcome.DOWN, Cause.MACHINE_LOST)
    assert second.outcome is Outcome.COMPLETED
    assert carrying("sleep 713.5") == set()
