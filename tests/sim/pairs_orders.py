"""Pairs in which an order meets somebody: an end, a cancel, a reaper, another order; and two people at one record."""

from __future__ import annotations

from stado_like.bucket import order, workers
from stado_like.job.states import Cause
from tests.sim import scenarios as scene
from tests.sim import scenarios_orders as orders
from tests.sim.pairs import (
    A,
    Act,
    Pair,
    _slept_running,
    by_a,
    by_both,
    cancel,
    exit_0,
    queued,
    retry,
    running,
    stop_one,
    take_any,
    tick,
)
from tests.sim.play import Hand, Play

requeue = orders.requeue()


def gives(cause: Cause) -> Act:
    """The machinery orders the first hand to stop."""

    def act(play: Play, hand: Hand) -> None:
        for a in sorted(play.judge.seen.starts):
            order.give_stop(hand.bucket, A, a, cause, "why")

    return act


def _drains(play: Play, hand: Hand) -> None:
    workers.drain(hand.bucket, "w9", reason="a fan", by=hand.name)


def _opens(play: Play, hand: Hand) -> None:
    workers.uncordon(hand.bucket, "w9", by=hand.name)


moved, requeued = orders._ordered(Cause.MOVED), orders._ordered(Cause.REQUEUED)
CANCELLED, DONE = {"Cancelled"}, {"Completed"}

PAIRS: tuple[Pair, ...] = (
    Pair("ender, requeuer", running, exit_0, requeue, {0: DONE}),
    Pair("ender with a retry, requeuer", running, retry, requeue, {0: DONE}),
    Pair("two requeuers", running, requeue, requeue, {0: DONE}),
    Pair("requeuer, canceller", running, requeue, cancel, {0: CANCELLED}),
    Pair("requeuer, mover of the same retry", by_a(scene._retry_is_due), requeue, scene.move_due, {0: DONE}),
    Pair("requeuer, claimer", by_a(scene._retry_is_due), requeue, take_any, {0: DONE}),
    Pair("requeuer, claimer of what is queued", queued, take_any, requeue, {0: DONE}),
    Pair("obeyer, canceller", by_a(requeued), orders.obey, cancel, {0: CANCELLED}),
    Pair("obeyer, stopper", by_a(moved), orders.obey, stop_one, {0: CANCELLED}),
    Pair("obeyer, requeuer", by_a(moved), orders.obey, requeue, {0: DONE}),
    Pair("obeyer, who gives another order", by_a(requeued), orders.obey, gives(Cause.PREEMPTED), {0: DONE}),
    Pair("obeyer, claimer of the next attempt", by_a(moved), orders.obey, take_any, {0: DONE}),
    Pair("obeyer, tick", by_a(moved), orders.obey, tick, {0: DONE}),
    Pair("obeyer that slept, reaper", by_both(_slept_running, gives(Cause.MOVED)), orders.obey, tick, {0: DONE}),
    Pair("two who give an order", running, gives(Cause.PREEMPTED), gives(Cause.MOVED), {0: DONE}),
    Pair("two drains of one machine", by_a(scene._nothing), _drains, _drains),
    Pair("a drain and its end", by_a(scene._nothing), _drains, _opens),
)
