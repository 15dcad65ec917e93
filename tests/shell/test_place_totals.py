"""A total whose number of tasks the scheduler decides: split once, by the room there is, and tried again each minute
while there is none."""

from __future__ import annotations

from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.split import Split
from stado_like.planning.place_actions import PutOff
from tests.builders_queue import Waiting


@pytest.fixture
def stage() -> Waiting:
    return Waiting()


def tick(stage: Waiting) -> Any:
    return Tick(Bucket(stage.store, ambient=stage.clock)).step()


def split_of(stage: Waiting, j: JobId) -> Split | None:
    found = stage.store.get(keys.shape(j))
    return codec.decode(Split, found.body, keys.shape(j)) if found is not None else None


def test_a_total_is_split_once_and_its_ranks_are_queued(stage: Waiting) -> None:
    j = stage.put("split", gpus=4, gpu={"policy": "PerNode"})
    stage.machine("w1", gpus=2)
    stage.machine("w2", gpus=2)
    tick(stage)
    split = split_of(stage, j)
    assert split is not None and (split.tasks, split.gpus_each) == (2, 2)
    ranks = sorted(keys.attempt_of_entry(key).rank for key in stage.keys(keys.QUEUED))
    assert ranks == [0, 1]
    job = stage.bucket.job(j)
    assert job is not None and stage.bucket.terms(job).tasks == 2 and stage.bucket.terms(job).ask.gpus == 2


def test_one_task_on_every_machine_never_two_on_one(stage: Waiting) -> None:
    stage.put("all", cores=1, resources={"node_selection": {"mode": "All"}})
    for worker in ("w1", "w2", "w3"):
        stage.machine(worker, cores=8)
    for _ in range(2):
        tick(stage)
    assert sorted(order.worker for order in stage.orders()) in (["w1", "w2", "w3"], [])
    claimable = [keys.attempt_of_entry(key).rank for key in stage.keys(keys.QUEUED)]
    assert sorted(claimable) == [0, 1, 2]


@pytest.mark.parametrize("policy", ["PerNode", "All"])
def test_a_total_that_fits_one_machine_is_left_to_any_worker(stage: Waiting, policy: str) -> None:
    """Its entry moves from `held` to `open` under the same name: the new one before the old one goes."""
    j = stage.put("split", gpus=4, gpu={"policy": policy})
    (before,) = stage.keys(keys.QUEUED_HELD)
    stage.machine("w1", gpus=4)
    tick(stage)
    split = split_of(stage, j)
    assert split is not None and split.tasks == 1
    assert stage.keys(keys.QUEUED) == [before.replace(keys.QUEUED_HELD, keys.QUEUED_OPEN)]


def test_a_split_cut_short_after_its_create_is_finished_and_leaves_no_second_entry(stage: Waiting) -> None:
    j = stage.put("split", gpus=4, gpu={"policy": "PerNode"})
    made = Split(nonce="s", tasks=2, gpus_each=2, chosen_at=stage.bucket.now())
    stage.bucket.decide(keys.shape(j), made)
    stage.machine("w1", gpus=2)
    stage.machine("w2", gpus=2)
    for _ in range(3):
        tick(stage)
    found = sorted(str(keys.attempt_of_entry(key)) for key in stage.keys(keys.QUEUED))
    assert found == [str(AttemptId(j, 0, 1)), str(AttemptId(j, 1, 1))]


def test_a_total_that_cannot_be_split_waits_and_is_looked_at_again(stage: Waiting) -> None:
    j = stage.put("split", gpus=8, gpu={"policy": "PerNode"})
    stage.machine("w1", gpus=2)
    _, plan = stage.look()
    assert plan.placing.waiting[j].reason.startswith("Cannot plan workers: ")
    stage.machine("w2", gpus=8)
    tick(stage)
    split = split_of(stage, j)
    assert split is not None and split.tasks == 1


def test_a_total_that_could_not_be_split_is_tried_again_when_a_minute_is_over(stage: Waiting) -> None:
    """Whichever process ticks: it stands beside the cursors. Until then it says why and keeps its place as the head."""
    j = stage.put("split", gpus=8, gpu={"policy": "PerNode"})
    stage.machine("w1", gpus=2)
    stage.machine("w2", gpus=8, held=((AttemptId(JobId("default", "old", 1), 0, 1), "n"),), free=0)
    tick(stage)
    stage.machine("w2", gpus=8)
    stage.clock.pass_s(30)
    stage.machine("w2", gpus=8)
    _, plan = stage.look()
    assert not plan.placing.shapes and plan.placing.waiting[j].reason.startswith("Cannot plan workers: no way to run 8")
    assert not any(isinstance(action, PutOff) for action in plan.actions)
    assert [hold.job for hold in plan.placing.holds] == [j]
    tick(stage)
    assert split_of(stage, j) is None
    stage.clock.pass_s(31)
    stage.machine("w2", gpus=8)
    tick(stage)
    assert split_of(stage, j) is not None


def test_a_total_is_split_at_once_when_the_first_machine_speaks(stage: Waiting) -> None:
    j = stage.put("split", gpus=8, gpu={"policy": "PerNode"})
    tick(stage)
    stage.machine("w1", gpus=8)
    tick(stage)
    assert split_of(stage, j) is not None
