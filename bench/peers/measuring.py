"""One peer in one round: rates, the time to a start on idle, and what stays resident. Its figures are named here."""

from __future__ import annotations

from pathlib import Path

from bench.figures import Figure, Results, percentile
from bench.peers.contestant import Driver, Kind, started
from stado_like.ambient import REAL

QUICK_SINGLES, QUICK_ARRAY, QUICK_STARTS = 100, 200, 8
SINGLES, MANY_SINGLES, ARRAY = "singles", "many", "array"
P50, P95, MEMORY = "start_p50", "start_p95", "memory"


def name_of(kind: Kind, what: str) -> str:
    return f"{kind.name}.{what}"


def measure(results: Results, kind: Kind, place: Path, environments: Path, *, quick: bool, first: bool) -> None:
    """Raises `NotMeasured`. What was taken before stays. `first`: this is the first round."""
    with started(kind, place, environments) as driver:
        results.versions.update(driver.versions)
        _starts(results, kind, driver, QUICK_STARTS if quick else kind.starts)
        if first:
            results.add(
                Figure(name_of(kind, MEMORY), f"{kind.title}, resident", "MiB", digits=1), driver.resident_mib()
            )
        singles = min(kind.singles, QUICK_SINGLES) if quick else kind.singles
        if singles:
            _rate(results, kind, SINGLES, "singles", singles, driver)
        if kind.many and not quick:
            _rate(results, kind, MANY_SINGLES, "singles", kind.many, driver)
        array = min(kind.array, QUICK_ARRAY) if quick else kind.array
        if array:
            _rate(results, kind, ARRAY, "array", array, driver)


def _rate(results: Results, kind: Kind, what: str, do: str, n: int, driver: Driver) -> None:
    results.add(Figure(name_of(kind, what), f"{kind.title}: {n} {WORDS[what]}", "/s", digits=1), driver.rate(do, n))


WORDS = {SINGLES: "single jobs", MANY_SINGLES: "single jobs", ARRAY: "tasks in one"}


def _starts(results: Results, kind: Kind, driver: Driver, n: int) -> None:
    took = []
    for i in range(n + 1):
        REAL.sleep(REAL.uniform(0.0, 0.03))  # not in step with anybody's looks
        took.append(driver.start_ms(i))
    usual = took[1:]  # the first pays for imports and connections
    for what, share in ((P50, 0.5), (P95, 0.95)):
        figure = Figure(
            name_of(kind, what), f"{kind.title}: submit to first instruction, idle, {what[-3:]}", "ms", digits=1
        )
        results.add(figure, percentile(usual, share))
