"""Sets of things, the cheapest first, without making all of them.

Costs are pairs, of which the first counts first, and are added up. From each set come two others that cost no less:
with the next thing as well, and with the next thing in place of its last. Every set is reached in one way. (In the
manner of Lawler, "A procedure for computing the K best solutions to discrete optimization problems", 1972.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

Pair = tuple[int, float]


def cheapest_first(costs: Sequence[Pair]) -> Iterator[tuple[Pair, tuple[int, ...]]]:
    """The cost and the numbers of the things of each set that is not empty. `costs` ascend."""
    if not costs:
        return
    heap: list[tuple[Pair, tuple[int, ...]]] = [(costs[0], (0,))]
    while heap:
        cost, chosen = heappop(heap)
        yield cost, chosen
        following = chosen[-1] + 1
        if following < len(costs):
            for one in ((*chosen, following), (*chosen[:-1], following)):
                heappush(heap, ((sum(costs[i][0] for i in one), sum(costs[i][1] for i in one)), one))
