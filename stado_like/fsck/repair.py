"""Repairing what a check found, by the transitions that a tick, a worker or a submitter would have carried on with.

Nothing is decided here that they would not decide, and nothing is written that they would not write: so a repair may
run beside all of them, beside another repair, and be killed at any instruction. A job is looked at afresh, what can be
done about it is done, and it is looked at again, until nothing is left or nothing changes: one step often uncovers the
next (an index written, then the cancel behind it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stado_like.bucket import entries, finish, groups, mend, settle
from stado_like.bucket.apply import apply
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_world import Memory
from stado_like.errors import BadRecord
from stado_like.fsck.finding import Finding
from stado_like.fsck.picture import JobPicture
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Job, Pointer
from stado_like.job.terms import Terms
from stado_like.planning.actions import DropSpent, SettleCancel, SettleEnded
from stado_like.planning.world import Held

ROUNDS_MOST = 12

Step = Callable[[Bucket, JobPicture, Finding], None]


@dataclass(slots=True)
class Repaired:
    """What stays, and what was found on the way and is gone."""

    left: list[Finding] = field(default_factory=list)
    done: list[Finding] = field(default_factory=list)


def repair_job(
    bucket: Bucket, look: Callable[[], JobPicture], judge: Callable[[JobPicture], list[Finding]]
) -> Repaired:
    """Repair one job. `look` pictures it afresh. Raises `StoreUnavailable`: call again."""
    met: dict[Finding, None] = {}
    before: set[Finding] = set()
    now: list[Finding] = []
    for _ in range(ROUNDS_MOST):
        p = look()
        now = judge(p)
        todo = [one for one in now if one.can_be_repaired]
        met.update(dict.fromkeys(todo))
        if not todo or set(todo) == before:
            break
        before = set(todo)
        _round(bucket, p, todo)
    left = set(now)
    return Repaired(now, [one for one in met if one not in left])


def _round(bucket: Bucket, p: JobPicture, todo: list[Finding]) -> None:
    """Each attempt for itself; then the job as a whole, once for all that was found about it."""
    whole: dict[Step, Finding] = {}
    for one in todo:
        step = REPAIRS[one.code]
        if step in WHOLE_JOB:
            whole.setdefault(step, one)
        else:
            _carry_out(bucket, p, one, step)
    for step, one in whole.items():
        _carry_out(bucket, p, one, step)


def _carry_out(bucket: Bucket, p: JobPicture, one: Finding, step: Step) -> None:
    try:
        step(bucket, p, one)
    except (BadRecord, KeyError):
        return  # a record in the way cannot be read: the finding stays, and the record is one of its own


# ---- attempts


def _settle_ended(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    a = _attempt(one.key)
    if not one.key.startswith(keys.RUNNING):
        end = bucket.end(a)
        if end is not None:
            settle.settle(bucket, a, end, queue_key=one.key, mending=True)
        return
    claim = bucket.claim(a)
    if claim is not None:
        held = Held(a, claim.record, claim.etag, claim.last_modified, claim.now)
        apply(bucket, SettleEnded(held), Memory())


def _drop_claim(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    """A gate that looks does the same: no such job, or an attempt that the one before it did not ask for."""
    a = _attempt(one.key)
    claim = bucket.claim(a)
    if claim is None:
        return
    if bucket.job(a.job) is not None:
        before = bucket.end(a.previous) if a.previous is not None else None
        if a.previous is None or (before is not None and not before.is_final):
            return
    settle.drop_orphan(bucket, a, claim.record.queue_key)


# ---- entries


def _attempt(key: str) -> AttemptId:
    if key.startswith(keys.RUNNING):
        return keys.parse_running(key)
    return keys.attempt_of_entry(key)


def _drop(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    """What its key names is over for ever: no such job, no such rank, a job with a final."""
    bucket.drop(one.key)


def _drop_without_job(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    """An entry is only ever written after its job: looked for by its key once more."""
    if bucket.job(p.id) is None:
        bucket.drop(one.key)


def _drop_spent(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    if not one.key.startswith(keys.QUEUED_LATER):
        apply(bucket, DropSpent(keys.parse_entry(one.key)), Memory())
    elif any(bucket.present(keys.running(_attempt(one.key)))):
        bucket.drop(one.key)


def _rename(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    """New before old. Where it was claimed or ended meanwhile the new one is not needed."""
    assert p.job is not None and p.terms is not None
    a = _attempt(one.key)
    before = bucket.end(a.previous) if a.previous is not None else None
    if not any(bucket.present(keys.running(a), keys.end(a))):
        if before is None:
            entries.enqueue(bucket, p.job, p.terms, a)
        else:
            entries.enqueue_after(bucket, p.job, p.terms, a, before)
    bucket.drop(one.key)


def _finish_move(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    entries.move_due(bucket, keys.parse_later(one.key))


# ---- jobs


def _mend(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    """Everything that a tick does about a row of open/ and a row of jobs/."""
    opened_at = p.traces.opened_at
    if p.is_dying:
        bucket.ensure(keys.open_index(p.id), Pointer(what="deletion", at=bucket.now()))
    elif p.is_there and not (p.terms is not None and p.terms.several and opened_at is not None):
        mend.sweep_job(bucket, p.id)
    if not p.is_dying and opened_at is None and (p.terms is None or not p.terms.several):
        return
    waiting = {a.rank: a.n for key, a in p.traces.entries.items() if key.startswith(keys.QUEUED_LATER)}
    since = opened_at if opened_at is not None else bucket.now()
    cursor = 0
    while True:
        done = mend.mend_job(bucket, p.id, since=since, claimed=p.claimed, waiting=waiting, cursor=cursor)
        cursor = done.cursor
        if done.over or not cursor:
            break
    if p.job is not None and p.terms is not None and not done.over:
        _release_what_began(bucket, p.id, p.job, p.terms)


def _release_what_began(bucket: Bucket, j: JobId, job: Job, terms: Terms) -> None:
    """The rest of a group of which the very first rank was released."""
    seen = groups.gathering(bucket, j, job, terms)
    for group in terms.groups:
        if group.name in seen.begun and group.name in seen.waiting:
            groups.release(bucket, j, job, terms, group)


def _settle_cancel(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    apply(bucket, SettleCancel(p.id, _rank_of(p, one.key)), Memory())


def _rank_of(p: JobPicture, key: str) -> int | None:
    """The rank that a decision or its index is about; None: the job."""
    if key.startswith(keys.CANCELS):
        return keys.parse_cancel_index(key)[1]
    status = keys.parse_status(p.id, key)
    return status.rank if status.kind == "stop" else None


def _finish(bucket: Bucket, p: JobPicture, one: Finding) -> None:
    assert p.job is not None and p.terms is not None
    finish.finish_if_over(bucket, p.id, p.job, p.terms)


REPAIRS: Mapping[str, Step] = {
    "claim-of-ended": _settle_ended,
    "entry-of-ended": _settle_ended,
    "claim-without-job": _drop_claim,
    "claim-stray": _drop_claim,
    "entry-without-job": _drop_without_job,
    "entry-beyond-job": _drop,
    "entry-stray": _drop,
    "entry-of-final-job": _drop,
    "order-spent": _drop,
    "entry-spent": _drop_spent,
    "entry-misnamed": _rename,
    "entry-twice": _finish_move,
    "attempt-lost": _mend,
    "rank-not-released": _mend,
    "open-missing": _mend,
    "open-left": _mend,
    "open-without-job": _mend,
    "deletion-unfinished": _mend,
    "job-not-final": _mend,
    "verdict-without-index": _mend,
    "stop-without-index": _mend,
    "cancel-unfinished": _settle_cancel,
    "cancel-left": _settle_cancel,
    "cancel-without-verdict": _settle_cancel,
    "stop-unfinished": _settle_cancel,
    "final-without-verdict": _finish,
}
WHOLE_JOB = frozenset({_mend, _finish})
