"""Crash at every operation: each transition × every store operation × {before, after, lost answer, refused by its own
success} × {same actor restarts, another carries on}."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stado_like.job.spec import limits
from tests.sim import matrix
from tests.sim.catalogue import SCENES
from tests.sim.scenarios import Scene


@pytest.fixture(autouse=True)
def narrow_lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two lanes where an array has no cap, so that five ranks show what sixty-five would."""
    monkeypatch.setattr(limits, "LANES_WITHOUT_A_CAP", 2)
    yield


@pytest.mark.parametrize("scene", SCENES, ids=[scene.name for scene in SCENES])
def test_crash_at_every_operation(scene: Scene) -> None:
    """Case: a worker is told that it lost a claim that it in fact won; a job stays in running/ with nobody running
    it."""
    broken = []

    def check(case: matrix.Case) -> bool:
        try:
            return matrix.run(case)
        except AssertionError as found:
            broken.append(str(found))
            return True

    count = matrix.try_every(scene, check)
    assert count > 0
    assert not broken, f"{len(broken)} of {count} cases:\n" + "\n\n".join(broken[:3])
