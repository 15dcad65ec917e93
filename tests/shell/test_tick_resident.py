"""The resident coordinator: when it ticks, what it says when it may not, what wakes it."""

from __future__ import annotations

import os

from stado_coordinator.coordinator import IDLE_INTERVAL_S, Coordinator
from stado_coordinator.lock import Lock
from stado_like.bucket import doorbell
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.settle import settle
from stado_like.job import keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId
from stado_like.job.states import Cause
from tests.builders_tick import Stage


def resident(stage: Stage) -> tuple[Coordinator, list[str]]:
    said: list[str] = []
    return Coordinator(stage.bucket, interval_s=5.0, log=said.append), said


def test_held_store_is_said_once_and_tried_again() -> None:
    stage = Stage()
    stage.clock.pid = os.getpid()
    other = Lock(stage.bucket)
    other.acquire()
    coordinator, said = resident(stage)
    assert coordinator.step() is None and coordinator.step() is None
    assert len(said) == 1 and said[0].startswith("tick skipped: refused: another tick holds this store: pid")
    other.release()
    assert coordinator.step() is not None


def test_unreachable_store_is_no_end_of_it() -> None:
    stage = Stage()
    coordinator, said = resident(stage)
    stage.store.no_writes = ("",)
    assert coordinator.step() is None
    assert len(said) == 1 and "tick skipped" in said[0]
    stage.store.no_writes = ()
    assert coordinator.step() is not None


def test_idle_it_waits_long_and_any_ring_wakes_it() -> None:
    stage = Stage()
    coordinator, _ = resident(stage)
    coordinator.step()
    assert coordinator.next_in_s() == IDLE_INTERVAL_S
    began = stage.clock.at_s
    coordinator.wait(lambda: False)
    assert stage.clock.at_s - began == IDLE_INTERVAL_S
    coordinator.is_rung()
    stage.submit()
    began = stage.clock.at_s
    coordinator.wait(lambda: False)
    assert stage.clock.at_s - began == 1.0


def test_busy_it_ticks_at_its_interval_and_a_cancel_wakes_it() -> None:
    stage = Stage()
    stage.claim(AttemptId(stage.submit(), 0, 1))
    coordinator, _ = resident(stage)
    coordinator.step()
    coordinator.is_rung()
    doorbell.ring(stage.bucket, ("entry", "x"))
    began = stage.clock.at_s
    coordinator.wait(lambda: False)
    assert stage.clock.at_s - began == 5.0
    coordinator.step()
    doorbell.ring(stage.bucket, ("cancel", "x"))
    began = stage.clock.at_s
    coordinator.wait(lambda: False)
    assert stage.clock.at_s - began == 1.0


def test_it_ticks_when_a_retry_becomes_due() -> None:
    stage = Stage()
    a = AttemptId(stage.submit(), 0, 1)
    stage.claim(a)
    job, terms = stage.job(a.job)
    ended = end_attempt(stage.bucket, a, terms, Ended(Cause.FAILURE, "Exited with code 1"), Seen(worker="w"))
    settle(stage.bucket, a, ended.end, job=job)
    stage.clock.pass_s(8)
    coordinator, _ = resident(stage)
    coordinator.step()
    assert 1.5 < coordinator.next_in_s() <= 2.0
    coordinator.run(lambda: not stage.keys(keys.QUEUED_LATER) or stage.clock.at_s > 12)
    assert stage.keys(keys.QUEUED_LATER) == []


def test_stop_ends_the_wait() -> None:
    stage = Stage()
    coordinator, _ = resident(stage)
    coordinator.run(lambda: coordinator.last is not None)
    assert coordinator.last is not None and stage.clock.at_s == 0
