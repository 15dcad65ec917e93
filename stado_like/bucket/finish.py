"""When a job of several tasks is over: first the verdict, then `final.json`, then its indexes go.

`final.json` is the only record that readers, dependencies and parents take for the end of a several-task job. (A
one-task job has none: its last end record says it all.) Whoever finds every task over writes it: the supervisor
that ended the last task of a small job, a waiting client, the tick. All of them create the same two keys; the first
one of each stands.
"""

from __future__ import annotations

from collections import Counter

from stado_like.bucket import doorbell, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load import Listed, TaskNow
from stado_like.job import codec, keys, rollup
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Final, Job, Pointer, Verdict
from stado_like.job.rollup import Rolled, TaskEnd
from stado_like.job.states import Cause, JobState, TaskState
from stado_like.job.terms import Terms, display_name
from stado_like.store.conditional import Won

SMALL_JOB_TASKS = 64


def task_end(terms: Terms, rank: int, end: End) -> TaskEnd:
    return TaskEnd(
        rank=rank,
        name=display_name(terms, rank),
        state=end.state,
        reason=end.reason,
        machine=end.worker,
        overran=end.cause is Cause.TIME_LIMIT,
        at=end.ended_at,
    )


def verdict_by_end(bucket: Bucket, a: AttemptId, end: End, terms: Terms) -> Verdict | None:
    """The early verdict that this final end makes due: more tasks have failed for good than the job allows, one waited
    too long, the group is complete with which the job is."""
    return verdict_by_ends(bucket, a.job, [task_end(terms, a.rank, end)], terms, by=end.worker)


def verdict_by_ends(bucket: Bucket, j: JobId, own: list[TaskEnd], terms: Terms, *, by: str) -> Verdict | None:
    """The same for several that came at once, in one block."""
    due = rollup.early(terms, own)
    if due is not None:
        return _early(bucket, j, due, by=by)
    if not any(rollup.needs_all_ends(terms, one) for one in own):
        return None
    return verdict_by_count(bucket, j, terms, load.list_status(bucket, j), by=by)


def verdict_by_count(bucket: Bucket, j: JobId, terms: Terms, listed: Listed, *, by: str = "tick") -> Verdict | None:
    """The early verdict that the ends in a listing make due. None: there is none, as far as it shows."""
    due = rollup.early(terms, _ended_for_good(bucket, j, terms, listed))
    return _early(bucket, j, due, by=by) if due is not None else None


def _early(bucket: Bucket, j: JobId, due: Rolled, *, by: str) -> Verdict:
    return early_verdict(bucket, j, due.state, due.reason, by=by, stops=due.stops)


def _ended_for_good(bucket: Bucket, j: JobId, terms: Terms, listed: Listed) -> list[TaskEnd]:
    found = []
    for rank in sorted(listed.ends):
        last = bucket.end(keys.AttemptId(j, rank, max(listed.ends[rank])))
        if last is not None and (last.is_final or last.state is TaskState.COMPLETED):
            found.append(task_end(terms, rank, last))
    return found


def early_verdict(bucket: Bucket, j: JobId, state: JobState, reason: str, *, by: str, stops: str = "") -> Verdict:
    """Decide what becomes of a job before its tasks ended, and tell those who hold them. Returns the verdict that
    stands.

    Verdict first, then its index, then the bell: a crash leaves a verdict that every gate and look obeys, and a
    tick that meets it writes the index.
    """
    at = bucket.now()
    ours = Verdict(nonce=bucket.token(), state=state, reason=reason, by=by, at=at, early=True, stops=stops)
    verdict = _decide(bucket, j, ours)
    bucket.ensure(keys.cancel_index(j), Pointer(what=verdict.reason, at=verdict.at))  # guard: verdict before index
    doorbell.ring(bucket, ("cancel", str(j)))
    return verdict


def _decide(bucket: Bucket, j: JobId, verdict: Verdict) -> Verdict:
    won = bucket.decide(keys.verdict(j), verdict)
    return verdict if isinstance(won, Won) else codec.decode(Verdict, won.found.body, keys.verdict(j))


def finish_if_over(bucket: Bucket, j: JobId, job: Job, terms: Terms, listed: Listed | None = None) -> bool:
    """Write the final of a several-task job if every task is over (under a verdict: or was never released)."""
    listed = listed or load.list_status(bucket, j)
    verdict = bucket.verdict(j)
    if verdict is None and len(listed.ends) < terms.tasks:  # (a listing counts the ends that blocks carry)
        return False
    tasks = load.tasks_now(bucket, j, job, terms, listed)
    if not all(
        one.is_over or (verdict is not None and not one.released and one.rank not in listed.ends) for one in tasks
    ):
        return False
    write_final(bucket, j, terms, tasks, verdict)
    return True


def write_final(bucket: Bucket, j: JobId, terms: Terms, tasks: list[TaskNow], verdict: Verdict | None) -> Final:
    """Verdict where there is none, then final, then the indexes."""
    ended = [task_end(terms, one.rank, one.last) for one in tasks if one.last is not None and one.is_over]
    if verdict is None:
        rolled = rollup.over(terms, ended)
        computed = Verdict(nonce=bucket.token(), state=rolled.state, reason=rolled.reason, by="tasks", at=bucket.now())
        verdict = _decide(bucket, j, computed)
    counts = Counter(one.state.value for one in ended)
    lasts = [one.last for one in tasks if one.last is not None]
    final = Final(
        nonce=bucket.token(),
        state=verdict.state,
        reason=verdict.reason,
        counts=dict(counts),
        started_at=min((end.started_at for end in lasts if end.started_at), default=0.0),
        finished_at=max((end.ended_at for end in lasts), default=verdict.at),
    )
    won = bucket.decide(keys.final(j), final)
    standing = final if isinstance(won, Won) else codec.decode(Final, won.found.body, keys.final(j))
    stops = [keys.cancel_index(j, rank) for rank in load.list_status(bucket, j).stops]
    bucket.drop(keys.cancel_index(j), *stops, keys.open_index(j))  # guard: final before index
    return standing
