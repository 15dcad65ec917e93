"""Which rank of a group follows which: lanes of width K. (An array is one group.)

The rank with number r in its group belongs to lane r mod K. The first K ranks of a group are released at submit, or,
where the group depends on another, when that one is up; rank r ≥ K is released by its predecessor r - K: by its final
end where `max_parallel` asks that no more than K hold machines at once, else (K = 64) as soon as it was claimed or
ended once, which keeps the queue short without ever waiting. Nobody counts: two releases of one rank write the same
entry, and a lost one is found by walking the lane.

Why looking at the direct predecessor is enough. Only release makes an entry, only an entry makes a claim, and a
rank without a verdict on its job ends only through its claim. So a predecessor that ended was released, hence its
own predecessor had ended (or been claimed) before: induction along the lane. A person's stop of an unreleased rank
writes no end, and a final task is never opened again.

An array in blocks has no lanes: its units release each other along a tree (`job/blocks`), its ranks are released by
their unit's end.
"""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job import blocks
from stado_like.job.terms import Group, Terms


def first_ranks(terms: Terms) -> tuple[int, ...]:
    """The ranks released at submit."""
    return tuple(rank for group in terms.groups if not group.depends_on for rank in head(terms, group))


def is_first(terms: Terms, rank: int) -> bool:
    """Whether a rank is released at submit."""
    if terms.block:
        return rank == terms.tasks
    group = terms.group_of(rank)
    return not group.depends_on and rank in head(terms, group)


def head(terms: Terms, group: Group) -> range:
    """The first rank of each of a group's lanes, or the first unit: nothing in the group comes before it."""
    if terms.block:
        return range(terms.tasks, terms.tasks + 1)
    return range(group.first, group.first + min(terms.lane_width, group.tasks))


def is_head(terms: Terms, rank: int) -> bool:
    return rank == terms.tasks if terms.block else rank in head(terms, terms.group_of(rank))


def predecessor(terms: Terms, rank: int) -> int | None:
    """The rank that releases `rank`; None at the head of its lane, and for the ranks of a block."""
    if terms.block:
        return blocks.parent(terms, rank) if blocks.is_unit(terms, rank) else None
    return None if is_head(terms, rank) else rank - terms.lane_width


def successors(terms: Terms, rank: int) -> range:
    """The ranks that `rank` releases: none at the end of its lane; those of a unit are units."""
    if terms.block:
        return blocks.children(terms, rank) if blocks.is_unit(terms, rank) else range(0)
    following = rank + terms.lane_width
    return range(following, following + (following in terms.group_of(rank).ranks))


def lane(terms: Terms, first: int) -> Iterator[int]:
    """The ranks of one lane in order; `first` is its head."""
    return iter(range(first, terms.group_of(first).ranks.stop, terms.lane_width))
