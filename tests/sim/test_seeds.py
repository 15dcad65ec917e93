"""Whole clusters under seeded trouble: nothing acknowledged is lost, nothing is committed twice, everything comes to
rest.

The suite runs 128 seeds and those that found something; twice as many with `STADO_PROOF=whole scripts/test
tests/sim/test_seeds.py`, and as many as you like with `scripts/sim`.
"""

from __future__ import annotations

import os

import pytest

from tests.sim.campaign import Tally, kept_seeds, run_seed
from tests.sim.fleet import Fleet

SEEDS = 256 if os.environ.get("STADO_PROOF") == "whole" else 128
GROUPS = 16


@pytest.mark.parametrize("group", range(GROUPS))
def test_seeds(group: int) -> None:
    """Case: lost allocations stop being replaced; healthy jobs flagged dead; long tasks run twice; zombies
    overwrite."""
    tally = Tally()
    broken = [
        f"seed {seed}: {found}" for seed in range(group, SEEDS, GROUPS) if (found := run_seed(seed, tally))
    ]
    assert not broken, f"{len(broken)} seeds (scripts/sim --replay SEED shows the whole trace):\n" + broken[0][-6000:]
    assert tally.jobs["acknowledged"] > 0
    assert tally.jobs["lost"] == 0


@pytest.mark.parametrize(("seed", "about"), kept_seeds(), ids=[str(seed) for seed, _ in kept_seeds()])
def test_seed_that_found_a_bug(seed: int, about: str) -> None:
    found = run_seed(seed, Tally())
    assert not found, f"{about}\n{found[-6000:]}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_same_seed_gives_the_same_trace(seed: int) -> None:
    def fingerprint() -> tuple[str, int]:
        fleet = Fleet(seed)
        try:
            fleet.run()
            return fleet.world.fingerprint, fleet.world.steps
        finally:
            fleet.close()

    first = fingerprint()
    assert first == fingerprint()
    assert first[1] > 100
