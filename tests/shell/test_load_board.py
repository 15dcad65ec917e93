"""Records -> board: what a machine has free now, what waits, and what of the queue lies wrong."""

from __future__ import annotations

import pytest

from stado_like.bucket import ordered_place, pausing
from stado_like.bucket.load_board import load_board, with_queue
from stado_like.bucket.load_world import Memory, load_world
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.planning.board import Board
from tests.builders_queue import GIB, Waiting


@pytest.fixture
def stage() -> Waiting:
    return Waiting()


def board(stage: Waiting, memory: Memory | None = None) -> Board:
    memory = memory or Memory()
    return load_board(stage.bucket, memory, load_world(stage.bucket, memory))


def held(stage: Waiting, name: str, **how: object) -> AttemptId:
    """A job of two tasks that a rule about racks keeps for a placement; its first attempt."""
    resources = {"machines": 2, "topology": {"keep_within": "rack"}}
    return AttemptId(stage.put(name, resources=resources, **how), 0, 1)


def test_an_empty_queue_is_an_empty_board_and_costs_two_listings(stage: Waiting) -> None:
    memory = Memory()
    world = load_world(stage.bucket, memory)
    board(stage, memory)
    seen = with_queue(stage.bucket, memory, world)
    assert seen.queue is not None and not seen.queue.board.units and "place" not in seen.unread


def test_open_work_is_on_the_board_but_its_worker_claims_it(stage: Waiting) -> None:
    j = stage.put("one", cores=2)
    stage.machine("w1")
    (unit,) = board(stage).units
    assert (unit.job, unit.placed_by_tick) == (j, False)
    assert (unit.members[0].ask.cpu_millis, unit.members[0].ask.memory_bytes) == (2000, GIB)


def test_held_work_carries_its_rules_and_what_each_task_asks(stage: Waiting) -> None:
    first = held(stage, "near")
    found = [one for one in board(stage).units if one.job == first.job]
    assert [str(one.members[0].attempt) for one in found] == [str(first), str(AttemptId(first.job, 1, 1))]
    assert all(one.placed_by_tick and one.near.keep_within == "rack" for one in found)


def test_a_claim_that_the_broadcast_does_not_name_is_taken_off_what_is_free(stage: Waiting) -> None:
    stage.machine("w1", cores=4)
    stage.clock.pass_s(1)
    a = AttemptId(stage.put("runs", cores=3), 0, 1)
    stage.claim(a)
    held(stage, "waits")
    (spot,) = board(stage).spots
    assert spot.machine.free_cpu_millis == 1000
    assert [one.attempt for one in spot.running] == [a]


def test_a_claim_that_the_broadcast_names_is_counted_once(stage: Waiting) -> None:
    a = AttemptId(stage.put("runs", cores=3), 0, 1)
    claim = stage.claim(a)
    stage.machine("w1", cores=4, free=1, held=((a, claim.nonce),))
    held(stage, "waits")
    (spot,) = board(stage).spots
    assert spot.machine.free_cpu_millis == 1000


def test_what_was_named_and_is_claimed_no_more_comes_back(stage: Waiting) -> None:
    """A gang need not wait for the next broadcast of each machine."""
    other = AttemptId(stage.put("other", cores=0.5), 0, 1)
    ended = AttemptId(stage.put("ended", cores=3), 0, 1)
    claim = stage.claim(ended)
    stage.machine("w1", cores=4, free=1, held=((ended, claim.nonce),))
    stage.clock.pass_s(1)
    stage.store.delete(keys.running(ended))
    stage.claim(other, "w2")
    held(stage, "waits")
    (spot,) = board(stage).spots
    assert spot.machine.free_cpu_millis == 4000


def test_what_was_promised_and_not_claimed_yet_is_not_free(stage: Waiting) -> None:
    """Case: a slot is promised twice because the first who was given it has not said so yet."""
    stage.machine("w1", cores=4)
    a = held(stage, "given", cores=3)
    ordered_place.give(stage.bucket, "w1", a, "")
    found = board(stage)
    (spot,) = found.spots
    assert spot.machine.free_cpu_millis == 1000
    assert a not in [member.attempt for unit in found.units for member in unit.members]


def test_a_machine_that_was_not_heard_of_lately_is_closed_with_the_age(stage: Waiting) -> None:
    """Case: a capacity record of 91 min ago is ignored for placement, and the reason prints its age."""
    stage.machine("w1")
    stage.clock.pass_s(91 * 60)
    held(stage, "waits")
    (spot,) = board(stage).spots
    assert "91m" in spot.machine.closed or "1h31m" in spot.machine.closed


def test_a_paused_queue_is_paused_for_placements_too(stage: Waiting) -> None:
    held(stage, "waits")
    pausing.pause(stage.bucket, reason="a fan")
    assert board(stage).queue_paused == "a fan"


def test_a_listing_that_fails_gives_no_board_and_says_why(stage: Waiting) -> None:
    held(stage, "waits")
    memory = Memory()
    world = load_world(stage.bucket, memory)
    with stage.store.failing(keys.CAPACITY):
        seen = with_queue(stage.bucket, memory, world)
    assert seen.queue is None and "capacity" in seen.unread["place"]


def test_a_job_that_cannot_be_read_is_set_aside_and_the_rest_is_there(stage: Waiting) -> None:
    bad, good = held(stage, "bad"), held(stage, "good")
    stage.store.put(keys.job(bad.job), b"{not json")
    memory = Memory()
    seen = with_queue(stage.bucket, memory, load_world(stage.bucket, memory))
    assert seen.queue is not None
    assert {unit.job for unit in seen.queue.board.units} == {good.job}
    assert str(bad.job) in {one.what for one in seen.set_aside}


def test_each_job_is_read_once_by_a_process(stage: Waiting) -> None:
    held(stage, "waits")
    stage.machine("w1")
    memory = Memory()
    board(stage, memory)
    with stage.store.failing(keys.JOBS):
        world = load_world(stage.bucket, memory)
        assert load_board(stage.bucket, memory, world).units
