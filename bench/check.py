"""`scripts/bench --check`: nothing that was cheap has become dear. Counts exactly, ratios with slack.

No peers here: they are slow to start, and what a peer does is no fault of ours. A figure that has a bound and was not
taken fails the check, or a broken measurement would be a green one.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench import commands, costs, looks, rates, ticks
from bench.cluster import NotMeasured
from bench.figures import Results
from stado_like.errors import StadoError

BOUNDS = Path(__file__).parent / "bounds.toml"
ROUNDS = 3
FLOOR, SINGLES, ARRAY, STARTS, COMMANDS = 600, 120, 120, 10, 7


def main(place: Path, bounds: Path) -> int:
    said: Mapping[str, Any] = tomllib.loads(bounds.read_text())
    results = Results()
    for what, step in _steps(results, place, said):
        sys.stderr.write(f"{what}\n")
        try:
            step()
        except (NotMeasured, StadoError, OSError) as why:
            results.missing[what] = str(why)
    held, fell = judged(results, said)
    sys.stdout.write("".join(f"ok    {line}\n" for line in held) + "".join(f"FELL  {line}\n" for line in fell))
    for what, told in results.missing.items():
        sys.stdout.write(f"not taken: {what}: {told}\n")
    return 1 if fell else 0


def _steps(results: Results, place: Path, said: Mapping[str, Any]) -> list[tuple[str, Callable[[], None]]]:
    """Only what a bound asks for."""
    counts, ratios = set(said.get("counts", {})), {*said.get("at_least", {}), *said.get("at_most", {})}
    steps: list[tuple[str, Callable[[], None]]] = []
    if counts & {name for name in counts if name.startswith("job.")}:
        steps.append(("requests of a job", partial(costs.jobs, results, place / "jobs", 10)))
    if any(name.startswith("rank.") for name in counts):
        steps.append(("requests of a rank", partial(costs.ranks, results, place / "ranks", 200)))
    if "idle_minute" in counts:
        steps.append(("requests of an idle worker", partial(costs.idle_worker, results, place / "idle")))
    if any(name.startswith("tick_") for name in counts):
        steps.append(("tick over 100", partial(ticks.measure, results, place / "tick", 100)))
    if counts & {"show.requests", "list.requests"}:
        steps.append(("requests of looks", partial(looks.measure, results, place / "looks")))
    if ratios & {"help", "job_list"}:
        listing = partial(commands.measure, results, place / "commands", jobs=50, rounds=ROUNDS, times=COMMANDS)
        steps.append(("commands", listing))
    if ratios - {"help", "job_list"}:
        steps += [(f"rates, round {i + 1}", partial(_round, results, place / f"round-{i}")) for i in range(ROUNDS)]
    return steps


def _round(results: Results, place: Path) -> None:
    place.mkdir()
    rates.floors(results, place, FLOOR, disk=False)
    rates.in_memory(results, place, singles=SINGLES, many=0, array=ARRAY, samples=STARTS, quick=True)


def judged(results: Results, said: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What holds and what fell, one line each."""
    held: list[str] = []
    fell: list[str] = []
    for name, most in said.get("counts", {}).items():
        if not results.has(name):
            fell.append(f"{name}: was not taken; its bound is {most}")
            continue
        count = results.median(name)
        if isinstance(most, int):
            count = round(count)  # a bell that was heard twice, or not at all, shows as a fraction of one job
        less = "; the bound can be lowered" if count < most else ""
        (fell if count > most else held).append(f"{name}: {count:g}, at most {most}{less}")
    for kind, sign in (("at_least", 1), ("at_most", -1)):
        for name, (floor, times) in said.get(kind, {}).items():
            ratio = results.ratio(name, floor)
            if ratio is None:
                fell.append(f"{name}: was not taken beside {floor}; its bound is {times} times that")
                continue
            beyond = sign * (ratio - times) < 0
            told = f"{name}: {ratio:.3f} × {floor}, {kind.replace('_', ' ')} {times}"
            (fell if beyond else held).append(told)
    return held, fell
