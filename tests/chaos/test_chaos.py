"""A short campaign of real processes on a directory; `scripts/chaos` runs long ones, and on a real server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.campaign import Plan, run
from tests.chaos.checker import check
from tests.chaos.table import markdown

pytestmark = pytest.mark.serial
SHORT = Plan(minutes=0.14, store="dir", seed=7, workers=("w1", "w2"), jobs_most=10, first_s=2.0, machines_go=False)


@pytest.mark.timeout(100)
def test_killed_and_stopped_processes_lose_nothing_and_commit_nothing_twice() -> None:
    """A worker killed and started again finds and adopts or ends its children; the Down of a killed supervisor is seen
    at once; nothing that a full disk, a stopped supervisor or a killed tick leaves behind is lost."""
    history = run(replace(SHORT))
    broken = {name: found for name, found in check(history).items() if found}
    assert broken == {}, markdown(history)
    assert history.strikes
    assert history.acknowledged
