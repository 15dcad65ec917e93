"""The benchmark takes real figures: a floor, a rate and a latency on a worker of its own, requests by role."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark runs on Linux only"),
]


def test_a_round_in_small_gives_figures_and_their_ratio(tmp_path: Path) -> None:
    from bench import rates, work
    from bench.cluster import cluster
    from bench.figures import Results, markdown

    results = Results()
    rates.floors(results, tmp_path, 10, disk=False)
    with cluster(tmp_path / "worker", f"file://{tmp_path}/worker/store?durable=0") as on:
        latency_ms = work.start_latency_ms(on, "start")
        results.add(rates.SINGLES, work.singles(on, "single", 4))
        results.add(rates.ARRAY, work.array(on, "array", 4))
    assert 0 < latency_ms < 20_000
    ratio = results.ratio("singles")
    assert ratio is not None and ratio > 0
    assert f"{ratio:.3g} × {rates.POPEN.title}" in markdown(results, {"Date": "today"})
    assert results.missing == {}


def test_requests_are_told_by_role_kind_and_family(tmp_path: Path) -> None:
    from bench.requests import per_job

    counts = per_job(tmp_path / "counted", f"file://{tmp_path}/counted/store?durable=0&poll=20ms", 2)
    assert set(counts) == {"submitter", "worker", "supervisor"}
    assert counts["submitter"]["create jobs"] == 1
    assert counts["worker"]["create running"] == 1
    assert counts["supervisor"]["create status"] == 1
