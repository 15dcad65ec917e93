"""A gang that really talks to itself, on four workers and a resident coordinator: a ring all-reduce over sockets."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause, JobState
from stado_like.reading.view import JobView, read_job
from tests.process.rig import PYTHON, Rig, until

pytestmark = pytest.mark.serial

RING = Path(__file__).parents[2] / "examples" / "ring.py"
ROOM = ("--cpus", "1", "--memory", "1GiB", "--address", "127.0.0.1")
MEMBERS = 4
ROUNDS = 40
EXPECTED = ROUNDS * sum(range(1, MEMBERS + 1))


def view(rig: Rig, j: JobId) -> JobView:
    return read_job(rig.bucket, j)


def ring(rig: Rig, **spec: Any) -> JobId:
    task = {
        "requested_resources": {"cpu_cores": 1, "memory_bytes": 64 << 20, "machines": MEMBERS},
        "checkpoint": {"dir": "kept"},
        "resilience": {"backoff_seconds": 1},
    }
    script = f"exec {PYTHON} {RING} {ROUNDS} 0.2"
    j = rig.submit("ring", script, start="Gang", task=task, **spec)
    until(lambda: view(rig, j).state is JobState.RUNNING, 40, f"the ring runs: {view(rig, j).reason}")
    return j


def begun_at(rig: Rig, j: JobId, rank: int, n: int) -> int:
    found = re.search(rb"begins at round (\d+)", rig.output(j, rank, n))
    assert found is not None, rig.output(j, rank, n)
    return int(found[1])


def completed(rig: Rig, j: JobId, n: int) -> None:
    try:
        until(lambda: view(rig, j).is_over, 60, "the ring ends")
    except AssertionError as late:
        seen = view(rig, j)
        told = [(one.name, one.state.value, one.reason, rig.output(j, one.rank, one.attempt)) for one in seen.tasks]
        raise AssertionError(f"{late}: {seen.state}, {seen.reason}; {told}") from late
    done = view(rig, j)
    assert (done.state, [one.attempt for one in done.tasks]) == (JobState.COMPLETED, [n] * MEMBERS)
    for rank in range(MEMBERS):
        assert rig.output(j, rank, n).endswith(b"sum %d\n" % EXPECTED)


def test_ring_loses_a_member_restarts_whole_and_has_the_right_sum(rig: Rig) -> None:
    for number in range(MEMBERS):
        rig.worker(f"w{number}", *ROOM)
    with rig.coordinator():
        j = ring(rig)
        victim = view(rig, j).tasks[2]
        (worker,) = (one for one in rig.workers if one.worker == victim.worker)
        proc = worker.folder(AttemptId(j, 2, 1)).read_proc()
        assert proc is not None
        os.kill(proc["leader"][0], signal.SIGKILL)
        completed(rig, j, 2)
    assert {rig.end(j, rank, 1).cause for rank in range(MEMBERS) if rank != 2} <= {Cause.GANG, Cause.FAILURE}
    assert {one.restarts.failures for one in view(rig, j).tasks} == {1}, "charged once, to everybody alike"


def test_urgent_job_preempts_the_ring_which_goes_on_from_its_checkpoint(rig: Rig) -> None:
    for number in range(MEMBERS):
        rig.worker(f"w{number}", *ROOM)
    with rig.coordinator():
        j = ring(rig, priority=-1)
        until(lambda: b"begins" in rig.output(j, 0, 1) or view(rig, j).tasks[0].heard_s is not None, 10, "it talks")
        urgent = rig.submit("urgent", "echo now", cores=1)
        until(lambda: view(rig, urgent).is_over, 40, f"the urgent job runs: {view(rig, urgent).reason}")
        assert view(rig, urgent).state is JobState.COMPLETED
        completed(rig, j, 2)
    assert [rig.end(j, rank, 1).cause for rank in range(MEMBERS)] == [Cause.PREEMPTED] * MEMBERS
    assert {begun_at(rig, j, rank, 2) for rank in range(MEMBERS)} == {begun_at(rig, j, 0, 2)}
    assert begun_at(rig, j, 0, 2) > 0
    assert {(one.restarts.failures, one.restarts.machine) for one in view(rig, j).tasks} == {(0, 0)}
