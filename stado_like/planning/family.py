"""Which children go with their parents.

A job that a task of another job submitted is that job's child. When the parent is over (its end stands, or the verdict
that will be its end, or it was deleted) nothing of its children goes on, nor of theirs: all of them are named at once,
so that a family of five generations does not take five ticks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stado_like.job.keys import JobId


@dataclass(frozen=True, slots=True)
class Child:
    """A job that is not over, and whether its parent is."""

    job: JobId
    parent: JobId
    parent_is_over: bool


def orphaned(children: Iterable[Child]) -> tuple[JobId, ...]:
    """The children of parents that are over, and their descendants; older generations first."""
    left = list(children)
    found = [one.job for one in left if one.parent_is_over]  # guard: parent is over
    known = set(found)
    for parent in found:  # grows while it is gone through
        for one in left:
            if one.parent == parent and one.job not in known:
                known.add(one.job)
                found.append(one.job)
    return tuple(found)
