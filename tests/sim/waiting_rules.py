"""Rules about jobs that wait for others, children that go with their parents, and tasks that waited too long."""

from __future__ import annotations

from collections.abc import Iterator

from stado_like.bucket.entries import GO
from stado_like.job import codec, keys, reasons
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End, Pointer, Verdict
from stado_like.job.states import TaskState
from stado_like.planning.awaited import ENOUGH
from tests.sim.fault_store import Change
from tests.sim.seen import Seen, Start


def waiters_wait_for_those_they_named(seen: Seen, change: Change) -> Iterator[str]:
    """A job with `after` is queued where workers look, and claimed, only once every awaited job came to what was asked.
    (A tick may take what waited too long.)"""
    if not change.key.startswith((keys.QUEUED_OPEN, keys.QUEUED_LATER, keys.RUNNING)) or change.after is None:
        return
    claimed = change.key.startswith(keys.RUNNING)
    j = (keys.parse_running(change.key) if claimed else keys.attempt_of_entry(change.key)).job
    if j not in seen.terms or j in seen.buried:
        return
    if claimed and codec.decode(Claim, change.after, change.key).overdue:
        return
    for wanted in seen.terms[j].after:
        came = seen.came_to.get(JobId.parse(wanted.job))
        if came not in ENOUGH[wanted.state]:
            yield f"{change.actor} {change.kind} {change.key}: {wanted.job} came to {came or 'nothing yet'}"


def waiters_are_decided_once(seen: Seen, change: Change) -> Iterator[str]:
    """A job that was released is never given up for the sake of what it waited for."""
    if not change.key.endswith("/verdict.json") or change.before is not None or change.after is None:
        return
    decided = seen.shared.peek(change.key.replace("verdict", "released"))
    waited = codec.decode(Verdict, change.after, change.key).reason.startswith("Waited for job ")
    if waited and decided is not None and codec.decode(Pointer, decided, "released").what == GO:
        yield f"{change.actor} gave up {change.key}, which had been released"


def children_end_only_with_their_parents(seen: Seen, change: Change) -> Iterator[str]:
    """No job is ended for its family's sake while all of that goes on."""
    if not change.key.endswith("/verdict.json") or change.before is not None or change.after is None:
        return
    if codec.decode(Verdict, change.after, change.key).reason != reasons.PARENT_TERMINATED:
        return
    parts = change.key.split("/")
    j = JobId.parse(f"{parts[1]}.{parts[2]}")
    ancestors = list(_ancestors(seen, j))
    if all(one in seen.jobs and one not in seen.over_at and one not in seen.buried for one in ancestors):
        yield f"{change.actor} ended {j}, and all of {', '.join(map(str, ancestors))} go on"


def _ancestors(seen: Seen, j: JobId) -> Iterator[JobId]:
    known = {j}
    while j in seen.terms and seen.terms[j].parent:
        j = JobId.parse(seen.terms[j].parent)
        if j in known:
            return  # a buried incarnation has the terms of whoever uses its name next, for a moment
        known.add(j)
        yield j


def nothing_unschedulable_was_claimed(seen: Seen, change: Change) -> Iterator[str]:
    """A task that a worker has started is not ended for having waited."""
    if "/end." not in change.key or change.before is not None or change.after is None:
        return
    end = codec.decode(End, change.after, change.key)
    a = AttemptId.parse(end.attempt)
    if end.state is TaskState.UNSCHEDULABLE and seen.starts[a]:
        yield f"{change.actor} ended {a} as Unschedulable, which {seen.starts[a][0].who} had started"


def children_never_start_after_their_parent(seen: Seen, start: Start) -> Iterator[str]:
    """No claim made after the parent was over is started."""
    terms = seen.terms.get(start.attempt.job)
    if terms is None or not terms.parent:
        return
    parent = JobId.parse(terms.parent)
    at = min(seen.over_at.get(parent, start.at), seen.buried.get(parent, start.at))
    if parent not in seen.jobs or start.claimed > at:
        yield f"{start.who} claimed and started {start.attempt} after its parent {parent} was over"


ON_CHANGE = (
    waiters_wait_for_those_they_named,
    waiters_are_decided_once,
    children_end_only_with_their_parents,
    nothing_unschedulable_was_claimed,
)
ON_START = (children_never_start_after_their_parent,)
