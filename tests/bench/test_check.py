"""`scripts/bench --check` bites: a bound made impossible fails and is named, a bound that holds passes."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.check import BOUNDS, judged
from bench.figures import Figure, Results

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark runs on Linux only")


def _check(tmp_path: Path, bounds: str) -> int:
    path = tmp_path / "bounds.toml"
    path.write_text(bounds)
    return main(["--check", "--bounds", str(path), "--out", str(tmp_path / "out")])


def test_bound_that_holds_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(tmp_path, "[counts]\nidle_minute = 70\n") == 0
    assert "ok    idle_minute: 69, at most 70" in capsys.readouterr().out


def test_bound_made_impossible_fails_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(tmp_path, "[counts]\nidle_minute = 1\n") == 1
    assert "FELL  idle_minute: 69, at most 1\n" in capsys.readouterr().out


def test_figure_that_was_not_taken_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _check(tmp_path, "[counts]\nmistyped = 1\n") == 1
    assert "FELL  mistyped: was not taken; its bound is 1\n" in capsys.readouterr().out


def _taken(mine: list[float], floor: list[float]) -> Results:
    results = Results()
    for one, other in zip(mine, floor, strict=True):
        results.add(Figure("singles", "single jobs", "/s", "popen"), one)
        results.add(Figure("popen", "Popen", "/s"), other)
    return results


def test_ratio_is_the_median_of_the_rounds_ratios() -> None:
    results = _taken([100.0, 10.0, 300.0], [200.0, 100.0, 300.0])
    held, fell = judged(results, {"at_least": {"singles": ["popen", 0.5]}})
    assert (held, fell) == (["singles: 0.500 × popen, at least 0.5"], [])
    held, fell = judged(results, {"at_least": {"singles": ["popen", 0.51]}})
    assert (held, fell) == ([], ["singles: 0.500 × popen, at least 0.51"])
    held, fell = judged(results, {"at_most": {"singles": ["popen", 0.4]}})
    assert (held, fell) == ([], ["singles: 0.500 × popen, at most 0.4"])


def test_stored_bounds_can_be_read() -> None:
    said = tomllib.loads(BOUNDS.read_text())
    assert set(said) == {"counts", "at_least", "at_most"}
    assert all(isinstance(one, int | float) for one in said["counts"].values())
    assert all(len(one) == 2 and one[1] > 0 for kind in ("at_least", "at_most") for one in said[kind].values())
