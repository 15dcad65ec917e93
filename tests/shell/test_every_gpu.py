"""Work that takes every free GPU of its machine, from the plan to the claim: its quota is judged by what it would take,
the order names those GPUs, and until a broadcast tells of them the claim does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import generations, ordered_place
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import send
from stado_like.bucket.load_board import load_board
from stado_like.bucket.load_world import Memory, load_world
from stado_like.bucket.submit import submit
from stado_like.bucket.workspaces import Workspaces
from stado_like.job import codec, keys
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.records import Claim, Order
from stado_like.job.spec.validate import validate
from stado_like.job.terms import terms_of
from stado_like.job.workspace import Edit
from stado_like.planning.board import Spot
from stado_like.planning.place_actions import PlaceGang, PlaceOne
from tests.builders_queue import Waiting

ALL = {"policy": "All"}


@pytest.fixture
def stage() -> Waiting:
    return Waiting()


def limit(stage: Waiting, gpus: int) -> None:
    Workspaces(stage.bucket, lambda: None, lambda: "ada").edit("default", Edit(quota={"max_gpus": gpus}))


def tick(stage: Waiting) -> None:
    Tick(Bucket(stage.store, ambient=stage.clock)).step()


def order(stage: Waiting) -> tuple[keys.Order, Order]:
    (parsed,) = stage.orders()
    found = stage.bucket.read(Order, parsed.key)
    assert found is not None
    return parsed, found.record


def spot(stage: Waiting) -> Spot:
    memory = Memory()
    (found,) = load_board(stage.bucket, memory, load_world(stage.bucket, memory)).spots
    return found


def claim(stage: Waiting, a: AttemptId, devices: tuple[str, ...], *, ordered_by: str = "") -> Claim:
    made = Claim(nonce=stage.bucket.token(), attempt=str(a), worker="w1", since=stage.bucket.now(), devices=devices)
    made = replace(made, order=ordered_by)
    assert send(stage.bucket, a, codec.encode(made), "") is None
    return made


def test_order_names_the_gpus_by_which_the_quota_was_judged(stage: Waiting) -> None:
    limit(stage, 4)
    j = stage.put("all", gpus=1, gpu=ALL)
    stage.machine("w1", gpus=4)
    tick(stage)
    parsed, said = order(stage)
    assert parsed.attempt == AttemptId(j, 0, 1)
    assert said.devices == ("w1-0", "w1-1", "w1-2", "w1-3")


def test_who_would_take_more_than_its_quota_waits_and_says_so(stage: Waiting) -> None:
    limit(stage, 4)
    j = stage.put("all", gpus=1, gpu=ALL)
    stage.machine("w1", gpus=8)
    _, plan = stage.look()
    assert not [one for one in plan.actions if isinstance(one, PlaceOne)]
    assert plan.placing.waiting[j].reason == (
        "Waits for more than the namespace's quota allows at all (gpus 8 asked > 4): raise the quota or ask for less"
    )


def test_until_a_broadcast_tells_of_them_the_order_and_then_the_claim_say_which_gpus_are_taken(stage: Waiting) -> None:
    limit(stage, 8)
    j = stage.put("all", gpus=1, gpu=ALL)
    stage.put("waits", cores=64)
    stage.machine("w1", gpus=3)
    tick(stage)
    parsed, said = order(stage)
    promised = spot(stage)
    assert (promised.machine.free_gpus, promised.running[0].ask.gpus) == (0, 3)
    ordered_place.withdraw(stage.bucket, "w1", parsed.attempt)
    stage.machine("w1", gpus=3)
    assert spot(stage).machine.free_gpus == 3
    claim(stage, AttemptId(j, 0, 1), said.devices[:2], ordered_by=parsed.key)  # one of them had failed by then
    claimed = spot(stage)
    assert (claimed.machine.free_gpus, claimed.running[0].ask.gpus) == (1, 2)
    assert claimed.running[0].ask.devices == said.devices[:2]


def test_cores_of_each_gpu_count_for_those_that_it_took(stage: Waiting) -> None:
    asked = {"gpu_requests": {"count": 1, **ALL}, "per_gpu": {"cpu_cores": 2, "memory_bytes": 1 << 30}}
    template = {"command": "true", "requested_resources": asked}
    j = submit(stage.bucket, validate({"metadata": {"name": "all"}, "spec": {"task_template": template}})).id
    stage.put("waits", cores=64)
    stage.machine("w1", cores=16, gpus=4)
    claim(stage, AttemptId(j, 0, 1), ("w1-0", "w1-2", "w1-3"))
    (running,) = spot(stage).running
    assert (running.ask.cpu_millis, running.ask.memory_bytes, running.ask.gpus) == (6000, 3 << 30, 3)
    assert spot(stage).machine.free_cpu_millis == 10_000


def test_gang_is_seated_with_its_gpus_and_its_orders_say_so_also_when_they_are_given_again(stage: Waiting) -> None:
    j: JobId = stage.put("gang", gpus=3, gpu=ALL, start="Gang", resources={"machines": 2})
    stage.machine("w1", gpus=2)
    stage.machine("w2", gpus=4)
    (planned,) = stage.actions(PlaceGang)
    want = {AttemptId(j, 0, 1): ("w1-0", "w1-1"), AttemptId(j, 1, 1): tuple(f"w2-{n}" for n in range(4))}
    assert planned.devices == want
    tick(stage)
    placed = generations.read_placement(stage.bucket, j, 1)
    assert placed is not None and {AttemptId.parse(one.attempt): one.devices for one in placed.members} == want
    for again in range(2):
        said = {one.attempt: stage.bucket.read(Order, one.key) for one in stage.orders()}
        assert {a: one.record.devices for a, one in said.items() if one is not None} == want, again
        for one in stage.orders():
            stage.bucket.drop(one.key)
        tick(stage)


def test_split_chooses_the_machines_and_each_takes_what_is_free(stage: Waiting) -> None:
    j = stage.put("all", gpus=6, gpu=ALL)
    stage.machine("w1", gpus=4)
    stage.machine("w2", gpus=3)
    tick(stage)
    job = stage.bucket.job(j)
    assert job is not None
    terms = stage.bucket.terms(job)
    assert (terms.tasks, terms.ask.gpus, terms.ask.gpu_kind.every, bool(terms.ask.apart)) == (2, 3, True, True)
    assert sorted(keys.attempt_of_entry(key).rank for key in stage.keys(keys.QUEUED)) == [0, 1]


def test_who_goes_by_the_document_alone_is_given_the_split_with_it(stage: Waiting) -> None:
    """A supervisor asks the store for no shape: without it, rank 1 of two would be no rank of its job."""
    j = stage.put("all", gpus=6, gpu=ALL)
    stage.machine("w1", gpus=4)
    stage.machine("w2", gpus=3)
    before = stage.bucket.job(j)
    assert before is not None and stage.bucket.as_split(before) is before
    tick(stage)
    for _ in range(2):
        assert terms_of(stage.bucket.as_split(before).document) == stage.bucket.terms(before)
        assert stage.bucket.terms(before).tasks == 2
