"""The benchmark takes real figures: a floor, a rate and a latency on a worker of its own, requests by role, a tick."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from bench import costs, rates, ticks, work
from bench.cluster import NotMeasured, cluster
from bench.figures import Results
from bench.peers import measuring
from bench.peers.contestant import KINDS, started
from bench.report import markdown, pictures
from bench.requests import per_job

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmark runs on Linux only"),
]
PARALLEL = next(kind for kind in KINDS if kind.name == "parallel")


def test_a_round_in_small_gives_figures_their_ratio_and_a_page(tmp_path: Path) -> None:
    results = Results()
    rates.floors(results, tmp_path, 10, disk=False)
    with cluster(tmp_path / "worker", f"file://{tmp_path}/worker/store?durable=0") as on:
        latency_ms = work.start_latency_ms(on, "start")
        results.add(rates.SINGLES, work.singles(on, "single", 4))
        results.add(rates.ARRAY, work.array(on, "array", 70))
    assert 0 < latency_ms < 20_000
    ratio = results.ratio("singles")
    assert ratio is not None and ratio > 0
    page = markdown(results, {"Date": "today"})
    assert f"| {results.told('singles')} |" in page
    assert "rates" in pictures(results)
    assert results.missing == {}


def test_requests_are_told_by_role_kind_and_family(tmp_path: Path) -> None:
    counts = per_job(tmp_path / "counted", f"file://{tmp_path}/counted/store?durable=0&poll=20ms", 2)
    assert set(counts) == {"submitter", "worker", "supervisor"}
    assert counts["submitter"]["create jobs"] == 1
    assert counts["worker"]["create running"] == 1
    assert counts["supervisor"]["create status"] == 1


def test_ranks_of_an_array_are_counted_too(tmp_path: Path) -> None:
    results = Results()
    costs.ranks(results, tmp_path, 10)
    assert 0 < results.median("rank.puts") <= 5
    assert results.median("rank.dollars") > 0


def test_tick_over_a_queue_made_of_copies(tmp_path: Path) -> None:
    results = Results()
    ticks.measure(results, tmp_path, 150)
    assert results.median("tick_150.list") >= 4
    assert 0 < results.median("tick_150.seconds") < 60
    assert results.median("tick_150.memory") > 5


def _environments(tmp_path: Path) -> Path:
    """Peers' Pythons, of which the one has nothing installed but what a driver of a program needs: nothing."""
    place = tmp_path / "environments" / "peers" / "bin"
    place.mkdir(parents=True)
    (place / "python").symlink_to(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
    return tmp_path / "environments"


@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_peer_is_driven_through_its_pipe(tmp_path: Path) -> None:
    with started(PARALLEL, tmp_path / "peer", _environments(tmp_path)) as driver:
        assert set(driver.versions) == {"GNU parallel"}
        assert driver.rate("array", 3) > 0
        assert driver.start_ms(0) > 0
        assert driver.resident_mib() == 0


@pytest.mark.parametrize("name", ["hq", "jqueue"])
def test_peer_that_is_not_installed_is_told_and_costs_nothing_else(tmp_path: Path, name: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == name)
    results = Results()
    with pytest.raises(NotMeasured) as said:
        measuring.measure(results, kind, tmp_path / "peer", _environments(tmp_path), quick=True, first=True)
    assert "No module named" in str(said.value) or f"not installed: {kind.install}" in str(said.value)
    assert results.figures == {}
