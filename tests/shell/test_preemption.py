"""What a run is charged for preemptions, what protects it from more of them as a tick reads it, and what a gang says
of its own."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.bucket import generations
from stado_like.bucket.load_board import load_board
from stado_like.bucket.load_world import Memory, load_world
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause
from stado_like.planning.board import Running
from stado_like.reading.view import read_job
from tests.builders_gangs import end_member, start, stops, submit_gang
from tests.builders_queue import Waiting

CAP: dict[str, Any] = {"resilience": {"max_preemptions": 1}}


@pytest.fixture
def stage() -> Waiting:
    made = Waiting()
    made.put("waits", cores=64)  # of a quiet queue nothing is read
    return made


def running(stage: Waiting, memory: Memory | None = None) -> dict[AttemptId, Running]:
    memory = memory or Memory()
    board = load_board(stage.bucket, memory, load_world(stage.bucket, memory))
    return {one.attempt: one for spot in board.spots for one in spot.running}


def test_run_preempted_as_often_as_it_allows_is_capped(stage: Waiting) -> None:
    j = stage.put("batch", task=CAP)
    stage.machine("w1")
    stage.claim(AttemptId(j, 0, 1))
    assert not running(stage)[AttemptId(j, 0, 1)].capped
    end_member(stage.bucket, AttemptId(j, 0, 1), Cause.PREEMPTED)
    stage.claim(AttemptId(j, 0, 2))
    assert running(stage)[AttemptId(j, 0, 2)].capped


def test_gang_is_capped_as_a_whole_by_what_it_was_charged(stage: Waiting) -> None:
    """A gang's preemption is charged once, when all its members have ended: it stands in no member's end."""
    j = submit_gang(stage.bucket, template=CAP)
    for rank in range(2):
        stage.machine(f"w{rank}")
    start(stage.bucket, j)
    assert not any(one.capped for one in running(stage).values())
    end_member(stage.bucket, AttemptId(j, 0, 1), Cause.PREEMPTED)
    end_member(stage.bucket, AttemptId(j, 1, 1), Cause.GANG)
    start(stage.bucket, j)
    memory = Memory()
    for _ in range(2):
        found = running(stage, memory)
        assert {one.rank for one in found if found[one].capped} == {0, 1}
        assert all(one.gang for one in found.values())


def test_cap_of_none_forbids_every_preemption(stage: Waiting) -> None:
    j: JobId = stage.put("never", task={"resilience": {"max_preemptions": 0}})
    stage.machine("w1")
    stage.claim(AttemptId(j, 0, 1))
    assert running(stage)[AttemptId(j, 0, 1)].capped


def test_checkpoint_that_a_broadcast_tells_of_counts_as_work_that_is_not_lost(stage: Waiting) -> None:
    """No request for it: a worker says it of each of its attempts."""
    a = AttemptId(stage.put("batch"), 0, 1)
    held = stage.claim(a)
    saved_at = stage.bucket.now() - 60
    stage.machine("w1", held=((a, held.nonce),), saved_at=saved_at)
    assert running(stage)[a].saved_at == saved_at
    stage.machine("w1", held=((a, "of another claim"),), saved_at=saved_at)
    assert running(stage)[a].saved_at == 0


def test_preempted_gang_is_told_the_same_in_all_its_members(stage: Waiting) -> None:
    """The order to one was lost: the first end has the rest stopped as preempted too. It is charged once."""
    j = submit_gang(stage.bucket)
    start(stage.bucket, j)
    why = "Preempted by higher-priority work (urgent)"
    end_member(stage.bucket, AttemptId(j, 0, 1), Cause.PREEMPTED, why)
    assert stops(stage.bucket, "w1") == [(AttemptId(j, 1, 1), Cause.PREEMPTED, why)]
    end_member(stage.bucket, AttemptId(j, 1, 1), Cause.PREEMPTED, why)
    view = read_job(stage.bucket, j)
    assert view.reason == f"{why}; waiting to run again"
    for task in view.tasks:
        assert [told.change.reason for told in task.story][-2:] == [why, "Preempted by urgent; queued again"]
    placed = generations.read_placement(stage.bucket, j, start(stage.bucket, j))
    assert placed is not None and placed.budgets.preemptions == 1
