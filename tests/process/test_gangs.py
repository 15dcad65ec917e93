"""A gang on real workers: four members on two of them start together, one is killed, all restart and succeed."""

from __future__ import annotations

import os
import signal

import pytest

from stado_like.bucket import gang, generations
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause, Decision, JobState
from stado_like.reading.view import JobView, read_job
from tests.process.rig import Rig, until

pytestmark = pytest.mark.serial

ROOM = ("--cpus", "2", "--memory", "4GiB", "--address", "127.0.0.1")
MEMBERS = 4
TOLD = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT STADO_RESTART_CAUSE"


def member(rig: Rig) -> str:
    """Says what it was told, notes that it runs, and goes on until the gate is there."""
    said = " ".join(f"{name}=${name}" for name in TOLD.split())
    up = f"{rig.folder}/up.$RANK.$STADO_ATTEMPT"
    return f'echo "{said}" > {up}.new; mv {up}.new {up}; while [ ! -e {rig.folder}/gate ]; do sleep 0.05; done'


def told(rig: Rig, rank: int, n: int) -> dict[str, str]:
    path = rig.folder / f"up.{rank}.{n}"
    until(path.exists, 20, f"member {rank} runs its attempt {n}; workers said {[one.said() for one in rig.workers]}")
    return dict(word.split("=", 1) for word in path.read_text().split())


def tended(rig: Rig, j: JobId) -> None:
    """What ticks do about a gang, with ranks 0 and 1 on w1, the others on w2."""
    job = rig.bucket.job(j)
    assert job is not None
    waits = gang.tend(rig.bucket, j, job, rig.bucket.terms(job)).waits
    if waits is not None and waits.not_before <= rig.bucket.now():
        gang.place(rig.bucket, j, waits.generation, {a: "w1" if a.rank < 2 else "w2" for a in waits.members})


def until_tended(rig: Rig, j: JobId, g: int) -> None:
    def went() -> bool:
        tended(rig, j)
        barrier = generations.read_barrier(rig.bucket, j, g)
        return barrier is not None and barrier.go

    until(went, 30, f"generation {g} of {j} starts; workers said {[one.said() for one in rig.workers]}")


def test_gang_of_four_starts_together_loses_a_member_and_restarts_whole(rig: Rig) -> None:
    """Restarted ranks meet an old coordinator: each generation has a port of its own."""
    for name in ("w1", "w2"):
        rig.worker(name, *ROOM)
    resources = {"cpu_cores": 0.1, "memory_bytes": 16 << 20, "node_selection": {"count": MEMBERS, "mode": "Any"}}
    j = rig.submit("ring", member(rig), start="Gang", task={"requested_resources": resources})
    until_tended(rig, j, 1)
    first = [told(rig, rank, 1) for rank in range(MEMBERS)]
    assert [one["RANK"] for one in first] == ["0", "1", "2", "3"]
    assert {one["WORLD_SIZE"] for one in first} == {"4"}
    assert [(one["NODE_RANK"], one["LOCAL_RANK"], one["LOCAL_WORLD_SIZE"]) for one in first] == [
        ("0", "0", "2"),
        ("0", "1", "2"),
        ("1", "0", "2"),
        ("1", "1", "2"),
    ]
    assert {one["MASTER_ADDR"] for one in first} == {"127.0.0.1"}
    (port,) = {one["MASTER_PORT"] for one in first}
    assert int(port) > 0
    until(lambda: _view(rig, j).state is JobState.RUNNING, 20, "the job is Running once all members are")
    proc = rig.workers[1].folder(AttemptId(j, 2, 1)).read_proc()
    assert proc is not None
    os.kill(proc["leader"][0], signal.SIGKILL)
    until_tended(rig, j, 2)
    second = [told(rig, rank, 2) for rank in range(MEMBERS)]
    assert {one["MASTER_PORT"] for one in second} != {port} and len({one["MASTER_PORT"] for one in second}) == 1
    assert [one["STADO_RESTART_CAUSE"] for one in second] == ["gang", "gang", "failure", "gang"]
    ends = [rig.bucket.end(AttemptId(j, rank, 1)) for rank in range(MEMBERS)]
    assert all(one is not None and one.decision is Decision.GANG for one in ends)
    assert [one.cause for one in ends if one is not None] == [Cause.GANG, Cause.GANG, Cause.FAILURE, Cause.GANG]
    assert ends[0] is not None and ends[0].reason == "Gang restart: ring-2 failed"
    (rig.folder / "gate").touch()
    until(lambda: _view(rig, j).state is JobState.COMPLETED, 20, f"the job completes: {_view(rig, j).reason}")
    placement = generations.read_placement(rig.bucket, j, 2)
    assert placement is not None and placement.budgets.failures == 1
    assert generations.newest(rig.bucket, j) == 2


def _view(rig: Rig, j: JobId) -> JobView:
    return read_job(rig.bucket, j)
