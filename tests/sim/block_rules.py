"""Rules of arrays in blocks: each rank ends once, in its block or by itself; only what began nowhere is given back."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job import keys
from stado_like.job.keys import AttemptId
from tests.sim.fault_store import Change
from tests.sim.seen import Seen


def carried_ranks_end_once(seen: Seen, change: Change) -> Iterator[str]:
    """A first attempt that a block's end carries has no end of its own, whichever came first."""
    a = _created(seen, change)
    if a is None or a.n > 1:
        return
    if seen.is_unit(a):
        for rank in seen.ranks_of(a):
            if str(rank) in seen.end_records[a].carried and seen.holds(keys.end(AttemptId(a.job, rank, 1))):
                yield f"{change.actor} ended rank {rank} in {a}; it had ended by itself"
        return
    for unit in seen.carriers(a)[1:]:
        whole = seen.end_records.get(unit)
        if whole is None or a.rank not in whole.given_back:
            how = "goes on" if whole is None else "carried it"
            yield f"{change.actor} ended {a} by itself, though its block {how}"


def blocks_speak_of_all_their_ranks(seen: Seen, change: Change) -> Iterator[str]:
    """Each rank of a block is carried or given back by its end, not both; the one that goes on was claimed before."""
    a = _created(seen, change)
    if a is None or not seen.is_unit(a):
        return
    end = seen.end_records[a]
    said = sorted([*(int(rank) for rank in end.carried), *end.given_back])
    if said != seen.ranks_of(a):
        yield f"{a} speaks of {said}, and carries {seen.ranks_of(a)}"
    if end.goes_on is None:
        return
    if end.goes_on not in end.given_back:
        yield f"{a} lets {end.goes_on} go on, and did not give it back"
    if not any(one == AttemptId(a.job, end.goes_on, 1) for one, _ in seen.claims):
        yield f"{a} lets {end.goes_on} go on, which nobody has claimed"


def only_its_holder_gives_back(seen: Seen, change: Change) -> Iterator[str]:
    """Whoever ends a block for another gives nothing back; nor does its holder what it has begun. A canceller may, of
    one that nobody has claimed."""
    a = _created(seen, change)
    if a is None or not seen.is_unit(a):
        return
    end = seen.end_records[a]
    begun = {rank: seen.starts[AttemptId(a.job, rank, 1)] for rank in end.given_back if rank != end.goes_on}
    for rank, starts in begun.items():
        if starts:
            yield f"{change.actor} gave rank {rank} of {a} back, which {starts[0].who} had begun"
    if end.given_back and (end.by in ("tick", "settle") or (end.by == "canceller" and _begun(seen, a))):
        yield f"{end.by} gave ranks of {a} back: it does not hold it"


def _begun(seen: Seen, unit: AttemptId) -> bool:
    return any(seen.starts[AttemptId(unit.job, rank, 1)] for rank in seen.ranks_of(unit))


def _created(seen: Seen, change: Change) -> AttemptId | None:
    parts = change.key.split("/")
    if "/end." not in change.key or change.before is not None or change.after is None:
        return None
    j = keys.JobId.parse(f"{parts[1]}.{parts[2]}")
    status = keys.parse_status(j, change.key)
    a = AttemptId(j, status.rank, status.n)
    return a if j in seen.terms and j not in seen.removed else None


ON_CHANGE = (carried_ranks_end_once, blocks_speak_of_all_their_ranks, only_its_holder_gives_back)
