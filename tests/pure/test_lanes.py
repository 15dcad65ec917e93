"""Lanes of width K, in each group for itself: who is released at submit, and who releases whom."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stado_like.job.terms import Terms, terms_of
from stado_like.planning import lanes


def array(size: int, cap: int = 0) -> Terms:
    document = {"task_template": {"command": "x"}, "array": {"size": size, "max_parallel": cap}}
    return terms_of({"metadata": {"name": "run"}, "spec": document})


def groups(*sizes: int, waits: tuple[int, ...] = ()) -> Terms:
    """`waits`: the groups, by number, that depend on group 0."""
    said: list[dict[str, Any]] = []
    for number, size in enumerate(sizes):
        many = {"node_selection": {"mode": "Any", "count": size}}
        group: dict[str, Any] = {"name": f"g{number}", "task_template": {"command": "x", "requested_resources": many}}
        if number in waits:
            group["depends_on"] = [{"group_name": "g0"}]
        said.append(group)
    return terms_of({"metadata": {"name": "run"}, "spec": {"task_groups": said}})


def test_capped_array_has_as_many_lanes_as_may_run() -> None:
    terms = array(7, 3)
    assert lanes.first_ranks(terms) == (0, 1, 2)
    assert [lanes.predecessor(terms, rank) for rank in range(7)] == [None, None, None, 0, 1, 2, 3]
    assert [list(lanes.successors(terms, rank)) for rank in range(7)] == [[3], [4], [5], [6], [], [], []]
    assert list(lanes.lane(terms, 0)) == [0, 3, 6]


def test_lanes_of_a_group_end_where_the_next_group_begins() -> None:
    terms = groups(66, 2, 65)
    assert lanes.first_ranks(terms) == (*range(64), 66, 67, *range(68, 132))
    assert list(lanes.successors(terms, 1)) == [65] and not lanes.successors(terms, 2)
    assert lanes.predecessor(terms, 132) == 68 and lanes.predecessor(terms, 66) is None
    assert list(lanes.lane(terms, 66)) == [66]


def test_group_that_depends_on_another_is_not_released_at_submit() -> None:
    terms = groups(2, 70, waits=(1,))
    assert lanes.first_ranks(terms) == (0, 1)
    assert lanes.is_head(terms, 2) and not lanes.is_first(terms, 2) and lanes.is_first(terms, 1)
    assert lanes.predecessor(terms, 2) is None and list(lanes.successors(terms, 2)) == [66]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=4))
def test_every_rank_lies_in_exactly_one_lane_and_is_released_by_the_one_before_it(sizes: list[int]) -> None:
    terms = groups(*sizes)
    seen: list[int] = []
    for group in terms.groups:
        for first in lanes.head(terms, group):
            assert lanes.is_first(terms, first)
            lane = list(lanes.lane(terms, first))
            assert [lanes.predecessor(terms, rank) for rank in lane] == [None, *lane[:-1]]
            assert [list(lanes.successors(terms, rank)) for rank in lane] == [*([one] for one in lane[1:]), []]
            seen += lane
    assert sorted(seen) == list(range(terms.tasks))
