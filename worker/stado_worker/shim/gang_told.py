"""What a gang's member is told of the others, in the variables that distributed programs read. Pure.

Who shares a machine with whom follows from the placement of its generation, and stays as it is there for a member that
comes back alone: only where it runs changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from stado_like.job.gang_records import Barrier, Placement
from stado_like.job.terms import Terms, group_rank


def among(terms: Terms, rank: int, placement: Placement) -> dict[str, str]:
    """`LOCAL_RANK` of `LOCAL_WORLD_SIZE` on its machine, `NODE_RANK` of that machine, `GROUP_RANK` in its group."""
    said = {"GROUP_RANK": str(group_rank(terms, rank))}
    on: dict[str, list[int]] = {}
    for seat in sorted(placement.members, key=lambda one: one.rank):
        on.setdefault(seat.worker, []).append(seat.rank)
    for node, ranks in enumerate(on.values()):
        if rank in ranks:
            said |= {
                "NODE_RANK": str(node),
                "LOCAL_RANK": str(ranks.index(rank)),
                "LOCAL_WORLD_SIZE": str(len(ranks)),
            }
    return said


def meeting(barrier: Barrier) -> dict[str, str]:
    """Where the members meet."""
    return {"MASTER_ADDR": barrier.address, "MASTER_PORT": str(barrier.port)} if barrier.port else {}


def told_gang(terms: Terms, rank: int, placement: Placement | None, barrier: Barrier | None) -> Mapping[str, str]:
    said = among(terms, rank, placement) if placement is not None else {}
    return said | meeting(barrier) if barrier is not None and barrier.go else said
