"""A job of several groups of which some leave the number of their tasks to the scheduler: split as a whole, since the
ranks of one group follow from those of the groups before it."""

from __future__ import annotations

from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.submit import Submitted, submit
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.records import Entry
from stado_like.job.spec.validate import validate
from stado_like.job.split import Split
from tests.builders_queue import Waiting


@pytest.fixture
def stage() -> Waiting:
    return Waiting()


def tick(stage: Waiting) -> None:
    Tick(Bucket(stage.store, ambient=stage.clock)).step()


def split_of(stage: Waiting, j: JobId) -> Split | None:
    found = stage.bucket.read(Split, keys.shape(j))
    return found.record if found is not None else None


def entry_of(stage: Waiting, key: str) -> Entry:
    found = stage.bucket.read(Entry, key)
    assert found is not None
    return found.record


def group(name: str, gpus: int, **resources: Any) -> dict[str, Any]:
    asked = {"gpu_requests": {"count": gpus, "policy": "PerNode"}, **resources}
    return {"name": name, "task_template": {"command": "true", "requested_resources": asked}}


def put_groups(stage: Waiting, *groups: dict[str, Any], **spec: Any) -> JobId:
    document = {"metadata": {"name": "grouped"}, "spec": {"task_groups": list(groups), **spec}}
    done = submit(stage.bucket, validate(document))
    assert isinstance(done, Submitted)
    return done.id


def test_each_group_that_leaves_its_number_open_gets_its_own_split(stage: Waiting) -> None:
    """Ranks are global: what one group was given moves those of the next, and nobody runs as another group's task."""
    j = put_groups(stage, group("a", 4), group("b", 1, machines=1), group("c", 2))
    for worker in ("w1", "w2", "w3", "w4"):
        stage.machine(worker, gpus=2)
    for _ in range(2):
        tick(stage)
    split = split_of(stage, j)
    assert split is not None and [(one.group, one.tasks, one.gpus_each) for one in split.groups] == [
        ("a", 2, 2),
        ("c", 1, 2),
    ]
    assert split.why == "a: 2 machines × 2 GPUs on Ethernet; c: 1 machine × 2 GPUs"
    job = stage.bucket.job(j)
    assert job is not None
    terms = stage.bucket.terms(job)
    assert terms.shaped and [(one.name, one.first, one.tasks) for one in terms.groups] == [
        ("a", 0, 2),
        ("b", 2, 1),
        ("c", 3, 1),
    ]
    asked = {keys.attempt_of_entry(key).rank: entry_of(stage, key).gpus for key in stage.keys(keys.QUEUED)}
    assert asked == {0: 2, 1: 2, 2: 1, 3: 2} and len(stage.keys(keys.QUEUED)) == 4


def test_a_group_whose_number_is_said_is_never_split(stage: Waiting) -> None:
    j = put_groups(stage, group("engine", 1, machines=1), group("trainer", 4))
    for worker in ("w1", "w2", "w3"):
        stage.machine(worker, gpus=2)
    tick(stage)
    split = split_of(stage, j)
    assert split is not None and [(one.group, one.tasks, one.gpus_each) for one in split.groups] == [("trainer", 2, 2)]


def test_groups_are_split_together_or_not_at_all(stage: Waiting) -> None:
    j = put_groups(stage, group("a", 2), group("b", 8))
    stage.machine("w1", gpus=2)
    tick(stage)
    assert split_of(stage, j) is None
    _, plan = stage.look()
    assert plan.placing.waiting[j].reason == "Cannot plan workers: no machine can host a worker of group b right now"
    stage.clock.pass_s(61)  # it is tried again when a minute is over
    for worker in ("w1", "w2", "w3", "w4", "w5"):
        stage.machine(worker, gpus=2)
    tick(stage)
    assert split_of(stage, j) is not None


@pytest.mark.parametrize("start", ["Independent", "Gang"])
def test_an_entry_with_the_key_and_not_the_ask_of_its_rank_is_written_anew(stage: Waiting, start: str) -> None:
    """Rank 1 was the second group's, on machines of its label; it is the first group's now.
    (Those of a gang stay in the same index, under the same key.)"""
    there = {"node_selection": {"match_labels": {"zone": "z"}}}
    put_groups(
        stage,
        group("a", 2, node_selection={"match_labels": {"zone": "y"}}, topology={"min_nodes": 2}),
        group("b", 1, machines=1, **there),
        start=start,
    )
    for worker in ("w1", "w2"):
        stage.machine(worker, gpus=1, labels={"zone": "y"})
    for _ in range(2):
        tick(stage)
    said = {keys.attempt_of_entry(key).rank: entry_of(stage, key).labels for key in stage.keys(keys.QUEUED)}
    assert said == {0: {"zone": "y"}, 1: {"zone": "y"}, 2: {"zone": "z"}}
