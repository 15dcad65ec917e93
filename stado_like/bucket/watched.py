"""Jobs that a tick looks after beyond their tasks: those that wait for other jobs or have groups that wait for others,
those that go with a parent, those that may wait only so long. What a tick reads of them, and how it carries out what
follows.

All of them are named by `open/`, so that no tick reads every job for their sake. A job never changes: what it asks for
is read once by a process. Then a waiter costs two or three requests a tick for each job it waits for, a child likewise
for each parent that has children, and a job with a limit nothing before the moment at which it could first be late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from stado_like.bucket import awaited, cancel, entries, family, finish, groups, outcome, overdue
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.known_jobs import KnownJobs
from stado_like.errors import BadRecord, StoreError
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.terms import Terms
from stado_like.planning.actions import EndChild, EndLate, GiveUp, ReleaseGroup, ReleaseWaiter
from stado_like.planning.awaited import Waiter
from stado_like.planning.family import Child
from stado_like.planning.overdue import Late, earliest_s


@dataclass(slots=True)
class Watching:
    """What a process remembers of the jobs of `open/`: what they ask for and when they were created; and those whose
    entries were all let go."""

    known: dict[JobId, tuple[Terms, float]] = field(default_factory=dict)
    let_go: set[JobId] = field(default_factory=set)

    def has_dependent_group(self, j: JobId) -> bool:
        known = self.known.get(j)
        return known is not None and any(group.depends_on for group in known[0].groups)

    def forget_others(self, opened: set[JobId]) -> None:
        for j in [j for j in self.known if j not in opened]:
            del self.known[j]
        self.let_go &= opened


@dataclass(slots=True)
class Watched:
    """`unread`: what could not be asked this time, by pass; `set_aside`: jobs that cannot be used, and why."""

    waiters: list[Waiter] = field(default_factory=list)
    children: list[Child] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    set_aside: list[tuple[str, str]] = field(default_factory=list)


def look(bucket: Bucket, opened: Iterable[JobId], memory: Watching, jobs: KnownJobs) -> Watched:
    """Raises nothing for a failed read: `unread` says so, and what was read stands for itself."""
    seen = Watched()
    came: awaited.Known = {}
    parents: dict[JobId, bool] = {}
    for j in opened:
        known = _known(bucket, j, memory, jobs, seen)
        if known is None:
            continue
        terms, created_s = known
        if terms.after and j not in memory.let_go:
            _ask(seen, "after", j, partial(_waiter, bucket, j, terms, came, seen))
        if terms.parent:
            _ask(seen, "children", j, partial(_child, bucket, j, terms, parents, seen))
        if bucket.now() >= earliest_s(terms, created_s):
            _ask(seen, "overdue", j, partial(_late, bucket, j, seen))
    return seen


def _known(bucket: Bucket, j: JobId, memory: Watching, jobs: KnownJobs, seen: Watched) -> tuple[Terms, float] | None:
    """What a job asks for, and when it was created. None: it is not there (its submitter is about to create it, or it
    was deleted), or nobody can tell."""
    if j in memory.known:
        return memory.known[j]
    try:
        known = jobs.known(bucket, j)
        if known is not None:
            memory.known[j] = known.terms, known.created_ms / 1000
    except StoreError as failed:
        seen.unread |= dict.fromkeys(("groups", "after", "children", "overdue"), failed.message)
    except BadRecord as bad:
        seen.set_aside.append((str(j), bad.message))
    return memory.known.get(j)


def _ask(seen: Watched, what: str, j: JobId, read: Callable[[], None]) -> None:
    if what in seen.unread:
        return  # the store does not answer: the rest waits for the next tick
    try:
        read()
    except StoreError as failed:
        seen.unread[what] = failed.message
    except BadRecord as bad:
        seen.set_aside.append((str(j), bad.message))


def _waiter(bucket: Bucket, j: JobId, terms: Terms, came: awaited.Known, seen: Watched) -> None:
    seen.waiters.append(awaited.look_at(bucket, j, terms, came))


def _child(bucket: Bucket, j: JobId, terms: Terms, parents: dict[JobId, bool], seen: Watched) -> None:
    parent = JobId.parse(terms.parent)
    if parent not in parents:
        parents[parent] = outcome.is_over(bucket, parent)
    seen.children.append(Child(j, parent, parents[parent]))


def _late(bucket: Bucket, j: JobId, seen: Watched) -> None:
    job = bucket.job(j)
    if job is not None:
        seen.late.extend(overdue.late(bucket, j, job, bucket.terms(job)))


Action = ReleaseGroup | GiveUp | ReleaseWaiter | EndChild | EndLate


def carry_out(bucket: Bucket, action: Action, memory: Watching) -> tuple[Counter[str], str]:
    """Counts for the report, and a sentence where something was decided. Raises `StoreUnavailable`, `BadRecord`."""
    match action:
        case ReleaseGroup():
            return _release_group(bucket, action)
        case GiveUp():
            return _give_up(bucket, action)
        case ReleaseWaiter():
            return _release(bucket, action, memory)
        case EndChild():
            done = family.end_child(bucket, action.job)
            return _told(done, f"{action.job}: its parent is over")
        case EndLate():
            end = overdue.end_late(bucket, action.attempt, action.key, action.reason, action.standing)
            return Counter({"late": int(end is not None)}), f"{action.attempt}: {action.reason}" if end else ""


def _release_group(bucket: Bucket, action: ReleaseGroup) -> tuple[Counter[str], str]:
    job = bucket.job(action.job)
    if job is None:
        return Counter(), ""
    terms = bucket.terms(job)
    group = terms.group(action.group)
    queued = groups.release(bucket, action.job, job, terms, group) if group is not None else []
    if not queued:
        return Counter(), ""
    return Counter({"released": 1, "queued": len(queued)}), f"{action.job}: released its group {action.group}"


def _give_up(bucket: Bucket, action: GiveUp) -> tuple[Counter[str], str]:
    job = bucket.job(action.job)
    if job is None or any(bucket.present(keys.verdict(action.job), keys.tombstone(action.job))):
        return Counter(), ""
    reason = awaited.decide(bucket, action.job, action.reason) if action.awaited else action.reason
    if action.awaited and reason == entries.GO:
        return Counter(), ""  # another tick released it, before what it waited for was deleted
    finish.early_verdict(bucket, action.job, action.state, reason, by="tick")
    cancel.carry_out(bucket, action.job, job, bucket.terms(job))
    return Counter({"given_up": 1}), f"{action.job}: {reason}"


def _told(done: cancel.Cancelled | None, what: str) -> tuple[Counter[str], str]:
    if done is None:
        return Counter(), ""
    return Counter({"children": 1, "ended": done.ended, "still_running": done.running}), what


def _release(bucket: Bucket, action: ReleaseWaiter, memory: Watching) -> tuple[Counter[str], str]:
    job = bucket.job(action.job)
    if job is None:
        return Counter(), ""
    queued = awaited.release(bucket, action.job, job, bucket.terms(job), again=action.again)
    if not queued and action.again:
        memory.let_go.add(action.job)  # nothing was left behind
    return Counter({"released": int(bool(queued)), "queued": len(queued)}), (
        f"{action.job}: released, {len(queued)} entries" if queued else ""
    )
