"""Placement in whole clusters without trouble: what is promised of queue, preemption and quotas, to the second."""

from __future__ import annotations

import pytest

from tests.sim.promises import heads_start_when_they_were_told
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


@pytest.mark.parametrize("seed", range(6))
def test_heads_start_when_they_were_told_whoever_passes_them(seed: int) -> None:
    """Random jobs with time limits that hold; what is held in the bucket is the promise."""
    assert heads_start_when_they_were_told(seed) > 0
