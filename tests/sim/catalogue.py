"""Every scene of the crash matrix, and every pair of the interleavings."""

from __future__ import annotations

from tests.sim import (
    pairs,
    pairs_blocks,
    pairs_days,
    pairs_orders,
    pairs_placed,
    pairs_waiting,
    scenarios_blocks,
    scenarios_days,
    scenarios_groups,
    scenarios_orders,
    scenarios_placed,
    scenarios_places,
    scenarios_waiting,
)

SCENES = (
    *scenarios_days.SCENES,
    *scenarios_groups.SCENES,
    *scenarios_orders.SCENES,
    *scenarios_placed.SCENES,
    *scenarios_places.SCENES,
    *scenarios_waiting.SCENES,
    *scenarios_blocks.SCENES,
)
PAIRS = (
    *pairs.PAIRS,
    *pairs_days.PAIRS,
    *pairs_orders.PAIRS,
    *pairs_waiting.PAIRS,
    *pairs_placed.PAIRS,
    *pairs_blocks.PAIRS,
)
