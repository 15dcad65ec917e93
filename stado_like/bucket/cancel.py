"""Cancelling a job and stopping one task: a decision first, then its index, then the bell, then the queued attempts.

    job:   create verdict (Cancelled, early)  →  cancels/<j>          →  ring  →  queued attempts ended and settled
    task:  create status/…/<rank>/stop.json   →  cancels/<j>.<rank>   →  ring  →  likewise, for this rank

Once the first create stands the cancel is acknowledged: no gate lets a new claim start. Running attempts are ended
by those who hold them, with grace: so before a queued attempt is ended here, its claim is looked for. A crash at
any point is mended by the next tick from `cancels/`, or by any gate or look, which obey the decision itself and not
its index.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.bucket import blocks, delete, doorbell, entries, finish, load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, cancelled, end_attempt, give_back
from stado_like.bucket.load import Listed, TaskNow
from stado_like.bucket.settle import settle, verdict_reason
from stado_like.errors import Conflict, NotFound
from stado_like.job import blocks as block_of
from stado_like.job import codec, keys, reasons
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Job, Pointer, Stop
from stado_like.job.states import JobState
from stado_like.job.terms import Terms
from stado_like.store.conditional import Won


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What a cancel did: attempts ended here, and those that run and will be stopped by their holders. `over`: the
    job has ended."""

    ended: int
    running: int
    over: bool


def cancel_job(bucket: Bucket, j: JobId, *, reason: str = "", by: str = "") -> Cancelled:
    """Cancel a job. Raises `NotFound`, `Conflict` when it has ended already, `StoreUnavailable`."""
    job = _living(bucket, j)
    terms = bucket.terms(job)
    if _is_over(bucket, j, terms):
        raise Conflict(f"the job {j} has ended already", "`stado job show` tells how.", code="JOB_ENDED")
    finish.early_verdict(bucket, j, JobState.CANCELLED, reason or reasons.RUN_CANCELLED, by=by)
    return carry_out(bucket, j, job, terms)


def stop_task(bucket: Bucket, j: JobId, rank: int, *, reason: str = "", by: str = "") -> bool:
    """Stop one task for good. Returns whether it was over when this returned. Raises as `cancel_job` does."""
    job = _living(bucket, j)
    terms = bucket.terms(job)
    if not 0 <= rank < terms.tasks:
        raise NotFound(f"the job {j} has {terms.tasks} tasks, 0 to {terms.tasks - 1}; there is no {rank}")
    listed = load.list_status(bucket, j)
    if load.task_now(bucket, j, rank, listed).is_over or (terms.several and bucket.final(j) is not None):
        raise Conflict(f"task {rank} of {j} has ended already", "`stado task show` tells how.", code="TASK_ENDED")
    stop = Stop(nonce=bucket.token(), reason=reason or reasons.STOPPED_ON_REQUEST, by=by, at=bucket.now())
    won = bucket.decide(keys.stop(j, rank), stop)
    standing = stop if isinstance(won, Won) else codec.decode(Stop, won.found.body, keys.stop(j, rank))
    blocks.mark(bucket, AttemptId(j, rank, 1), terms, standing)
    bucket.ensure(keys.cancel_index(j, rank), Pointer(what=standing.reason, at=standing.at))  # guard: stop before index
    doorbell.ring(bucket, ("cancel", f"{j}.{rank:05d}"))
    return carry_out_stop(bucket, j, rank, job, terms)


def _living(bucket: Bucket, j: JobId) -> Job:
    """A job that was deleted has its object back for a moment when its name is used again: only the tombstone tells."""
    job = bucket.job(j)
    if job is None or any(bucket.present(keys.tombstone(j))):
        raise NotFound(f"there is no job {j}", "`stado job list --all` shows every job.")
    return job


def _is_over(bucket: Bucket, j: JobId, terms: Terms) -> bool:
    if terms.several:
        return bucket.final(j) is not None
    return load.task_now(bucket, j, 0, load.list_status(bucket, j)).is_over


def carry_out(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> Cancelled:
    """End every queued attempt of a job under a verdict; drop the index once all is over. Idempotent: also the
    tick's pass."""
    verdict = bucket.verdict(j)
    if verdict is None:
        bucket.drop(keys.cancel_index(j))
        return Cancelled(0, 0, False)
    if _was_deleted(bucket, j, job):
        return Cancelled(0, 0, True)
    listed = load.list_status(bucket, j)
    ended = running = 0
    seen: set[AttemptId] = set()
    for task in load.tasks_now(bucket, j, job, terms, listed):
        if task.is_over or task.open is None or not task.released:
            _drop_left_entry(bucket, j, task, job, terms)
            continue
        if task.open in seen:
            continue  # carried by a block that was met before
        seen.add(task.open)
        if _end_queued(bucket, task.open, job, terms, verdict_reason(verdict)):
            ended += len(block_of.ranks_of(terms, task.open.rank)) if block_of.is_unit(terms, task.open.rank) else 1
        else:
            running += 1
    over = running == 0 and _finish(bucket, j, job, terms)
    return Cancelled(ended, running, over)


def _finish(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> bool:
    if terms.several:
        return finish.finish_if_over(bucket, j, job, terms)
    if load.task_now(bucket, j, 0, Listed()).is_over:
        bucket.drop(keys.cancel_index(j), keys.cancel_index(j, 0))
        return True
    return False


def carry_out_stop(bucket: Bucket, j: JobId, rank: int, job: Job, terms: Terms) -> bool:
    """The same for one rank under a person's stop. True: the task is over."""
    stop = bucket.stop(j, rank)
    if stop is None:
        bucket.drop(keys.cancel_index(j, rank))
        return False
    if _was_deleted(bucket, j, job):
        return True
    listed = load.list_status(bucket, j)
    task = load.one_now(bucket, j, job, terms, rank, listed)  # one look: what its block said before is not asked again
    if task.open is not None or not task.released:
        blocks.mark(bucket, AttemptId(j, rank, 1), terms, stop)  # whoever stopped it may have died before
        by_itself = task.open is not None and task.open.rank == rank
        if task.open is not None and not by_itself and _give_back(bucket, task.open, job, terms):
            return carry_out_stop(bucket, j, rank, job, terms)
        # A stop of a rank that its lane has not released yet, or whose block somebody holds, writes only the stop: its
        # gate will meet it.
        if task.open is None or not by_itself or not load.was_released(bucket, j, job, terms, rank, listed):
            if bucket.final(j) is not None:  # over under a verdict, and this rank will never be released
                bucket.drop(keys.cancel_index(j, rank))
                return True
            return False
        if not _end_queued(bucket, task.open, job, terms, stop.reason):
            return False
    elif task.undecided:
        return False  # its gang decides; where it starts again, its next attempt meets the stop
    _drop_left_entry(bucket, j, task, job, terms)
    bucket.drop(keys.cancel_index(j, rank))
    return True


def _was_deleted(bucket: Bucket, j: JobId, job: Job) -> bool:
    """Nothing keeps a job from ending and being deleted while a canceller sleeps, and its decision then lies under the
    job's status for ever. Looked for after the decision was made; an end that is written after this look finds the
    tombstone itself, when it is settled."""
    if not any(bucket.present(keys.tombstone(j))):
        return False
    delete.finish_deletion(bucket, j, job)
    return True


def _drop_left_entry(bucket: Bucket, j: JobId, task: TaskNow, job: Job, terms: Terms) -> None:
    """An attempt that was ended while nobody held it has no claim by which a tick would find that its entry was left:
    here is the place."""
    if task.last is None or not task.is_over or task.last.worker:
        return
    a = keys.AttemptId(j, task.rank, task.last_n)
    before = bucket.end(a.previous) if a.previous is not None else None
    bucket.drop(*entries.all_keys(job, terms, a, before))
    unit = block_of.unit_of(terms, a.rank) if a.n == 1 else None
    if unit is not None and a.rank == block_of.ranks_of(terms, unit).start:  # once for all that it carried
        bucket.drop(*entries.all_keys(job, terms, AttemptId(j, unit, 1), None))


def _give_back(bucket: Bucket, unit: AttemptId, job: Job, terms: Terms) -> bool:
    """End a block that nobody holds, so that the stopped rank can be ended and the others start by themselves. False:
    somebody holds it. Looked for after its mark was made: a claim made later meets that in its gate."""
    (claimed,) = bucket.present(keys.running(unit))
    if claimed:  # guard: look for the claim first
        return False
    settle(bucket, unit, give_back(bucket, unit, terms, Seen(by="canceller")), job=job, mending=True)
    return True


def _end_queued(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, reason: str) -> bool:
    """End an attempt that nobody holds. False: somebody holds it, and will end it, with grace.

    The claim is looked for after the decision was made: a claim made later meets the decision in its gate.
    """
    (claimed,) = bucket.present(keys.running(a))
    if claimed:  # guard: look for the claim first
        return False
    ended = end_attempt(bucket, a, terms, cancelled(reason), Seen(by="canceller"))
    settle(bucket, a, ended.end, job=job, mending=True)
    return ended.end.is_final
