"""Every guard that is marked in shipped code is taken out in turn, and a checker must notice: N of N guards bite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from stado_like.job.spec import limits
from tests.sim.teeth import bites
from tests.sim.teeth.breaking import broken, marks
from tests.sim.teeth.registry import TEETH, Tooth


@pytest.fixture(autouse=True)
def narrow_lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(limits, "LANES_WITHOUT_A_CAP", 2)
    yield


def test_every_mark_has_a_tooth() -> None:
    marked = Counter(marks())
    toothed = Counter((one.file, one.mark) for one in TEETH)
    assert marked - toothed == Counter(), "guards that nobody takes out"
    assert toothed - marked == Counter(), "teeth for guards that are not marked"
    print(f"{len(TEETH)} of {marked.total()} guards bite")


@pytest.mark.parametrize("tooth", TEETH, ids=str)
def test_guard_bites(tooth: Tooth) -> None:
    bites.forget()
    try:
        with broken(tooth.file, tooth.function, *tooth.changes):
            for probe in tooth.probes:
                try:
                    probe()
                except AssertionError:
                    return
    finally:
        bites.forget()
    pytest.fail(f"without the guard {tooth} nothing noticed")
