"""Settle: carry out what an end record decided, and only then let go of the claim. One idempotent function, for
everybody.

Called by the supervisor that ended the attempt, by a claimer that met the end in its gate, by the agent, and by the
tick. In this order, because each step leaves enough behind for the next caller to find:

  1. a job verdict that this end makes due (more tasks failed for good than the job allows)
  2. the next entry, or the lane's next rank; of a gang's member the stops of the rest, or everybody's next entry;
     nothing of these when there is a verdict
  3. this attempt's own entries and orders deleted
  4. `final.json` where every task is over
  5. last: `running/<a>` deleted

Whoever drops a claim before step 2 loses the task: nobody would look at it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stado_like.bucket import blocks as carrying
from stado_like.bucket import delete, doorbell, entries, finish, gang_ends, lanes
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.end import Seen, cancelled, end_attempt
from stado_like.job import blocks, keys, reasons
from stado_like.job.keys import AttemptId
from stado_like.job.records import End, Job, Verdict
from stado_like.job.states import Decision, JobState
from stado_like.job.terms import Terms

LATE_S = 60.0
PROMPT_S = 2.0
"""An end looks for a tombstone unless its claim is younger than a minute and what ended it than two seconds: no job is
over and deleted within that. (Times that lie ahead are no proof of youth: a store's clock was set back.)"""


@dataclass(slots=True)
class Settled:
    """What settling did, for whoever wants to tell: new entries, whether the job is over."""

    entries: list[str] = field(default_factory=list)
    job_over: bool = False
    orphan: bool = False


def settle(
    bucket: Bucket, a: AttemptId, end: End, *, job: Job | None = None, queue_key: str = "", mending: bool = False
) -> Settled:
    """Carry out `end`, the end record of attempt `a`. Raises `StoreUnavailable`: call again.

    `mending`: somebody may have done part of it before, so look before writing what may be there and spent.
    """
    done = Settled()
    job = job or bucket.job(a.job)
    if job is None:
        drop_orphan(bucket, a, queue_key)
        done.orphan = True
        return done
    began = bucket.now()
    fresh = 0 <= began - end.claimed_at <= LATE_S and abs(began - end.ended_at) <= PROMPT_S
    if not fresh and _is_buried(bucket, a, job):
        done.orphan = True
        return done
    terms = bucket.terms(job)
    verdict = _verdict_due(bucket, a, end, job, terms)
    by_gang = end.decision is Decision.GANG
    task_over = end.is_final or by_gang
    if blocks.is_unit(terms, a.rank):
        task_over = _settle_block(bucket, a, end, job, terms, verdict, done, mending=mending)
    elif verdict is None:
        _release_next(bucket, a, end, job, terms, done, mending=mending)
    elif end.decision is Decision.RETRY:
        task_over = _end_next(bucket, a, end, job, terms, verdict)
    doorbell.ring_entries(bucket, done.entries)
    before = bucket.end(a.previous) if a.previous is not None else None
    unwanted = set(entries.all_keys(job, terms, a, before))
    if queue_key:
        unwanted.add(queue_key)
    bucket.drop(*sorted(unwanted))
    if terms.several and task_over and terms.tasks <= finish.SMALL_JOB_TASKS:
        done.job_over = finish.finish_if_over(bucket, a.job, job, terms)
    if abs(bucket.now() - began) > PROMPT_S:
        done.orphan = _is_buried(bucket, a, job)  # it slept between two writes
    bucket.drop(keys.running(a))  # guard: settle before delete
    return done


def _is_buried(bucket: Bucket, a: AttemptId, job: Job) -> bool:
    """Whoever ends an attempt may have slept, or been cut off, while others ended it, finished its job and deleted
    it. Then what it writes is new, the end record first, and lies under a status that nobody would ever clear. The
    tombstone stands before a deletion takes anything: a look after the create sees it, or the deletion saw the end."""
    if not any(bucket.present(keys.tombstone(a.job))):  # guard: tombstone after end
        return False
    delete.finish_deletion(bucket, a.job, job)
    drop_orphan(bucket, a)
    return True


def _verdict_due(bucket: Bucket, a: AttemptId, end: End, job: Job, terms: Terms) -> Verdict | None:
    """Step 1: the verdict that stands, or that this end makes due. End first, then count."""
    if not terms.several and end.is_final:
        return None
    verdict = bucket.verdict(a.job)  # guard: verdict before release
    if verdict is None and blocks.is_unit(terms, a.rank):
        verdict = carrying.verdict_due(bucket, a, end, terms)
    elif verdict is None and end.decision is not Decision.RETRY:
        verdict = finish.verdict_by_end(bucket, a, end, terms)
    return verdict


def _settle_block(
    bucket: Bucket,
    unit: AttemptId,
    end: End,
    job: Job,
    terms: Terms,
    verdict: Verdict | None,
    done: Settled,
    *,
    mending: bool,
) -> bool:
    """Step 2 for what a block carried. Under a verdict nothing is queued: what this end left open is ended here, but
    for what is claimed already. Returns whether all of its tasks are over."""
    if verdict is None:
        done.entries += carrying.release(bucket, unit, end, job, terms, mending=mending)
        return not list(carrying.open_now(unit, end, terms))
    over = True
    for a, before in carrying.open_now(unit, end, terms):
        over = _end_open(bucket, a, job, terms, verdict, before) and over
    return over


def _release_next(
    bucket: Bucket, a: AttemptId, end: End, job: Job, terms: Terms, done: Settled, *, mending: bool
) -> None:
    """Step 2. A retry's next entry, and the lane's next rank where this end releases it."""
    if end.decision is Decision.RETRY and not (mending and carrying.went_on(bucket, a.next, job, terms, end)):
        done.entries.append(entries.enqueue_after(bucket, job, terms, a.next, end))
    if terms.gang:
        done.entries += gang_ends.after_end(bucket, a, end, job, terms)
    elif terms.several and (end.is_final or a.n == 1):
        done.entries += lanes.release_by_end(bucket, a, job, terms, final=end.is_final, mending=mending)


def _end_next(bucket: Bucket, a: AttemptId, end: End, job: Job, terms: Terms, verdict: Verdict) -> bool:
    """A retry was decided just before a verdict came: the next attempt is open and nobody will queue it, so it ends
    here.

    Where it is claimed already, its holder meets the verdict and ends it. Returns whether the task is over now.
    """
    return _end_open(bucket, a.next, job, terms, verdict, end)


def _end_open(bucket: Bucket, a: AttemptId, job: Job, terms: Terms, verdict: Verdict, before: End | None) -> bool:
    (claimed,) = bucket.present(keys.running(a))
    if claimed:
        return False
    following = end_attempt(bucket, a, terms, cancelled(verdict_reason(verdict)), Seen(by="settle")).end
    # Whoever settled the first half may have queued it before the verdict came; no worker it fits may ever look at it.
    bucket.drop(*entries.all_keys(job, terms, a, before))
    return following.is_final


def verdict_reason(verdict: Verdict) -> str:
    """What a task that a verdict ends says: a person's own words, or what became of the job."""
    if verdict.stops:
        return verdict.stops
    if verdict.state in (JobState.CANCELLED, JobState.UNSCHEDULABLE):
        return verdict.reason
    return reasons.RUN_FAILED if verdict.state is JobState.FAILED else reasons.RUN_COMPLETED


def drop_orphan(bucket: Bucket, a: AttemptId, queue_key: str = "") -> None:
    """No such job (any more): its entry and its claim mean nothing. No end record is written.

    A status record written here would bring back a piece of what was deleted.
    """
    if queue_key:
        bucket.drop(queue_key)
    bucket.drop(keys.running(a))
