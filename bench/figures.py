"""Figures and how they are told: a median of rounds, as a ratio to a floor that was measured in the same rounds.

A number per second says little on a shared machine, whose speed changes by a factor of two within a minute. So every
round measures everything once, one after the other, and what is compared is the median over the rounds of the *ratio*
within a round, not the ratio of two medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing. `floor`: the name of the figure it is compared with. `bound`: what it should reach, in
    words. `more_is_better` only says how the ratio is read."""

    name: str
    title: str
    unit: str
    floor: str = ""
    bound: str = ""
    digits: int = 0


@dataclass(slots=True)
class Results:
    """What the rounds brought. `missing`: figures that could not be taken, and why."""

    figures: dict[str, Figure] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    requests: dict[str, dict[str, float]] = field(default_factory=dict)

    def add(self, figure: Figure, value: float) -> None:
        self.figures.setdefault(figure.name, figure)
        self.rounds.setdefault(figure.name, []).append(value)

    def median(self, name: str) -> float:
        return statistics.median(self.rounds[name])

    def ratio(self, name: str) -> float | None:
        """Median of the ratios to the floor of the same round; None without a floor."""
        floor = self.figures[name].floor
        if floor not in self.rounds:
            return None
        pairs = list(zip(self.rounds[name], self.rounds[floor], strict=False))
        return statistics.median(mine / other for mine, other in pairs) if pairs else None

    def as_json(self) -> dict[str, Any]:
        return {
            "figures": {
                name: {
                    "title": one.title,
                    "unit": one.unit,
                    "median": round(self.median(name), 4),
                    "rounds": [round(value, 4) for value in self.rounds[name]],
                    "floor": one.floor or None,
                    "ratio": _rounded(self.ratio(name)),
                    "bound": one.bound or None,
                }
                for name, one in self.figures.items()
            },
            "requests_per_job": self.requests,
            "missing": self.missing,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def markdown(results: Results, head: Mapping[str, str]) -> str:
    lines = ["# Benchmark", "", *(f"- {name}: {value}" for name, value in head.items()), ""]
    lines += ["| figure | median | rounds | to reach | ratio to its floor |", "|---|---:|---|---|---|"]
    for name, one in results.figures.items():
        rounds = " ".join(f"{value:.{one.digits}f}" for value in results.rounds[name])
        ratio, told = results.ratio(name), ""
        if ratio is not None:
            told = f"{ratio:.3g} × {results.figures[one.floor].title}"
        median = f"{results.median(name):.{one.digits}f} {one.unit}"
        lines.append(f"| {one.title} | {median} | {rounds} | {one.bound} | {told} |")
    if results.requests:
        lines += ["", *_request_lines(results.requests)]
    if results.missing:
        lines += ["", "Not measured:", "", *(f"- {what}: {why}" for what, why in results.missing.items())]
    return "\n".join(lines) + "\n"


def _request_lines(requests: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One row per kind and family of keys, one column per role: requests per one-task job."""
    roles = list(requests)
    kinds = sorted({kind for counts in requests.values() for kind in counts})
    lines = [f"| requests per one-task job | {' | '.join(roles)} |", "|---|" + "---:|" * len(roles)]
    for kind in kinds:
        cells = (requests[role].get(kind) for role in roles)
        lines.append(f"| {kind} | {' | '.join('' if cell is None else f'{cell:g}' for cell in cells)} |")
    return lines
