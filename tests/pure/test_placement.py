"""One board, one plan: the worlds of `tests/worlds`, each with what is planned, and what is said of the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from stado_like.planning.board import Board, Member, Unit
from stado_like.planning.leaving import leaving
from stado_like.planning.placement import place
from stado_like.planning.placing import Placing
from tests.builders_worlds import WORLDS, board_of, carried_out, load, plan_of

PATHS = [pytest.param(path, id=path.stem) for path in sorted(WORLDS.glob("*.yaml"))]
STEPS = 4
"""A hold, its echo, the eviction: then nothing is left to plan."""

HERE = "tests/pure/test_placement.py::test_published_reason_is_said_in_a_world"
PUBLISHED = [
    pytest.param(row["says"], id=row["says"][:60])
    for row in yaml.safe_load((WORLDS.parent / "data" / "reasons" / "pending-reasons.yaml").read_text())["rows"]
    if HERE in row.get("now", ())
]


def plans_anything(board: Board, plan: Placing) -> bool:
    return bool(plan.placed or plan.taken or plan.evictions or plan.shapes or plan.holds != board.holds)


@pytest.mark.parametrize("path", PATHS)
def test_world_has_this_plan(path: Path) -> None:
    world = load(path)
    assert plan_of(place(board_of(world))) == world["then"]


@pytest.mark.parametrize("path", PATHS)
def test_plan_does_not_depend_on_the_order_of_machines_and_units(path: Path) -> None:
    board = board_of(load(path))
    turned = replace(board, spots=board.spots[::-1], units=board.units[::-1])
    assert place(turned) == place(board)


@pytest.mark.parametrize("path", PATHS)
def test_plan_that_was_carried_out_leaves_nothing_to_plan(path: Path) -> None:
    board = board_of(load(path))
    plan = place(board)
    if plan.shapes:
        return  # the job has tasks only when somebody made them
    for _ in range(STEPS):
        board = carried_out(board, plan)
        plan = place(board)
        if not plans_anything(board, plan):
            return
    raise AssertionError(f"still plans: {plan_of(plan)}")


@pytest.mark.parametrize("says", PUBLISHED)
def test_published_reason_is_said_in_a_world(says: str) -> None:
    """Every row of the table of pending reasons that a placement says."""
    pattern = re.compile(re.sub("<[^>]+>", ".+", re.escape(says)))
    said = [reason for path in WORLDS.glob("*.yaml") for reason in load(path)["then"].get("waiting", {}).values()]
    assert any(pattern.search(reason) for reason in said)


def test_head_says_what_each_machine_says() -> None:
    plan = place(board_of(load(WORLDS / "head-with-known-start.yaml")))
    (one,) = plan.waiting.values()
    assert one.headline
    assert one.nodes == {
        "a": ("insufficient cpu: need 8 cores, 0 free",),
        "b": ("insufficient cpu: need 8 cores, 0 free",),
    }


def test_work_that_no_machine_takes_says_what_each_says() -> None:
    plan = place(board_of(load(WORLDS / "closed-machines.yaml")))
    (one,) = plan.waiting.values()
    assert not one.headline
    assert one.nodes == {
        "a": ("machine is cordoned: repair",),
        "b": ("insufficient cpu: need 8 cores, 4 free",),
    }


def test_work_behind_the_head_has_no_headline() -> None:
    plan = place(board_of(load(WORLDS / "backfill-ends-in-time.yaml")))
    assert [job.name for job, one in plan.waiting.items() if one.headline] == ["big"]


def test_gang_says_what_keeps_each_machine_out_because_of_the_others() -> None:
    plan = place(board_of(load(WORLDS / "keep-within-nowhere.yaml")))
    (one,) = plan.waiting.values()
    assert one.nodes["b"] == ("the run is kept within rack r1",)


def test_machine_that_refused_it_lately_says_so() -> None:
    plan = place(board_of(load(WORLDS / "refused-lately.yaml")))
    (one,) = plan.waiting.values()
    assert one.nodes["b"] == ("machine did not take twice when it was last placed here",)


def test_two_victims_that_end_one_after_the_other_are_stopped_once() -> None:
    """Row: endless evict/re-admit loop. The first victim's room is not given to a third, nor back to the victim, and
    nobody else is stopped meanwhile."""
    board = board_of(load(WORLDS / "preemption-several-victims.yaml"))
    plan = place(board)
    assert len(plan.evictions) == 2
    stopping = carried_out(board, plan)
    (spot,) = stopping.spots
    first, second = spot.running
    again = Unit(first.job, (Member(first.attempt.next, first.ask),), 0, 0, time_limit_s=60)
    half = leaving(spot.machine, (first,), (second,))
    board = replace(stopping, spots=(replace(spot, machine=half, running=(second,)),), units=(*stopping.units, again))
    plan = place(board)
    assert not plan.placed and not plan.evictions and plan.holds == board.holds
    assert plan.waiting[again.job].reason == "Queued behind higher-priority work (urgent)"
    board = replace(board, spots=(replace(spot, machine=leaving(spot.machine, spot.running), running=()),))
    (placed,) = place(board).placed
    assert placed.job.name == "urgent"


def test_victim_that_ended_by_itself_is_not_waited_for() -> None:
    """Row: preemptor stuck waiting for a victim already gone."""
    (placed,) = place(board_of(load(WORLDS / "preemption-victim-is-gone.yaml"))).placed
    assert placed.job.name == "urgent"


def test_gang_is_no_refuge_from_preemption() -> None:
    """Row: gangs immune to preemption. The whole gang is stopped, and the reason names the preemptor."""
    plan = place(board_of(load(WORLDS / "preemption-whole-gang.yaml")))
    assert [one.attempt.rank for one in plan.evictions] == [0, 1]


def test_room_of_what_is_stopping_is_not_given_away() -> None:
    """Row: two jobs on one accelerator."""
    plan = place(board_of(load(WORLDS / "preemption-waits-for-the-stop.yaml")))
    assert not plan.placed and not plan.taken
