"""Traces for the guards of placement: holds, quotas, preemption, entries that move between the indexes of the queue."""

from __future__ import annotations

from pathlib import Path

from stado_coordinator.tick import Tick
from stado_like.bucket import holding
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_board import with_queue
from stado_like.bucket.load_world import Memory, load_world
from stado_like.bucket.place import carry_out, move
from stado_like.bucket.workspaces import Workspaces
from stado_like.errors import StoreUnavailable
from stado_like.job import keys
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.job.workspace import Edit
from stado_like.planning import preemption
from stado_like.planning.board import Hold, Member, Running, Spot, Unit
from stado_like.planning.fit import Machine
from stado_like.planning.place_actions import EvictOne
from stado_like.planning.placement import place
from stado_worker.candidates import Candidates
from stado_worker.offer import Offer
from stado_worker.queue_rules import QueueRules
from tests.builders_queue import GIB, Waiting

NOW = 1000.0
HEAD = JobId("default", "head", 1)
EMPTY = Machine("w1", "host", 4000, 16 * GIB, 0, 0, total_cpu_millis=4000, total_memory_bytes=16 * GIB)
FULL = Machine("w1", "host", 0, 16 * GIB, 0, 1, total_cpu_millis=4000, total_memory_bytes=16 * GIB)


class _Worker:
    def __init__(self, stage: Waiting) -> None:
        self.stage = stage
        offer = Offer("w1", "host", None, stage.clock, Path("/"))  # type: ignore[arg-type]
        self.rules = QueueRules(stage.bucket, "w1", offer, lambda line: None)
        self.candidates = Candidates(stage.bucket)

    def would_claim(self, j: JobId) -> bool:
        self.candidates.sweep()
        (entry,) = [one for one in self.candidates.in_order() if one.attempt.job == j]
        ask = self.candidates.ask_of(entry)
        assert ask is not None
        return self.rules.let_claim(entry, ask, EMPTY, (), self.candidates)


def _hold(stage: Waiting) -> None:
    holding.write(stage.bucket, (), (Hold(HEAD, "w1", 4000, GIB, 0, 0, created_ms=1),))


def room_that_is_held_is_left_to_the_head() -> None:
    stage = Waiting()
    j = stage.put("small")
    _hold(stage)
    assert not _Worker(stage).would_claim(j), "it took the room of the head"


def hold_that_came_a_moment_ago_is_seen_before_the_claim() -> None:
    stage = Waiting()
    j, worker = stage.put("small"), _Worker(stage)
    holding.write(stage.bucket, (), (Hold(HEAD, "w9", 1000, GIB, 0, 0, created_ms=1),))
    assert worker.would_claim(j)
    _hold(stage)
    stage.clock.pass_s(2)
    assert not worker.would_claim(j), "it claimed by what it had seen before"


def work_under_a_quota_is_left_to_a_tick() -> None:
    stage = Waiting()
    j = stage.put("mine")
    Workspaces(stage.bucket, lambda: None, lambda: "ada").edit("default", Edit(quota={"max_cpus": 0}))
    assert not _Worker(stage).would_claim(j), "a workspace holds more than its quota"


def entry_that_is_moved_is_never_nowhere() -> None:
    stage = Waiting()
    stage.put("mine")
    (key,) = stage.keys(keys.QUEUED_OPEN)
    stage.store.no_writes = (keys.QUEUED_HELD,)
    stage.bucket.budget_s = 0.1
    try:
        move(stage.bucket, key, keys.QUEUED_HELD)
    except StoreUnavailable:
        assert stage.keys(keys.QUEUED), "the entry is gone, and lies nowhere"


def _evicts(stage: Waiting, victim: JobId, head: JobId) -> bool:
    """Whether a tick that planned it a moment ago has the victim stopped now."""
    asked = EvictOne(AttemptId(victim, 0, 1), "w1", AttemptId(head, 0, 1), "why")
    carry_out(stage.bucket, asked, Memory())
    return bool(stage.keys(keys.inbox("w1")))


def nobody_is_stopped_for_a_head_that_is_held() -> None:
    stage = Waiting()
    victim, head = stage.put("batch"), stage.put("urgent")
    stage.claim(AttemptId(victim, 0, 1))
    holding.write(stage.bucket, (), (Hold(head, "w1", 4000, GIB, 0, 0, created_ms=1),))
    stage.claim(AttemptId(head, 0, 1), "w2")
    assert not _evicts(stage, victim, head), "it was stopped for work that runs elsewhere"


def nobody_is_stopped_for_room_that_a_third_may_take() -> None:
    """The write that should have renewed the hold failed; nobody obeys the old one any more."""
    stage = Waiting()
    victim, head = stage.put("batch"), stage.put("urgent")
    stage.claim(AttemptId(victim, 0, 1))
    holding.write(stage.bucket, (), (Hold(head, "w1", 4000, GIB, 0, 0, created_ms=1),))
    stage.clock.pass_s(holding.STANDS_S)
    stopped, third = _evicts(stage, victim, head), stage.put("third")
    assert not (stopped and _Worker(stage).would_claim(third)), "a third takes the room that was made for the head"


def _victims(running: Running) -> preemption.Eviction | None:
    unit = Unit(HEAD, (Member(AttemptId(HEAD, 0, 1), Ask(4000, GIB, 0)),), priority=10, created_ms=1)
    return preemption.victims(unit, (Spot(FULL, (running,)),), NOW)


def _running(priority: int, protected_until: float = 0.0) -> Running:
    other = AttemptId(JobId("default", "other", 1), 0, 1)
    return Running(other, Ask(4000, GIB, 0), priority, running_at=1.0, protected_until=protected_until)


def equal_is_never_stopped_for_an_equal() -> None:
    found = _victims(_running(10))
    assert found is None or not found.victims, "two jobs of one priority evict each other for ever"


def minimum_runtime_is_kept() -> None:
    found = _victims(_running(0, protected_until=NOW + 60))
    assert found is None or not found.victims, "it was stopped within its minimum runtime"


def claim_between_two_listings_counts() -> None:
    """It was no claim yet when the tick listed those, and no order any more when it listed these."""
    stage = Waiting()
    Workspaces(stage.bucket, lambda: None, lambda: "ada").edit("default", Edit(quota={"max_cpus": 1}))
    mine, other = stage.put("mine"), stage.put("other")
    stage.machine("w1")
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    one.step()
    (order,) = stage.orders()
    assert order.attempt.job == mine
    world = load_world(one.bucket, one.memory)
    stage.claim(order.attempt)
    stage.bucket.drop(order.key, *(key for key in stage.keys(keys.QUEUED_HELD) if f".{mine}." in key))
    queue = with_queue(one.bucket, one.memory, world).queue
    assert queue is not None
    assert [unit.job for unit in queue.board.units] == [other]
    assert not place(queue.board).placed, "two run, and the quota is one"
