"""Blocks of arrays in a picture: what their ends say is put where the rules look for ends of tasks; and the rules about
blocks themselves.

A unit is no task, so its rows are taken out of what is listed by rank. Ends that could not be read leave their ranks
unknown: no rule speaks of them but the one about that record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stado_like.errors import BadRecord
from stado_like.fsck.finding import Finding, Findings, found
from stado_like.job import blocks, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import End
from stado_like.job.terms import Terms

if TYPE_CHECKING:
    from stado_like.fsck.picture import JobPicture


def set_aside(p: JobPicture, terms: Terms, read: Callable[[AttemptId], End | None]) -> None:
    """Take units out of the listed ranks; `read` gives a unit's end (None: unreadable, or not wanted)."""
    status = p.status
    status.stops -= set(blocks.units(terms))
    for unit in [rank for rank in status.beats if blocks.is_unit(terms, rank)]:
        del status.beats[unit]
        status.units.setdefault(unit, False)
    for unit in [rank for rank in status.ends if blocks.is_unit(terms, rank)]:
        del status.ends[unit]
        status.units[unit] = True
    own = {rank for rank, numbers in status.ends.items() if 1 in numbers} - p.carried
    for unit in sorted(unit for unit, ended in status.units.items() if ended):
        end = read(AttemptId(p.id, unit, 1))
        if end is None:
            p.moving.update(blocks.ranks_of(terms, unit))
            continue
        p.units[unit] = end
        status.given_back.update(end.given_back)
        for rank in blocks.ranks_of(terms, unit):
            if blocks.carries(end, rank):
                p.carried.add(rank)
                if rank in own:
                    p.troubles.append(_twice(AttemptId(p.id, rank, 1)))
                _open_one(p, AttemptId(p.id, rank, 1), end)


def _open_one(p: JobPicture, a: AttemptId, block: End) -> None:
    p.status.ends[a.rank].add(1)
    try:
        end = blocks.unpacked(a, block)
    except BadRecord as bad:
        p.troubles.append(found("end-unreadable", keys.end(a), bad.message))
        return
    if end is not None:
        p.ends[a] = end


def _twice(a: AttemptId) -> Finding:
    return found("end-twice", keys.end(a), f"{a} has an end of its own, and its block carries another")


def blocks_tell_every_rank(p: JobPicture) -> Findings:
    """The end of a block says of each of its ranks how it ended, or that it is given back; never both."""
    if p.terms is None or p.is_dying:
        return
    for unit, end in sorted(p.units.items()):
        ranks = set(blocks.ranks_of(p.terms, unit))
        carried = {int(name) for name in end.carried if name.isdigit()}
        back = set(end.given_back)
        wrong = (ranks ^ (carried | back)) | (carried & back) | ({end.goes_on} - back - {None})
        if wrong:
            first = min(rank for rank in wrong if rank is not None)
            sentence = f"the block {unit - p.terms.tasks} of {p.id} does not say once what became of rank {first}"
            yield found("block-unclear", keys.end(AttemptId(p.id, unit, 1)), sentence)
