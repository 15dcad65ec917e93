"""Which rank of an array follows which: lanes of width K.

Rank r belongs to lane r mod K. The first K ranks are released at submit; rank r ≥ K is released by its predecessor
r - K: by its final end where `max_parallel` asks that no more than K hold machines at once, else (K = 64) as soon
as it was claimed or ended once, which keeps the queue short without ever waiting. Nobody counts: two releases of
one rank write the same entry, and a lost one is found by walking the lane.

Why looking at the direct predecessor is enough. Only release makes an entry, only an entry makes a claim, and a
rank without a verdict on its job ends only through its claim. So a predecessor that ended was released, hence its
own predecessor had ended (or been claimed) before: induction along the lane. A person's stop of an unreleased rank
writes no end, and a final task is never opened again.
"""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job.terms import Terms


def first_ranks(terms: Terms) -> range:
    """The ranks released at submit."""
    return range(min(terms.lane_width, terms.tasks))


def successor(terms: Terms, rank: int) -> int | None:
    """The rank that `rank` releases, or None at the end of its lane."""
    following = rank + terms.lane_width
    return following if following < terms.tasks else None


def lane(terms: Terms, first: int) -> Iterator[int]:
    """The ranks of one lane in order; `first` < K."""
    return iter(range(first, terms.tasks, terms.lane_width))
