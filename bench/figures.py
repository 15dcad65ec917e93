"""Figures of rounds: medians, and ratios to a floor or a peer that was measured in the same rounds.

A number per second says little on a shared machine, whose speed changes by a factor of two within a minute. So every
round measures everything once, one after the other, and what is compared is the median over the rounds of the *ratio*
within a round, not the ratio of two medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured thing. `floor`: the name of the figure it is compared with where it is told by itself."""

    name: str
    title: str
    unit: str
    floor: str = ""
    digits: int = 0


@dataclass(slots=True)
class Results:
    """What the rounds brought. `missing`: what could not be taken, and why. `requests`: by role and kind, per one-task
    job. `versions`: of what was measured beside stado."""

    figures: dict[str, Figure] = field(default_factory=dict)
    rounds: dict[str, list[float]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    requests: dict[str, dict[str, float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, figure: Figure, value: float) -> None:
        self.figures.setdefault(figure.name, figure)
        self.rounds.setdefault(figure.name, []).append(value)

    def has(self, *names: str) -> bool:
        return all(name in self.rounds for name in names)

    def median(self, name: str) -> float:
        return statistics.median(self.rounds[name])

    def ratio(self, name: str, to: str = "") -> float | None:
        """Median of the ratios, round by round, to `to` or the figure's own floor; None where either is missing."""
        other = to or (self.figures[name].floor if name in self.figures else "")
        if not self.has(name, other):
            return None
        mine, theirs = self.rounds[name], self.rounds[other]
        if len(mine) != len(theirs):  # one of them was missed in a round: pairs would be of different rounds
            return self.median(name) / self.median(other)
        return statistics.median(one / two for one, two in zip(mine, theirs, strict=True))

    def told(self, name: str) -> str:
        """The median with its unit."""
        one = self.figures[name]
        number = f"{self.median(name):,.{one.digits}f}"
        return f"${number}" if one.unit == "$" else f"{number} {one.unit}".rstrip()

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
                }
                for name, one in self.figures.items()
            },
            "requests_per_job": self.requests,
            "versions": self.versions,
            "missing": self.missing,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]
