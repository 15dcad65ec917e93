"""Which task of a group the others wait for: the one whose step lags the median, and has done so without a break.

Not obvious because a heartbeat is one instant and a lag of ten steps in one instant says nothing: tasks report at
different moments, and some steps take longer. So each supervisor keeps a few samples of its own steps over time, and
the lag is looked at wherever anybody has a sample in the last `after_s` seconds. Only who lagged at all of them is a
straggler. Nobody is compared with himself alone: there are at least two tasks that report steps. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SAMPLES = 16

Samples = Sequence[Sequence[float]]
"""`(store time, step)`, oldest first: the step stands until the next sample."""


@dataclass(frozen=True, slots=True)
class Straggler:
    """`behind`: steps between it and the median, now. `since`: the first moment that is known of this lag."""

    rank: int
    step: float
    median: float
    behind: float
    since: float


def sampled(samples: Samples, at: float, step: float, after_s: float) -> tuple[tuple[float, float], ...]:
    """The samples with one more, so few that they travel in a heartbeat, and so many that they cover `after_s`.

    While the newest two are close to each other the newest is replaced, so that the samples span the time however
    often a program reports.
    """
    known = [(one[0], one[1]) for one in samples]
    if known and known[-1][1] == step:
        return tuple(known)
    if len(known) > 1 and at - known[-2][0] < after_s / (SAMPLES // 2 - 1):
        known.pop()  # so two samples in a row are at least so far apart from the one before: 16 of them cover the time
    known.append((at, step))
    while len(known) > SAMPLES or (len(known) > 1 and known[1][0] <= at - after_s):
        known.pop(0)  # the one before the time asked about stays: it says where the task stood when that began
    return tuple(known)


def straggler(steps: Mapping[int, Samples], *, behind_steps: float, after_s: float, now: float) -> Straggler | None:
    """The worst of those who lagged the median of the group by `behind_steps` all through the last `after_s`."""
    members = {rank: samples for rank, samples in steps.items() if samples}
    if len(members) < 2:
        return None
    begin = now - after_s
    moments = sorted({begin, now, *(one[0] for each in members.values() for one in each if begin < one[0] < now)})
    found: list[Straggler] = []
    for rank, samples in members.items():
        lags = [(at, _lag(members, rank, at)) for at in moments]
        if any(lag is None or lag < behind_steps for _, lag in lags):
            continue
        middle = _median([each[-1][1] for each in members.values()])
        step = samples[-1][1]
        found.append(Straggler(rank, step, middle, middle - step, begin))
    return max(found, key=lambda one: (one.behind, -one.rank), default=None)


def _lag(members: Mapping[int, Samples], rank: int, at: float) -> float | None:
    """How far behind the median it was then; None where its own step was not known yet."""
    own = _step_at(members[rank], at)
    if own is None:
        return None
    known = [step for samples in members.values() if (step := _step_at(samples, at)) is not None]
    return _median(known) - own if len(known) > 1 else None


def _step_at(samples: Samples, at: float) -> float | None:
    place = bisect_right([one[0] for one in samples], at)
    return samples[place - 1][1] if place else None


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
