"""Every pair of actors at every interleaving point: whatever the order, no rule is broken and all comes to a right
end.

The suite stops the first of the two at every third of its operations, which is a third of the time; all of them with
`STADO_PROOF=whole scripts/test tests/sim/test_interleavings.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from stado_like.job.spec import limits
from tests.sim import pairs
from tests.sim.catalogue import PAIRS
from tests.sim.faults import Op
from tests.sim.pairs import Pair, Schedule

STRIDE = 1 if os.environ.get("STADO_PROOF") == "whole" else 3


@pytest.fixture(autouse=True)
def narrow_lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(limits, "LANES_WITHOUT_A_CAP", 2)
    yield


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_every_interleaving(pair: Pair) -> None:
    """Case: a success is overwritten by a reaper's old read; two live copies; an assignment to what was cancelled."""
    broken: list[str] = []

    def check(schedule: Schedule) -> list[Op]:
        try:
            return pairs.run(pair, schedule)
        except AssertionError as found:
            broken.append(str(found))
            return []

    count = pairs.explore(pair, check, stride=STRIDE)
    assert count > 2
    assert not broken, f"{len(broken)} of {count} orders:\n" + "\n\n".join(broken[:2])
