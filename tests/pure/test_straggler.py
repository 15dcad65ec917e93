"""Who lags the median of a group, and for how long without a break."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from stado_like.job.straggler import SAMPLES, sampled, straggler

NOW = 10_000.0


def steady(rate: float, *, begin: float = NOW - 400, offset: float = 0.0, every_s: float = 25.0) -> list[list[float]]:
    """Samples of a task that makes `rate` steps a second from `begin` on."""
    count = int((NOW - begin) / every_s)
    return [[begin + at * every_s, offset + at * every_s * rate] for at in range(count + 1)]


def find(steps: dict[int, list[list[float]]], behind: float = 10, after_s: float = 300, now: float = NOW) -> int | None:
    found = straggler(steps, behind_steps=behind, after_s=after_s, now=now)
    return None if found is None else found.rank


def test_the_one_that_lags_all_the_time_is_named_with_its_numbers() -> None:
    steps = {0: steady(1), 1: steady(1), 2: steady(1, offset=-40), 3: steady(1)}
    found = straggler(steps, behind_steps=10, after_s=300, now=NOW)
    assert found is not None
    assert (found.rank, found.step, found.median, found.behind, found.since) == (2, 360, 400, 40, NOW - 300)


def test_a_lag_that_is_not_old_enough_is_none() -> None:
    late = [one for one in steady(1) if one[0] < NOW - 100]  # its last sample: it has stood still for 100 s
    assert find({0: steady(1), 1: steady(1), 2: late}) is None
    assert find({0: steady(1), 1: steady(1), 2: late}, after_s=60) == 2


def test_a_lag_with_a_break_begins_anew() -> None:
    caught_up = [[at, step - (0 if NOW - 160 < at < NOW - 140 else 40)] for at, step in steady(1)]
    assert find({0: steady(1), 1: steady(1), 2: caught_up}) is None
    assert find({0: steady(1), 1: steady(1), 2: caught_up}, after_s=100) == 2


def test_reports_at_different_moments_are_no_lag() -> None:
    """Heartbeats come every quarter of a TTL: the newest step of one is 15 s older than that of another."""
    old = [one for one in steady(1, every_s=5) if one[0] <= NOW - 15]
    assert find({0: steady(1, every_s=5), 1: steady(1, every_s=5), 2: old}) is None


def test_who_began_later_is_not_compared_with_the_time_before() -> None:
    assert find({0: steady(1), 1: steady(1), 2: steady(1, begin=NOW - 100)}) is None


def test_alone_or_silent_nobody_is_a_straggler() -> None:
    assert find({}) is None
    assert find({0: steady(1)}) is None
    assert find({0: steady(1), 1: []}) is None


def test_of_two_the_slower_is_one_when_half_the_distance_is_enough() -> None:
    assert find({0: steady(1), 1: steady(1, offset=-40)}) == 1


def test_of_several_the_worst_is_named() -> None:
    steps = {0: steady(1), 1: steady(1), 2: steady(1), 3: steady(1, offset=-30), 4: steady(1, offset=-90)}
    assert find(steps) == 4


def test_nobody_is_one_while_all_stand_still_together() -> None:
    assert find({rank: [[NOW - 4000, 7.0]] for rank in range(4)}) is None


@given(
    gaps=st.lists(st.floats(0.0, 400.0), min_size=1, max_size=200),
    after_s=st.sampled_from([0.0, 60.0, 300.0, 3600.0]),
)
@example(gaps=[0.0, *[1.0, 299.0] * 8], after_s=3600.0)
@example(gaps=[0.0, *[1.0, 299.5] * 20], after_s=3600.0)
def test_samples_stay_few_and_cover_the_time(gaps: list[float], after_s: float) -> None:
    samples: tuple[tuple[float, float], ...] = ()
    at = 1_000.0
    first = at + gaps[0]
    for step, gap in enumerate(gaps):
        at += gap
        samples = sampled(samples, at, float(step), after_s)
    times = [one[0] for one in samples]
    assert len(samples) <= SAMPLES
    assert samples[-1] == (at, float(len(gaps) - 1))
    assert times == sorted(times)
    assert times[0] == first or times[0] <= at - after_s


def test_a_step_that_goes_back_is_a_step() -> None:
    assert sampled(((1.0, 5.0),), 100.0, 2.0, 300.0) == ((1.0, 5.0), (100.0, 2.0))
    assert sampled(((1.0, 5.0),), 100.0, 5.0, 300.0) == ((1.0, 5.0),)
