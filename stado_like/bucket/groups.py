"""Groups that depend on others: what is read of those they wait for, and their release. The rule is in
`planning/groups`.

    release:  look for verdict and tombstone  →  create the first entry of each lane  →  ring

The entry of its very first rank decides: once that was created the group is released, and whoever finds others of its
first ranks without a trace creates theirs too. A crash leaves nothing, or entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from stado_like.bucket import doorbell, entries, lanes, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.finish import task_end
from stado_like.bucket.load import Listed
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Job
from stado_like.job.states import TaskState
from stado_like.job.terms import Group, Terms
from stado_like.planning import groups
from stado_like.planning import lanes as lane_rule
from stado_like.planning.groups import Gathering, Member
from stado_like.planning.world import STALE_GRACE_S

GATHERED_AGAIN_S = 300.0
"""A group that was seen released is looked at again after so long: an entry may have been lost."""


def look_at(bucket: Bucket, j: JobId, gathered: dict[JobId, float]) -> Gathering | None:
    """The groups of a job that wait for others; None: there is none, or not any more. Raises `StoreUnavailable`,
    `BadRecord`, and what a document raises that is no specification.

    `gathered` is the caller's memory: jobs without such a group (jobs never change), with `inf`; and those of which
    every group was released, with when that was seen, by `boot_s`.
    """
    now_s = bucket.ambient.boot_s()
    if j in gathered and now_s - gathered[j] < GATHERED_AGAIN_S:
        return None
    job = bucket.job(j)
    if job is None:
        return None  # its submitter is about to create it, or it was deleted
    terms = bucket.terms(job)
    if not any(group.depends_on for group in terms.groups):
        gathered[j] = inf
        return None
    seen = gathering(bucket, j, job, terms)
    if seen.waiting:
        gathered.pop(j, None)
        return seen
    gathered[j] = now_s
    return None


def gathering(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> Gathering:
    """What is to be known of the groups of a job that wait for others. Raises `StoreUnavailable`, `BadRecord`."""
    listed = load.list_status(bucket, j)
    waiting: list[str] = []
    begun: set[str] = set()
    for group in terms.groups:
        if not group.depends_on:
            continue
        first, *others = lane_rule.head(terms, group)
        if not load.was_released(bucket, j, job, terms, first, listed):
            waiting.append(group.name)
        else:
            begun.add(group.name)
            if not all(load.was_released(bucket, j, job, terms, rank, listed) for rank in others):
                waiting.append(group.name)
    wanted = groups.awaited(terms, tuple(name for name in waiting if name not in begun))
    return Gathering(j, terms, tuple(waiting), frozenset(begun), members(bucket, j, terms, wanted, listed))


def members(bucket: Bucket, j: JobId, terms: Terms, ranks: Iterable[int], listed: Listed) -> dict[int, Member]:
    """How each of these ranks stands. One without a heartbeat and without an end is not up, so a group that has not
    wholly begun costs no reads of heartbeats."""
    wanted = list(ranks)
    all_began = all(rank in listed.beats or rank in listed.ends for rank in wanted)
    return {rank: _member(bucket, j, terms, rank, listed, beats=all_began) for rank in wanted}


def _member(bucket: Bucket, j: JobId, terms: Terms, rank: int, listed: Listed, *, beats: bool) -> Member:
    if rank not in listed.ends and not beats:
        return Member(TaskState.PENDING)
    task = load.task_now(bucket, j, rank, listed)
    if task.open is None:
        assert task.last is not None
        return Member(task.last.state, task_end(terms, rank, task.last))
    found = bucket.heartbeat(task.open) if beats and task.open.n in listed.beats.get(rank, ()) else None
    if found is None:
        return Member(TaskState.PENDING)
    late = found.age_s > found.record.ttl_s + STALE_GRACE_S
    return Member(TaskState.STALE if late else found.record.state)


def release(bucket: Bucket, j: JobId, job: Job, terms: Terms, group: Group) -> list[str]:
    """Create the entries of a group's first ranks that have none; returns their keys. Idempotent."""
    if any(bucket.present(keys.verdict(j), keys.tombstone(j))):
        return []
    queued = []
    for rank in lane_rule.head(terms, group):
        first = AttemptId(j, rank, 1)
        if not any(lanes.seen(bucket, job, terms, first)):
            queued.append(entries.enqueue(bucket, job, terms, first))
    doorbell.ring_entries(bucket, queued)
    return queued
