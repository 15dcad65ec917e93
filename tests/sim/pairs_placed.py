"""Pairs in which a placement meets somebody: another tick, a cancel, the claimer of what was given."""

from __future__ import annotations

from tests.sim import scenarios as scene
from tests.sim import scenarios_placed as placed
from tests.sim.pairs import Pair, by_a, tick, tick_in_spite

cancel_gang, cancel_one = scene.cancel(placed.GANG), scene.cancel(placed.GIVEN)

PAIRS: tuple[Pair, ...] = (
    Pair("two ticks place a gang", by_a(placed.gang_waits), tick, tick_in_spite),
    Pair("two ticks place one", by_a(placed.one_waits), tick, tick_in_spite, {0: {"Completed"}}),
    Pair("two ticks stop batch work", by_a(placed.urgent_waits), tick, tick_in_spite),
    Pair("tick that places one, canceller", by_a(placed.one_waits), tick, cancel_one),
    Pair("claimer of what was given, canceller", by_a(placed.was_given), placed.claim_given, cancel_gang),
)
