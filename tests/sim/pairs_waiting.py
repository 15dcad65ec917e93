"""Pairs around jobs that wait for others, children of parents that end, and tasks that waited too long."""

from __future__ import annotations

from tests.sim import scenarios as scene
from tests.sim import scenarios_waiting as waiting
from tests.sim.pairs import Pair, by_a, exit_0, take_any, tick, tick_in_spite
from tests.sim.play import Hand, Play, child_of
from tests.sim.scenarios import ONE
from tests.sim.scenarios_waiting import CHILD, NEXT, SOON


def _parent_of_mine(play: Play, hand: Hand) -> None:
    """The parent runs here, and its child is queued."""
    scene._running(play, hand)
    play.submit(play.bucket("ada"), child_of(ONE, CHILD), request_id="r-child")


def submit_child(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, child_of(ONE, CHILD), request_id="r-child")


EITHER = {"Completed", "Cancelled"}
may_go, late = by_a(waiting._may_go), by_a(waiting._is_late)

PAIRS: tuple[Pair, ...] = (
    Pair("two ticks release a waiter", may_go, tick, tick_in_spite, {0: {"Completed"}}),
    Pair("tick that releases a waiter, claimer", may_go, tick, take_any, {0: {"Completed"}}),
    Pair("tick that releases a waiter, canceller", may_go, tick, scene.cancel(NEXT), {0: EITHER}),
    Pair("tick that releases a waiter, deleter of the awaited", may_go, tick, scene.delete_job(ONE), {0: EITHER}),
    Pair("tick that gives a waiter up, its canceller", by_a(waiting._awaited_was_deleted), tick, scene.cancel(NEXT)),
    Pair("tick, submitter of a waiter", by_a(scene._over), tick, waiting.submit_waiter, {0: {"Completed"}}),
    Pair("a released rank ends, tick", by_a(waiting._several_run_after), exit_0, tick, {0: {"Completed"}}),
    Pair("parent ends, claimer of its child", by_a(_parent_of_mine), exit_0, take_any, {0: EITHER}),
    Pair("parent ends, submitter of a child", by_a(scene._running), exit_0, submit_child, {0: EITHER}),
    Pair("canceller of a parent, tick", by_a(waiting._family), scene.cancel(ONE), tick),
    Pair("two ticks end a child", by_a(waiting._parent_ended), tick, tick_in_spite, {0: EITHER}),
    Pair("tick that ends a child, its canceller", by_a(waiting._parent_ended), tick, scene.cancel(CHILD), {0: EITHER}),
    Pair("two ticks end what is late", late, tick, tick_in_spite, {0: {"Unschedulable"}}),
    Pair("tick that ends what is late, claimer", late, tick, take_any, {0: {"Unschedulable"}}),
    Pair("tick that ends what is late, canceller", late, tick, scene.cancel(SOON), {0: {"Unschedulable", "Cancelled"}}),
    Pair(
        "tick that ends a late waiter, claimer",
        by_a(waiting._released_is_late),
        tick,
        take_any,
        {0: {"Unschedulable", "Completed"}},
    ),
    Pair("two ticks carry on where another died", by_a(waiting._tick_died_over_it), tick, tick_in_spite),
)
