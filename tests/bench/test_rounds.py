"""A run in which every peer is missing still ends with all else, and says who was missing and what would help."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.figures import Results
from bench.peers.contestant import KINDS
from bench.report import markdown
from bench.rounds import Run

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark runs on Linux only"),
]


@pytest.mark.timeout(300)
def test_quick_round_without_any_peer(tmp_path: Path) -> None:
    places = {name: tmp_path / name for name in ("disk", "memory", "none")}
    for place in places.values():
        place.mkdir()
    run = Run(Results(), places["disk"], places["memory"], places["none"], rounds=1, quick=True)
    run.measure()
    wanted = {kind.title: f"not installed: {kind.install}" for kind in KINDS if kind.quick}
    assert run.results.missing == wanted
    page = markdown(run.results, {})
    for title, why in wanted.items():
        assert f"| {title} | not taken: {why} |" in page
    assert run.results.has("singles", "array", "disk_singles", "start_p50", "supervisor", "job_list", "job.puts")
    assert run.results.has("rank.puts", "idle_day", "tick_100.gets", "plan_10000")


def test_peer_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such peer: nobody; there are hq, "):
        Run(Results(), tmp_path, tmp_path, tmp_path, rounds=1, quick=True, only="hq,nobody")
