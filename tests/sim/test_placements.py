"""Placement in whole clusters without trouble: what is promised of queue, preemption and quotas, to the second."""

from __future__ import annotations

import pytest

from tests.sim.teeth import placements
from tests.sim.teeth.bites import Probe


@pytest.mark.parametrize(
    "probe",
    [
        placements.head_is_not_overtaken,
        placements.room_of_the_head_is_left_alone_though_the_bell_was_lost,
        placements.quota_is_kept_by_the_tick,
        placements.equals_are_not_stopped,
        placements.urgent_work_stops_what_is_not_protected,
        placements.protected_work_is_not_stopped,
    ],
    ids=lambda probe: probe.__name__,
)
def test_promise(probe: Probe) -> None:
    """Case: small work passes a large job for ever; preempted work is charged; a full cluster evicts in turns."""
    probe()
