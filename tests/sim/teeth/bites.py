"""Probes: short runs that a shipped guard survives, and its absence does not. Each raises AssertionError when a rule
breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.sim import matrix, pairs
from tests.sim.campaign import Tally, run_seed
from tests.sim.catalogue import PAIRS, SCENES
from tests.sim.fleet import Fleet
from tests.sim.plan import Plan

Probe = Callable[[], None]


def forget() -> None:
    """What was learned with the guard in place does not hold without it, nor the reverse."""
    matrix.right.cache_clear()
    matrix._judged.clear()
    pairs._judged.clear()


def scene(name: str) -> Probe:
    """Every case of one scene of the crash matrix, until one breaks a rule."""
    (found,) = [one for one in SCENES if one.name == name]

    def probe() -> None:
        matrix.try_every(found, matrix.run)

    return probe


def pair(name: str) -> Probe:
    """Every interleaving of one pair, until one breaks a rule."""
    (found,) = [one for one in PAIRS if one.name == name]

    def probe() -> None:
        pairs.explore(found, lambda schedule: pairs.run(found, schedule))

    return probe


def seeds(*disasters: str, most: int = 60, hosts: int = 2) -> Probe:
    """Whole clusters under one or two kinds of trouble, until one breaks a rule."""

    def probe() -> None:
        for seed in range(most):
            plan = replace(
                Plan.of(seed), disasters=disasters, rates={}, hosts=hosts, disaster_every_s=15.0, trouble_s=300.0
            )
            fleet = Fleet(seed, plan)
            try:
                fleet.run()
            finally:
                fleet.close()

    return probe


def any_seed(most: int = 60) -> Probe:
    def probe() -> None:
        for seed in range(most):
            broken = run_seed(seed, Tally())
            assert not broken, broken

    return probe
