"""Machines that a person has closed, and a queue that is paused, on whole simulated machines."""

from __future__ import annotations

from stado_like.bucket import order, workers
from stado_like.job import keys
from stado_like.job.states import Cause
from tests.sim.teeth import ordered
from tests.sim.teeth.below import _one_machine, _submit


def test_machine_that_starts_again_is_still_closed() -> None:
    ordered.machine_that_starts_again_asks_first_what_is_wanted_of_it()
    ordered.machine_whose_record_nobody_understands_takes_nothing_at_its_start()


def test_paused_queue_is_paused_for_workers_that_start() -> None:
    ordered.worker_that_starts_again_asks_first_whether_the_queue_is_paused()
    ordered.worker_that_has_heard_of_a_pause_claims_nothing()


def test_drained_machine_holds_nothing_within_its_graces_and_stays_so() -> None:
    with _one_machine() as fleet:
        a = _submit(fleet, "900")
        fleet._go(fleet.world.now_s + 20.0)
        assert a in fleet.judge.seen.starts
        bucket = ordered._ada(fleet)
        made = workers.drain(bucket, "h1", by="ada")
        fleet._go(fleet.world.now_s + 30.0)
        end = fleet.judge.seen.end_records[a]
        assert (end.cause, end.reason) == (Cause.MOVED, "Moved off machine h1: it is being drained")
        said = fleet.judge.seen.said["h1"]
        assert said.wanted == made.nonce and not said.held and not said.accepting
        fleet._go(fleet.world.now_s + 200.0)
        assert a.next not in fleet.judge.seen.starts
        workers.uncordon(bucket, "h1", by="ada")
        fleet._go(fleet.world.now_s + 10.0)
        assert a.next in fleet.judge.seen.starts


def test_drain_taken_back_before_it_was_heard_moves_nothing() -> None:
    with _one_machine() as fleet:
        a = _submit(fleet, "300")
        fleet._go(fleet.world.now_s + 20.0)
        fleet.hosts[0].kill_agent()
        bucket = ordered._ada(fleet)
        workers.drain(bucket, "h1", by="ada")
        fleet._go(fleet.world.now_s + 5.0)
        workers.uncordon(bucket, "h1", by="ada")
        fleet.hosts[0].start_agent()
        fleet._go(fleet.world.now_s + 400.0)
        assert fleet.judge.seen.end_records[a].cause is Cause.NONE


def test_order_whose_agent_dies_before_it_is_passed_on_is_carried_out_by_the_next() -> None:
    with _one_machine() as fleet:
        host = fleet.hosts[0]
        a = _submit(fleet, "900")
        fleet._go(fleet.world.now_s + 20.0)
        host.kill_agent()
        order.requeue(ordered._ada(fleet), a.job, 0, by="ada")
        fleet._go(fleet.world.now_s + 20.0)
        assert a not in fleet.judge.seen.ends
        host.start_agent()
        fleet._go(fleet.world.now_s + 20.0)
        end = fleet.judge.seen.end_records[a]
        assert (end.cause, end.reason) == (Cause.REQUEUED, "Requeued by ada")
        fleet._go(fleet.world.now_s + 120.0)
        assert [key for key in fleet.shared.contents() if key.startswith(keys.INBOX)] == []
