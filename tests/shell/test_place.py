"""Placings carried out: one task to one worker, an order taken back, room held, entries moved for a
quota; and two ticks at once, which waste and never err."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, entries, holding, ordered_place
from stado_like.bucket.apply import apply
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_world import Memory
from stado_like.bucket.place import move
from stado_like.bucket.workspaces import Workspaces
from stado_like.job import codec, keys
from stado_like.job.held_room import Holds
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Capacity
from stado_like.job.workspace import Edit
from stado_like.planning.place_actions import KeepRoom, MoveEntry, PlaceOne, TakeBack
from stado_like.reading.view import read_job
from tests.builders_queue import Waiting
from tests.sim.teeth import places

RACK = {"machines": 2, "topology": {"keep_within": "rack"}}
IN_RACK = {"topology.stado.io/rack": "r1"}


@pytest.fixture
def stage() -> Waiting:
    return Waiting()


def tick(stage: Waiting) -> Any:
    return Tick(Bucket(stage.store, ambient=stage.clock)).step()


def limit(stage: Waiting, workspace: str, **quota: int | None) -> None:
    Workspaces(stage.bucket, lambda: None, lambda: "ada").edit(workspace, Edit(quota=quota))


# ---- place one


def test_a_held_task_is_ordered_where_it_fits_and_its_entry_stays(stage: Waiting) -> None:
    j = stage.put("near", resources=RACK)
    stage.machine("w1", labels=IN_RACK)
    stage.machine("w2", labels=IN_RACK)
    report = tick(stage)
    assert report.passes["place"]["placed"] == 2
    assert {(one.attempt, one.worker) for one in stage.orders()} == {
        (AttemptId(j, 0, 1), "w1"),
        (AttemptId(j, 1, 1), "w2"),
    }
    assert len(stage.keys(keys.QUEUED_HELD)) == 2


def test_an_order_that_stands_is_not_given_again(stage: Waiting) -> None:
    stage.put("near", resources=RACK)
    stage.machine("w1", labels=IN_RACK)
    stage.machine("w2", labels=IN_RACK)
    tick(stage)
    before = stage.keys(keys.INBOX)
    tick(stage)
    assert stage.keys(keys.INBOX) == before


def test_an_order_not_claimed_for_a_minute_is_taken_back_and_goes_elsewhere(stage: Waiting) -> None:
    """Case: a placement whose worker is gone: the same attempt, no end record, another machine."""
    a = AttemptId(stage.put("near", resources={**RACK, "machines": 2}), 0, 1)
    for worker in ("w1", "w2"):
        stage.machine(worker, labels=IN_RACK)
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    one.step()
    before = {order.attempt: order.worker for order in stage.orders()}
    stage.clock.pass_s(70)
    for worker in ("w1", "w2", "w3"):
        stage.machine(worker, labels=IN_RACK)
    one.step()
    placed = {order.attempt: order.worker for order in stage.orders()}
    assert placed.keys() == before.keys() and a in placed
    assert all(placed[attempt] != before[attempt] for attempt in placed)
    assert not stage.keys(keys.status_of(a.job) + "00000/")


def test_who_was_passed_over_is_known_to_the_next_process_too(stage: Waiting) -> None:
    stage.put("near", resources=RACK)
    for worker in ("w1", "w2"):
        stage.machine(worker, labels=IN_RACK)
    for _ in range(2):
        tick(stage)
        assert len(stage.orders()) == 2
        stage.clock.pass_s(70)
        for worker in ("w1", "w2"):
            stage.machine(worker, labels=IN_RACK)
    tick(stage)
    assert not stage.orders(), "both had their turn with both"
    stage.clock.pass_s(600)
    for worker in ("w1", "w2"):
        stage.machine(worker, labels=IN_RACK)
    tick(stage)
    assert len(stage.orders()) == 2


def test_a_refused_order_goes_elsewhere_at_the_next_tick(stage: Waiting) -> None:
    stage.put("near", resources=RACK)
    for worker in ("w1", "w2"):
        stage.machine(worker, labels=IN_RACK)
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    one.step()
    (mine,) = [order for order in stage.orders() if order.worker == "w1"]
    asked = ordered_place.to_start(stage.bucket, "w1", mine)
    assert asked is not None
    ordered_place.refuse(stage.bucket, asked, "no room after all")
    stage.machine("w3", labels=IN_RACK)
    one.step()
    assert {order.attempt: order.worker for order in stage.orders()}[mine.attempt] == "w3"


def test_two_ticks_that_place_one_attempt_waste_an_order_and_no_more(stage: Waiting) -> None:
    """Both workers claim it, one wins: `running/<a>` decides, not the order."""
    a = AttemptId(stage.put("near", resources=RACK), 0, 1)
    job, terms = stage.job(a.job)
    for worker in ("w1", "w2"):
        apply(stage.bucket, PlaceOne(a, worker, entries.open_key(job, terms, a)), Memory())
    assert sorted(order.worker for order in stage.orders()) == ["w1", "w2"]
    stage.claim(a, "w2")
    apply(stage.bucket, PlaceOne(a, "w3", entries.open_key(job, terms, a)), Memory())
    assert sorted(order.worker for order in stage.orders()) == ["w1", "w2"], "claimed: nobody else is asked"


def test_an_order_of_a_worker_that_never_came_back_goes_when_nothing_waits_any_more(stage: Waiting) -> None:
    a = AttemptId(stage.put("near", resources=RACK), 0, 1)
    ordered_place.give(stage.bucket, "w1", a, "")
    for key in stage.keys(keys.QUEUED):
        stage.store.delete(key)
    stage.clock.pass_s(200)
    cancel.cancel_job(stage.bucket, a.job)
    tick(stage)
    assert not stage.orders()


def test_a_job_that_a_quota_holds_back_says_when_nobody_ticks(stage: Waiting) -> None:
    j = stage.put("mine")
    limit(stage, "default", max_cpus=1)
    (key,) = stage.keys(keys.QUEUED_OPEN)
    move(stage.bucket, key, keys.QUEUED_HELD)
    assert read_job(stage.bucket, j).tasks[0].reason.startswith("no tick on this store since")


# ---- holds


def blocked(stage: Waiting) -> JobId:
    """A machine of 4 cores with a task of 3 that ends in an hour, and a task of 4 that is the head."""
    a = AttemptId(stage.put("runs", cores=3, task={"time_limit_seconds": 3600}), 0, 1)
    claim = stage.claim(a)
    head = stage.put("head", cores=4)
    stage.machine("w1", cores=4, free=1, held=((a, claim.nonce),))
    return head


def test_room_is_held_for_the_head_and_the_bell_names_its_machine(stage: Waiting) -> None:
    head = blocked(stage)
    tick(stage)
    (hold,) = holding.on_board(holding.read(stage.bucket))
    assert (hold.job, hold.worker, hold.cpu_millis) == (head, "w1", 4000)
    assert hold.starts_at == pytest.approx(stage.bucket.now() + 3600, abs=5)
    bell = stage.store.get(keys.DOORBELL)
    assert bell is not None and b'"holds"' in bell.body and b'"w1"' in bell.body


def test_holds_are_written_only_when_they_change(stage: Waiting) -> None:
    blocked(stage)
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    one.step()
    nonce = holding.read(stage.bucket).nonce
    stage.store.writes.clear()
    stage.clock.pass_s(2)
    one.step()
    assert holding.read(stage.bucket).nonce == nonce
    assert ("put", keys.HOLDS) not in stage.store.writes


def test_holds_are_renewed_with_their_nonce_before_they_fade(stage: Waiting) -> None:
    blocked(stage)
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    one.step()
    before = holding.read(stage.bucket)
    stage.clock.pass_s(310)
    said = stage.store.get(keys.capacity("w1"))
    assert said is not None
    now = stage.bucket.now()
    stage.store.put(
        keys.capacity("w1"), codec.encode(replace(codec.decode(Capacity, said.body, "w1"), at=now, next_by=now + 25))
    )
    one.step()
    after = holding.read(stage.bucket)
    assert (after.nonce, after.holds) == (before.nonce, before.holds) and after.at > before.at


def test_holds_go_when_nothing_waits_any_more(stage: Waiting) -> None:
    head = blocked(stage)
    tick(stage)
    stage.claim(AttemptId(head, 0, 1), "w9")
    tick(stage)
    assert holding.read(stage.bucket).holds == ()


def test_a_quiet_store_is_asked_for_its_holds_once(stage: Waiting) -> None:
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    one.step()
    with stage.store.failing(keys.HOLDS):
        report = one.step()
    assert not report.deferred


def test_holds_that_cannot_be_read_hold_nothing_and_are_written_anew(stage: Waiting) -> None:
    blocked(stage)
    stage.store.put(keys.HOLDS, b"{not json")
    tick(stage)
    assert holding.read(stage.bucket).holds


# ---- quotas


def test_entries_of_a_workspace_with_a_quota_are_moved_to_held_and_placed(stage: Waiting) -> None:
    j = stage.put("mine")
    limit(stage, "default", max_cpus=1)
    other = stage.put("mine-too")
    stage.machine("w1")
    tick(stage)
    assert not stage.keys(keys.QUEUED_OPEN) and len(stage.keys(keys.QUEUED_HELD)) == 2
    assert [order.attempt.job for order in stage.orders()] == [j], f"{other} waits for the quota"


def test_a_quota_that_was_taken_away_gives_its_entries_back(stage: Waiting) -> None:
    stage.put("mine")
    limit(stage, "default", max_cpus=0)
    stage.machine("w1")
    tick(stage)
    assert stage.keys(keys.QUEUED_HELD)
    limit(stage, "default", max_cpus=None)
    tick(stage)
    assert stage.keys(keys.QUEUED_OPEN) and not stage.keys(keys.QUEUED_HELD)


def test_what_was_claimed_between_two_listings_counts_in_its_quota() -> None:
    places.claim_between_two_listings_counts()


def test_an_entry_that_was_moved_while_it_was_claimed_leaves_nothing(stage: Waiting) -> None:
    """Two entries of one attempt may exist: whoever claims it deletes both."""
    a = AttemptId(stage.put("mine"), 0, 1)
    (key,) = stage.keys(keys.QUEUED_OPEN)
    body = stage.store.get(key)
    assert body is not None
    assert move(stage.bucket, key, keys.QUEUED_HELD)
    stage.store.put(key, body.body)
    job, terms = stage.job(a.job)
    assert set(stage.keys(keys.QUEUED)) == set(entries.all_keys(job, terms, a, None))


def test_a_move_cut_short_is_done_by_the_next_tick(stage: Waiting) -> None:
    stage.put("mine")
    (key,) = stage.keys(keys.QUEUED_OPEN)
    body = stage.store.get(key)
    move(stage.bucket, key, keys.QUEUED_HELD)
    assert body is not None
    stage.store.put(key, body.body)
    limit(stage, "default", max_cpus=0)
    tick(stage)
    assert not stage.keys(keys.QUEUED_OPEN) and len(stage.keys(keys.QUEUED_HELD)) == 1


# ---- what is lost on the way


@pytest.mark.parametrize("broken", [keys.INBOX, keys.HOLDS, keys.QUEUED_HELD])
def test_a_write_that_gets_no_answer_is_left_to_the_next_tick(stage: Waiting, broken: str) -> None:
    stage.put("near", resources=RACK)
    blocked(stage)
    for worker in ("w2", "w3"):
        stage.machine(worker, labels=IN_RACK, cores=1)
    stage.store.no_writes = (broken,)
    Tick(Bucket(stage.store, ambient=stage.clock, budget_s=0.1)).step()
    stage.store.no_writes = ()
    stage.clock.pass_s(130)
    for worker in ("w1", "w2", "w3"):
        stage.machine(worker, labels=IN_RACK, cores=1)
    tick(stage)
    assert len(stage.orders()) == 2


def test_a_plan_is_empty_once_it_was_carried_out(stage: Waiting) -> None:
    stage.put("near", resources=RACK)
    blocked(stage)
    limit(stage, "other", max_cpus=1)
    for worker in ("w2", "w3"):
        stage.machine(worker, labels=IN_RACK)
    tick(stage)
    left = [one for kind in (MoveEntry, TakeBack, KeepRoom, PlaceOne) for one in stage.actions(kind)]
    assert left == []
    assert isinstance(holding.read(stage.bucket), Holds)
