"""Rules about gangs: placed whole, started on one verdict or not at all, and what follows decided by all their ends."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job import codec, gang_keys, keys
from stado_like.job.gang_records import Barrier, Placement
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, End
from stado_like.job.states import Cause, Decision
from tests.sim.fault_store import Change
from tests.sim.seen import Seen, Start

# ---- after every change


def placements_and_verdicts_never_change(seen: Seen, change: Change) -> Iterator[str]:
    """Who was placed together and what was said at the barrier is created once."""
    if not change.key.startswith("gangs/") or "/ready." in change.key or change.before is None:
        return
    if change.after is not None and change.before != change.after:
        yield f"{change.actor} overwrote {change.key}"


def gangs_are_placed_whole(seen: Seen, change: Change) -> Iterator[str]:
    """A placement names every task, or as many as must start together, each once."""
    found = _placed(seen, change)
    if found is None:
        return
    j, g, placement = found
    terms = seen.terms[j]
    if len(placement.attempts) != terms.tasks:
        yield f"generation {g} of {j} knows {len(placement.attempts)} of {terms.tasks} tasks"
    if not placement.barrier:
        return
    ranks = [one.rank for one in placement.members]
    least = terms.least or terms.tasks
    if len(ranks) < least or len(set(ranks)) != len(ranks):
        yield f"generation {g} of {j} starts ranks {ranks}, and {least} must start together"


def generations_follow_complete_ones(seen: Seen, change: Change) -> Iterator[str]:
    """No member is placed, queued or claimed again before every member of the generation before has ended."""
    found = _placed(seen, change)
    if found is not None:
        j, g, placement = found
        if g > 1 and (j, g - 1) not in seen.gangs.placements:
            yield f"{change.actor} placed generation {g} of {j}, and there was none before"
        for rank, n in enumerate(placement.attempts):
            a = AttemptId(j, rank, n)
            if a.previous is not None and a.previous not in seen.ends:
                yield f"{change.actor} placed {a}, and the attempt before it has not ended"
        yield from _unended(seen, change, j, g - 1)
        return
    if not change.key.startswith(("queued/", keys.RUNNING)) or change.after is None or change.late:
        return
    a = keys.parse_running(change.key) if change.key.startswith(keys.RUNNING) else keys.attempt_of_entry(change.key)
    before = seen.end_records.get(a.previous) if a.previous is not None else None
    if before is None or before.decision is not Decision.GANG or a.job in seen.buried or a.job not in seen.terms:
        return
    g = max((one for one in range(seen.gangs.newest(a.job) + 1) if _first(seen, a, one) < a.n), default=0)
    yield from _unended(seen, change, a.job, g)


def go_comes_when_all_are_ready_and_none_has_ended(seen: Seen, change: Change) -> Iterator[str]:
    if not change.key.startswith("gangs/") or not change.key.endswith("/barrier.json") or change.after is None:
        return
    if change.before is not None:
        return
    j, g = _generation(change.key)
    barrier = codec.decode(Barrier, change.after, change.key)
    placement = seen.gangs.placements.get((j, g))
    if not barrier.go or j in seen.buried:
        return
    members = {one.attempt for one in placement.members} if placement is not None else set()
    if members != set(barrier.attempts):
        yield f"{change.actor} let {sorted(barrier.attempts)} go, and {sorted(members)} were placed"
    for a in map(AttemptId.parse, sorted(members)):
        if (g, a) not in seen.gangs.ready:
            yield f"{change.actor} let generation {g} of {j} go, and {a} was not ready"
        if a in seen.ends:
            yield f"{change.actor} let generation {g} of {j} go, and {a} had ended"


def gangs_are_charged_once_a_generation(seen: Seen, change: Change) -> Iterator[str]:
    """Of all ends of a generation one is charged: the next placement has spent at most one restart more. One whose
    barrier was closed, by nobody's fault, has spent nothing."""
    found = _placed(seen, change)
    if found is None:
        return
    j, g, placement = found
    before = seen.gangs.placements.get((j, g - 1))
    spent, had = placement.budgets, before.budgets if before is not None else Budgets()
    grown = {name: getattr(spent, name) - getattr(had, name) for name in ("failures", "machine", "preemptions")}
    if sum(max(0, more) for more in grown.values()) > 1:
        yield f"generation {g} of {j} has spent {spent}, the one before it {had}"
    causes = {end.cause for end in _last_ends(seen, j, g - 1).values()}
    lost = {Cause.MACHINE_LOST, Cause.GPU_FAULT}
    if grown["failures"] > 0 and not causes & {Cause.FAILURE, Cause.STALLED}:
        yield f"generation {g} of {j} has spent a failure, and its members ended for {_words(causes)}"
    if grown["machine"] > 0 and not causes & lost:
        yield f"generation {g} of {j} has spent a machine fault, and its members ended for {_words(causes)}"
    if grown["preemptions"] > 0 and not causes & {Cause.PREEMPTED, Cause.MOVED}:
        yield f"generation {g} of {j} has spent a preemption, and its members ended for {_words(causes)}"
    if causes & {Cause.PREEMPTED} and grown["failures"] > 0:
        yield f"generation {g} of {j} was preempted, and that has spent a failure"


# ---- after every start


def members_start_on_one_verdict(seen: Seen, start: Start) -> Iterator[str]:
    """No member of a gang starts but by a claim of a placement that names it, after a go: for it, or, when it comes
    later, for those that it joins."""
    a = start.attempt
    terms = seen.terms.get(a.job)
    if terms is None or not terms.gang or a.job in seen.buried:
        return
    claim = seen.gangs.claims.get((a, start.nonce))
    if claim is None:
        return  # a play without claims
    g = claim.generation
    placement, barrier = seen.gangs.placements.get((a.job, g)), seen.gangs.barriers.get((a.job, g))
    join = seen.gangs.joins.get((g, a))
    seats = {one.attempt: one.worker for one in placement.members} if placement is not None else {}
    given = join.worker if join is not None else seats.get(str(a))
    if given != claim.worker:
        yield f"{start.who} started {a} in generation {g}, which gave it to {given or 'nobody'}"
    if not terms.barrier:
        return
    if barrier is None or not barrier.go:
        yield f"{start.who} started {a}, and generation {g} was told {'to stop' if barrier else 'nothing'}"
    elif join is None and str(a) not in barrier.attempts:
        yield f"{start.who} started {a}, and generation {g} went without it"


# ---- at rest


def every_go_started_or_ended_all(seen: Seen) -> Iterator[str]:
    """Of a generation that went, every member was started, or was ended before it could."""
    for (j, g), barrier in seen.gangs.barriers.items():
        if j in seen.buried or not barrier.go:
            continue
        for a in map(AttemptId.parse, barrier.attempts):
            if a not in seen.starts and a not in seen.ends:
                yield f"generation {g} of {j} went, and {a} neither started nor ended"


# ---- what was seen


def _placed(seen: Seen, change: Change) -> tuple[JobId, int, Placement] | None:
    if not change.key.startswith("gangs/") or not change.key.endswith("/placement.json"):
        return None
    if change.after is None or change.before is not None:
        return None
    j, g = _generation(change.key)
    if j in seen.buried or j not in seen.terms:
        return None
    return j, g, codec.decode(Placement, change.after, change.key)


def _generation(key: str) -> tuple[JobId, int]:
    parts = key.split("/")
    j = JobId.parse(f"{parts[1]}.{parts[2]}")
    return j, gang_keys.parse(j, key).g


def _first(seen: Seen, a: AttemptId, g: int) -> int:
    placement = seen.gangs.placements.get((a.job, g))
    return placement.attempts[a.rank] if placement is not None else 1


def _last_ends(seen: Seen, j: JobId, g: int) -> dict[int, End]:
    """How each rank ended in a generation, of those that have."""
    found = {}
    for first in seen.gangs.firsts(j, g, seen.terms[j].tasks):
        a, end = first, seen.end_records.get(first)
        while end is not None and end.decision is Decision.RETRY:
            a = a.next
            end = seen.end_records.get(a)
        if end is not None:
            found[a.rank] = end
    return found


def _unended(seen: Seen, change: Change, j: JobId, g: int) -> Iterator[str]:
    """`g` 0: before the first placement, when whatever ended did so without having started."""
    ended = _last_ends(seen, j, g)
    open_ranks = [rank for rank in range(seen.terms[j].tasks) if rank not in ended]
    if g > 0 and open_ranks:
        yield f"{change.actor} {change.kind} {change.key}: ranks {open_ranks} of generation {g} have not ended"


def _words(causes: set[Cause]) -> str:
    return ", ".join(sorted(cause.value or "exit 0" for cause in causes)) or "nothing"


ON_CHANGE = (
    placements_and_verdicts_never_change,
    gangs_are_placed_whole,
    generations_follow_complete_ones,
    go_comes_when_all_are_ready_and_none_has_ended,
    gangs_are_charged_once_a_generation,
)
ON_START = (members_start_on_one_verdict,)
AT_REST = (every_go_started_or_ended_all,)
