"""When a worker group may start that depends on others; and when it never can.

A group that depends on others has no entries until every rank of each named group runs, or has completed. Both are
judged from what was read at one tick; what a rank does after that does not matter: a group that was released stays
released, also where only some of its first ranks have their entries yet.

Not obvious is the end. A rank that ended for good without completing never runs again, so whoever waits for its group
would wait for ever. Then the job is over: it cannot do what was asked. Its verdict says which worker that was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stado_like.job import reasons, rollup
from stado_like.job.keys import JobId
from stado_like.job.rollup import TaskEnd
from stado_like.job.states import JobState, TaskState
from stado_like.job.terms import Dependency, Group, Terms

_UP = (TaskState.RUNNING, TaskState.COMPLETED)
HEALTHY = "Healthy"


@dataclass(frozen=True, slots=True)
class Member:
    """A rank of a group that others wait for: what its supervisor last said (Pending: nobody holds it; Stale: late), or
    its final `end`."""

    state: TaskState
    end: TaskEnd | None = None


@dataclass(frozen=True, slots=True)
class Gathering:
    """A job with groups that were not released, or not to the last of their first ranks: their names. `begun`: groups
    whose very first rank was. `members` by rank, of every group that the others wait for."""

    job: JobId
    terms: Terms
    waiting: tuple[str, ...]
    begun: frozenset[str]
    members: Mapping[int, Member]


@dataclass(frozen=True, slots=True)
class Doom:
    """What becomes of a job of which a group can never start."""

    state: JobState
    reason: str


def awaited(terms: Terms, names: tuple[str, ...]) -> Iterator[int]:
    """The ranks that these groups wait for."""
    wanted = {one.group for name in names if (group := terms.group(name)) for one in group.depends_on}
    for group in terms.groups:
        if group.name in wanted:
            yield from group.ranks


def not_up(terms: Terms, group: Group, members: Mapping[int, Member]) -> Dependency | None:
    """The first group that this one still waits for; None: it may start."""
    for one in group.depends_on:
        if not _is_up(terms, one, members):
            return one
    return None


def _is_up(terms: Terms, wanted: Dependency, members: Mapping[int, Member]) -> bool:
    group = terms.group(wanted.group)
    if group is None:
        return False
    # Nobody probes yet: a group with a health check is not known to be healthy before it has completed.
    probed = wanted.condition == HEALTHY and terms.for_rank(group.first).health_check
    enough = (TaskState.COMPLETED,) if probed else _UP
    return all(rank in members and members[rank].state in enough for rank in group.ranks)  # guard: groups are up


def released(seen: Gathering) -> tuple[str, ...]:
    """The groups that may start now, and those that began to."""
    found = []
    for name in seen.waiting:
        group = seen.terms.group(name)
        if group is not None and (name in seen.begun or not_up(seen.terms, group, seen.members) is None):
            found.append(name)
    return tuple(found)


def doomed(seen: Gathering) -> Doom | None:
    """A group waits for one that will never be up; None: none does."""
    for name in seen.waiting:
        if name in seen.begun:
            continue
        for rank in awaited(seen.terms, (name,)):
            member = seen.members.get(rank)
            if member is not None and member.end is not None and member.state is not TaskState.COMPLETED:
                state, why = rollup.why_ended(member.end)
                return Doom(state, reasons.cannot_start_without(why, name))
    return None


def wait_reason(terms: Terms, group: Group, members: Mapping[int, Member]) -> str:
    """What a group that was not released says; empty where it waits only for a tick."""
    found = not_up(terms, group, members)
    return reasons.waits_for_group(found.group, healthy=found.condition == HEALTHY) if found is not None else ""
