"""Rules about the attempts of a job: every open one can be found, ends follow each other, lanes and budgets hold.

A rank whose newest end cannot be read is neither over nor open: no rule speaks of it but the one about that record.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from stado_like.bucket import entries
from stado_like.fsck.finding import Finding, Findings, found
from stado_like.fsck.picture import JobPicture, Rank
from stado_like.job import budget, keys
from stado_like.job.budget import Ended
from stado_like.job.records import Budgets, End, Job
from stado_like.job.states import Decision
from stado_like.job.terms import Terms
from stado_like.planning import lanes
from stado_like.planning.groups import awaited

SERVICE_ENDS_KEPT = 200
CLOCK_S = 60.0


def open_attempts_can_be_found(p: JobPicture) -> Findings:
    """An open attempt of a released rank has an entry, or a claim, or the claim of the attempt before it: else nobody
    will look at it again. Under a decision to stop it, `decisions_are_carried_out` speaks of it."""
    if p.job is None or p.terms is None or p.is_final or p.is_dying or p.has_verdict:
        return
    told: set[keys.AttemptId] = set()
    for rank in range(p.terms.tasks):
        here = p.rank(rank)
        if here.open is None or rank in p.status.stops or here.open in told or _is_somewhere(p, here):
            continue
        told.add(here.open)  # a block is open for all of its ranks
        if here.n or lanes.is_first(p.terms, here.open.rank) or rank in p.status.given_back:
            yield _lost(p.job, p.terms, here)
        elif p.is_released(rank, p.terms):
            before = lanes.predecessor(p.terms, here.open.rank)
            why = f"rank {before} of its lane let it go" if before is not None else "others of its group were released"
            yield found(
                "rank-not-released",
                entries.open_key(p.job, p.terms, here.open),
                f"rank {rank} of {p.id} has no entry, though {why}",
            )


def _is_somewhere(p: JobPicture, here: Rank) -> bool:
    held = here.rank if here.open is None else here.open.rank
    return here.open in p.queued or p.claimed.get(held, 0) >= max(1, here.n)


def _lost(job: Job, terms: Terms, here: Rank) -> Finding:
    assert here.open is not None
    key = entries.open_key(job, terms, here.open)
    if here.last is not None and here.last.due_ms > here.last.ended_at * 1000 + entries.MOVE_AT_ONCE_MS:
        key = entries.later_key(terms, here.open, here.last.due_ms)
    return found("attempt-lost", key, f"the attempt {here.open} is open, and has neither an entry nor a claim")


def lanes_release_in_order(p: JobPicture) -> Findings:
    """A rank shows no trace before the one ahead of it in its lane let it go."""
    if p.terms is None or not p.terms.several or not p.ends_read or p.is_dying:
        return
    for rank in sorted(_traced(p)):
        before = lanes.predecessor(p.terms, rank) if rank < p.terms.units else None
        if before is None or p.rank(before).unknown or p.lets_go(before, p.terms):
            continue
        why = "has no final end" if p.terms.release_by_end else "was neither claimed nor ended"
        yield found("lane-ahead", _trace_of(p, rank), f"rank {rank} of {p.id} was released, though rank {before} {why}")


def groups_release_in_order(p: JobPicture) -> Findings:
    """No rank of a group shows a trace before every rank of the groups that it depends on had begun."""
    if p.terms is None or not p.ends_read or p.is_dying:
        return
    for group in p.terms.groups:
        traced = next((rank for rank in lanes.head(p.terms, group) if p.has_trace(rank)), None)
        if not group.depends_on or traced is None:
            continue
        for rank in awaited(p.terms, (group.name,)):
            if rank not in p.status.beats and rank not in p.status.ends:
                sentence = f"rank {traced} of {p.id} was released, though rank {rank}, which it waits for, never began"
                yield found("group-ahead", _trace_of(p, traced), sentence)
                break


def _traced(p: JobPicture) -> set[int]:
    return {*p.status.ends, *p.status.beats, *p.status.units, *p.claimed, *(a.rank for a in p.queued)}


def _trace_of(p: JobPicture, rank: int) -> str:
    if rank in p.status.ends:
        return keys.end(keys.AttemptId(p.id, rank, min(p.status.ends[rank])))
    if rank in p.claimed:
        return keys.running(keys.AttemptId(p.id, rank, p.claimed[rank]))
    if p.status.units.get(rank):
        return keys.end(keys.AttemptId(p.id, rank, 1))
    entry = next((key for key, a in p.traces.entries.items() if a.rank == rank), None)
    return entry or keys.heartbeat(keys.AttemptId(p.id, rank, min(p.status.beats.get(rank, {1}))))


def ends_are_numbered_without_gaps(p: JobPicture) -> Findings:
    """Attempt n + 1 can only begin after attempt n ended. Of a service's ends the oldest are let go."""
    if p.terms is None or p.is_dying:
        return
    for rank, numbers in sorted(p.status.ends.items()):
        first, last = min(numbers), max(numbers)
        if p.terms.for_rank(rank).restart_policy == "Always" and len(numbers) >= SERVICE_ENDS_KEPT:
            missing = set(range(first, last)) - numbers
        else:
            missing = set(range(1, last)) - numbers
        for n in sorted(missing):
            a = keys.AttemptId(p.id, rank, n)
            yield found("end-gap", keys.end(a), f"{a} has no end, though attempt {last} of this task has one")


def nothing_follows_a_final_end(p: JobPicture) -> Findings:
    """A final end is the last of its task: one that follows it was decided by nobody."""
    for a, end in sorted(p.ends.items()):
        previous = p.ends.get(a.previous) if a.previous is not None else None
        if previous is not None and previous.is_final:
            what = "a second final end" if end.is_final else "an end"
            yield found("end-after-final", keys.end(a), f"{a} has {what}, though attempt {a.n - 1} was final")


def ends_belong_to_a_rank(p: JobPicture) -> Findings:
    if p.terms is None or p.is_dying:
        return
    for rank in sorted(rank for rank in p.status.ends if rank >= p.terms.tasks):
        a = keys.AttemptId(p.id, rank, max(p.status.ends[rank]))
        yield found("end-beyond-job", keys.end(a), f"{a} has an end; the job has {p.terms.tasks} tasks")


def heartbeats_belong_to_an_attempt(p: JobPicture) -> Findings:
    """A heartbeat of an attempt that cannot have begun: the one before it has not ended."""
    if p.terms is None or p.is_dying:
        return
    for rank, numbers in sorted(p.status.beats.items()):
        newest = max(p.status.ends.get(rank, ()), default=0)
        for n in sorted(n for n in numbers if n > newest + 1):
            a = keys.AttemptId(p.id, rank, n)
            yield found("heartbeat-ahead", keys.heartbeat(a), f"{a} has a heartbeat, but attempt {n - 1} has no end")


def budgets_are_spent_once(p: JobPicture) -> Findings:
    """What an end says was spent is what the end before it said, plus what its own cause spends, once."""
    if p.terms is None:
        return
    for a, end in sorted(p.ends.items()):
        previous = p.ends.get(a.previous) if a.previous is not None else None
        if (a.n > 1 and previous is None) or end.decision is Decision.GANG:
            continue
        before = previous.budgets if previous is not None else Budgets()
        if end.budgets not in set(_possible(end, p.terms.for_rank(a.rank), before)):
            yield found(
                "budget-mismatch",
                keys.end(a),
                f"{a} ended with {_words(end.budgets)} spent, from {_words(before)} by {end.cause.value or 'exit 0'}",
            )


def _possible(end: End, terms: Terms, before: Budgets) -> Iterator[Budgets]:
    """How long an attempt ran is known to its ender better than to us, and never longer than until its end: from ten
    minutes on, or a day, several answers are right. So are two where a supervisor may have died."""
    running_s = end.ended_at - end.running_at if end.running_at else 0.0
    enough = (budget.RESET_AFTER_S, budget.FORGIVEN_AFTER_S)
    ran = [0.0, *(known_s for known_s in enough if running_s >= known_s - CLOCK_S)]
    for ran_s, over, died_on in itertools.product(ran, (False, True), ("", end.worker)):
        ended = Ended(end.cause, end.reason, ran_s, died_on)
        yield budget.decide(ended, terms, before, over=over).budgets


def _words(spent: Budgets) -> str:
    return f"{spent.failures} failures, {spent.machine} machine losses, {spent.preemptions} preemptions"
