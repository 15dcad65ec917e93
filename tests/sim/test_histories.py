"""The rule about histories notices one that could not have happened."""

from __future__ import annotations

import pytest

from tests.sim.histories import impossible_steps


@pytest.mark.parametrize(
    ("states", "wrong"),
    [
        (["Pending", "Preparing", "Starting", "Running", "Failed", "Pending", "Cancelled"], []),
        (["Pending", "Preparing", "Starting", "Running", "Stopping", "Cancelled", "Failed"], []),
        (["Pending", "Running"], [("Pending", "Running")]),
        (["Pending", "Preparing", "Completed"], [("Preparing", "Completed")]),
        (["Failed", "Preparing"], [("Failed", "Preparing")]),
        (["Running", "Failed", "Completed", "Pending"], [("Failed", "Completed")]),
    ],
)
def test_step_that_is_no_arrow_is_seen(states: list[str], wrong: list[tuple[str, str]]) -> None:
    assert list(impossible_steps(states)) == wrong
