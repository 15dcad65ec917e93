"""Sets in the order of their cost: every one of them, once."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.planning.cheapest import cheapest_first

PAIRS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5).map(float)), max_size=7).map(sorted)


@settings(max_examples=200, deadline=None)
@given(PAIRS)
def test_every_set_comes_once_and_the_cheapest_first(costs: list[tuple[int, float]]) -> None:
    found = list(cheapest_first(costs))
    assert [cost for cost, _ in found] == sorted(cost for cost, _ in found)
    things = range(len(costs))
    assert sorted(one for _, one in found) == sorted(
        chosen for size in things for chosen in combinations(things, size + 1)
    )
    for cost, chosen in found:
        assert cost == (sum(costs[i][0] for i in chosen), sum(costs[i][1] for i in chosen))
