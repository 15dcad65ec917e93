"""The page of the benchmark: what was missed, not taken or taken says so, and never by hand."""

from __future__ import annotations

from xml.etree import ElementTree

from bench.figures import Figure, Results, percentile
from bench.plots import OWN, Bar, bars
from bench.reach import BOUNDS, judged
from bench.report import WRITTEN, markdown, pictures


def _results(**values: float) -> Results:
    results = Results()
    for name, value in values.items():
        for _ in range(3):
            results.add(Figure(name.replace("__", "."), name, "/s"), value)
    return results


def test_bound_is_reached_missed_or_not_taken() -> None:
    told = {
        bound.bound: verdict for bound, verdict in judged(_results(singles=300.0, hq__singles=200.0, rq__singles=100.0))
    }
    assert len(told) <= len(BOUNDS)
    hyperqueue, rq = told["≥ 1.5 × HyperQueue's jobs of one task"], told["≥ 4 × RQ's fork worker"]
    assert hyperqueue is not None and hyperqueue.reached is True
    assert rq is not None and rq.reached is False
    assert told["≥ 100 × Slurm's jobs"] is None
    page = markdown(_results(singles=300.0, hq__singles=200.0, rq__singles=100.0), {})
    assert "1.50 × (300 /s to 200 /s) | reached |" in page
    assert "3.00 × (300 /s to 100 /s) | **missed** |" in page
    assert "≥ 100 × Slurm's jobs | not taken |" in page


def test_page_says_that_a_program_writes_it_and_names_who_was_not_taken() -> None:
    results = _results(singles=300.0)
    results.missing["Slurm"] = "slurmctld is not installed; Debian: apt install slurm-wlm"
    page = markdown(results, {"Date": "today"})
    assert page.startswith(WRITTEN)
    assert "| Slurm | not taken: slurmctld is not installed; Debian: apt install slurm-wlm |" in page
    assert "- Slurm: slurmctld is not installed" in page


def test_pictures_are_svg_and_say_their_numbers() -> None:
    for picture in pictures(_results(singles=300.0, hq__singles=200.0, start_p50=9.0, date=1.0)).values():
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    drawn = bars("a & b", [Bar("<one>", 10.0, "10 /s", OWN), Bar("nothing", 0.0, "0")])
    texts = [one.text for one in ElementTree.fromstring(drawn) if one.tag.endswith("text")]
    assert texts == ["a & b", "logarithmic scale", "<one>", "10 /s"]


def test_bars_are_longer_for_more() -> None:
    drawn = ElementTree.fromstring(bars("", [Bar("a", 1.0, ""), Bar("b", 10.0, ""), Bar("c", 100.0, "")]))
    widths = [float(one.attrib["width"]) for one in drawn if one.tag.endswith("rect")]
    assert widths[0] < widths[1] < widths[2]
    assert abs((widths[2] - widths[1]) - (widths[1] - widths[0])) < 0.2


def test_percentile_is_a_value_that_was_seen() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(map(float, range(100))), 0.95) == 94.0
