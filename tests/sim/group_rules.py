"""Rules about who may be queued and claimed at all: groups that wait for groups, jobs that wait for a placement."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.job import codec, keys
from stado_like.job.keys import JobId
from stado_like.job.records import Claim
from tests.sim.fault_store import Change
from tests.sim.seen import Seen


def groups_wait_for_those_they_depend_on(seen: Seen, change: Change) -> Iterator[str]:
    """A rank of a group is queued and claimed only after every rank that its group waits for was seen to run, or to
    have completed."""
    if not change.key.startswith(("queued/", keys.RUNNING)) or change.after is None:
        return
    j, rank = _task_of_index(change.key)
    terms = seen.terms.get(j)
    if terms is None or rank >= terms.tasks or j in seen.buried:
        return
    for awaited in terms.group_of(rank).depends_on:
        group = terms.group(awaited.group)
        missing = [one for one in group.ranks if one not in seen.ran[j]] if group is not None else [-1]
        if missing:
            yield f"{change.actor} {change.kind} {change.key}: group {awaited.group} never ran, its ranks {missing}"


def held_jobs_are_claimed_by_order_only(seen: Seen, change: Change) -> Iterator[str]:
    """What only a placement may start has no entry where workers look, and no claim but that of a worker which a tick
    gave it to, or a tick's that ends it."""
    if not change.key.startswith((keys.QUEUED_OPEN, keys.RUNNING)) or change.after is None:
        return
    j, _ = _task_of_index(change.key)
    # The object of a name that is used again lies under a buried incarnation for a moment.
    if j not in seen.terms or not seen.terms[j].held or j in seen.buried:
        return
    if change.key.startswith(keys.RUNNING):
        claim = codec.decode(Claim, change.after, change.key)
        if claim.overdue or (claim.worker, keys.parse_running(change.key)) in seen.placed:
            return
    yield f"{change.actor} {change.kind} {change.key}: {seen.terms[j].held}"


def _task_of_index(key: str) -> tuple[JobId, int]:
    """The job and the rank of an entry or a claim."""
    a = keys.parse_running(key) if key.startswith(keys.RUNNING) else keys.attempt_of_entry(key)
    return a.job, a.rank
