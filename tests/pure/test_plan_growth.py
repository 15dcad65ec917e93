"""How the work of one plan grows with the board, counted in calls: seconds on a shared machine prove nothing.

Four times as many tasks and machines may take a little more than four times as many calls. A plan that asks for every
pair takes sixteen times as many.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from bench.plans import KINDS, board
from stado_like.planning.board import Board
from stado_like.planning.fit import why_not
from stado_like.planning.placement import place

GROWS_MOST = 1.5
"""Times as much as the board."""
FEW = 8.0
"""Questions to the predicate for each task: fewer than machines."""


def calls_of_a_plan(made: Board) -> tuple[int, int]:
    """All of them, and those that ask the predicate."""
    counted = [0, 0]

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            counted[0] += 1
            counted[1] += frame.f_code is why_not.__code__

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        place(made)
    finally:
        sys.setprofile(before)
    return counted[0], counted[1]


@pytest.mark.parametrize("kind", KINDS)
def test_work_of_a_plan_grows_as_the_board_does(kind: str) -> None:
    small, large = calls_of_a_plan(board(500, 50, kind=kind)), calls_of_a_plan(board(2_000, 200, kind=kind))
    assert large[0] <= 4 * GROWS_MOST * small[0], (small, large)
    assert large[1] <= FEW * 2_000, large
