"""How an attempt ends: exactly one create of `end.<n>.json`, in which its creator decides what follows.

`compose` looks for a verdict or a person's stop first, when a retry would follow: nothing is started again then.
`commit` sends the bytes until the answer is definite. A supervisor keeps the bytes on its disk between the two, so
that whoever carries on after it sends the same bytes, with the same nonce, and recognises its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from stado_like.bucket import generations
from stado_like.bucket.bucket import Bucket
from stado_like.job import blocks, budget, codec, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId
from stado_like.job.records import Budgets, Change, End, Heartbeat, History, LastFailure, LogTail
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.job.terms import Terms
from stado_like.store.conditional import Won

_CAUSES = frozenset(cause.value for cause in Cause if cause is not Cause.NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is known of an attempt that is over, besides why. Times are store time; 0: it never came to that."""

    worker: str = ""
    claimed_at: float = 0.0
    started_at: float = 0.0
    running_at: float = 0.0
    ended_at: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    by: str = ""
    history: History = field(default_factory=History)
    log: LogTail | None = None
    last_lines: str = ""
    notes: tuple[str, ...] = ()
    generation: int = 0
    """Of its gang, as its claim says."""


@dataclass(frozen=True, slots=True)
class Ours:
    """Our end stands."""

    end: End


@dataclass(frozen=True, slots=True)
class Fenced:
    """Somebody else had ended this attempt: here is how."""

    end: End


def is_over(bucket: Bucket, a: AttemptId) -> bool:
    """Whether a verdict on the job or a person's stop of this task stands. Raises `StoreUnavailable`."""
    return any(bucket.present(keys.verdict(a.job), keys.stop(a.job, a.rank)))


def compose(bucket: Bucket, a: AttemptId, terms: Terms, before: Budgets, ended: Ended, seen: Seen) -> End:
    """The end record of an attempt; of a block, all of whose ranks end like this. Raises `StoreUnavailable` when a
    retry would follow and it cannot look for a verdict."""
    if blocks.is_unit(terms, a.rank):
        every = blocks.ranks_of(terms, a.rank)
        return compose_block(bucket, a, terms, ended, seen, dict.fromkeys(every, (ended, seen)))
    return _compose(bucket, a, terms, before, ended, seen, lambda: is_over(bucket, a))


def compose_block(
    bucket: Bucket,
    unit: AttemptId,
    terms: Terms,
    ended: Ended,
    seen: Seen,
    ran: Mapping[int, tuple[Ended, Seen]],
    *,
    given_back: Sequence[int] = (),
    goes_on: int | None = None,
) -> End:
    """The end record of a block. `ended`, `seen`: of the block itself; `ran`: of each rank that it carried. Raises as
    `compose`."""
    marked: list[bool] = []

    def over(a: AttemptId) -> bool:
        if not marked:
            marked.append(is_over(bucket, unit))  # a verdict, or the mark that some of its tasks are stopped
        return marked[0] and is_over(bucket, a)

    carried = {}
    for rank, (its_end, what) in sorted(ran.items()):
        a = AttemptId(unit.job, rank, 1)
        end = _compose(bucket, a, terms, Budgets(), its_end, what, partial(over, a))
        carried[str(rank)] = blocks.packed(end)
    own = budget.decide(ended, terms, Budgets(), over=True)
    return End(
        nonce=bucket.token(),
        attempt=str(unit),
        outcome=own.outcome,
        decision=Decision.FINAL,
        state=own.state,
        reason=own.reason,
        cause=ended.cause,
        worker=seen.worker,
        claimed_at=seen.claimed_at,
        started_at=seen.started_at,
        running_at=seen.running_at,
        ended_at=seen.ended_at or bucket.now(),
        by=seen.by,
        notes=seen.notes,
        carried=carried,
        given_back=tuple(sorted(given_back)),
        goes_on=goes_on,
    )


def give_back(bucket: Bucket, unit: AttemptId, terms: Terms, seen: Seen) -> End:
    """End a block of which no rank has begun nor will, and some were stopped by a person: each of its ranks starts by
    itself, and meets its own stop. Returns the end that stands. Raises `StoreUnavailable`."""
    every = blocks.ranks_of(terms, unit.rank)
    ended = cancelled(reasons.BLOCK_GIVEN_BACK)
    record = compose_block(bucket, unit, terms, ended, seen, {}, given_back=every)
    return commit(bucket, unit, codec.encode(record)).end


def _compose(
    bucket: Bucket,
    a: AttemptId,
    terms: Terms,
    before: Budgets,
    ended: Ended,
    seen: Seen,
    over: Callable[[], bool],
) -> End:
    terms = terms.for_rank(a.rank)
    gang = generations.concerns(bucket, a, terms, ended, seen.generation, seen.by) if terms.gang else None
    following = budget.decide(ended, terms, before, gang=gang)
    if following.decision is not Decision.FINAL and over():  # guard: retry obeys verdict
        following = budget.decide(ended, terms, before, over=True)
    at = seen.ended_at or bucket.now()
    why = _why(ended, following)
    history = seen.history.add(Change(state=_told(following), reason=why, at=at, cause=ended.cause.value))
    failed = following.outcome in (Outcome.FAILED, Outcome.DOWN) or following.state is TaskState.FAILED
    return End(
        nonce=bucket.token(),
        attempt=str(a),
        outcome=following.outcome,
        decision=following.decision,
        state=following.state,
        reason=following.reason,
        cause=ended.cause,
        exit_code=seen.exit_code,
        signal=seen.signal,
        due_ms=int((at + following.wait_s) * 1000) if following.decision is Decision.RETRY else 0,
        budgets=following.budgets,
        restart={**following.restart, "attempt": a.n + 1} if following.restart else {},
        worker=seen.worker,
        claimed_at=seen.claimed_at,
        started_at=seen.started_at,
        running_at=seen.running_at,
        ended_at=at,
        by=seen.by,
        history=history,
        last_failure=LastFailure(exit_code=seen.exit_code, reason=ended.reason, log=seen.last_lines)
        if failed
        else None,
        log=seen.log,
        notes=seen.notes,
    )


def _told(following: budget.Following) -> str:
    """How a history names an end: what came of the attempt; of one that never began, what came of its task."""
    late = following.state is TaskState.UNSCHEDULABLE
    return following.state.value if late else following.outcome.value


def _why(ended: Ended, following: budget.Following) -> str:
    """Of the attempt. Where its outcome is not its cause's, for the reason of that."""
    usual = following.outcome is budget.OUTCOME_OF[ended.cause]
    return ended.reason if usual else following.reason


def commit(bucket: Bucket, a: AttemptId, body: bytes, composed: End | None = None) -> Ours | Fenced:
    """Send an end record until it is known whose stands. `composed`: what the bytes say, where the caller has it.
    Raises `StoreUnavailable`: call again with the same bytes."""
    key = keys.end(a)
    won = bucket.decide_bytes(key, body)
    if isinstance(won, Won):
        standing = composed or codec.decode(End, body, key)
    else:
        standing = codec.decode(End, won.found.body, key)
    bucket.remember(key, standing)
    return Ours(standing) if isinstance(won, Won) else Fenced(standing)


def end_attempt(bucket: Bucket, a: AttemptId, terms: Terms, ended: Ended, seen: Seen) -> Ours | Fenced:
    """Compose and commit at once, for whoever keeps nothing on a disk: a canceller, a claimer, a tick."""
    record = compose(bucket, a, terms, budgets_before(bucket, a), ended, seen)
    return commit(bucket, a, codec.encode(record), record)


def budgets_before(bucket: Bucket, a: AttemptId) -> Budgets:
    """What the task had spent when this attempt began."""
    previous = a.previous
    before = bucket.end(previous) if previous is not None else None
    return before.budgets if before is not None else Budgets()


def how_it_was_lost(bucket: Bucket, a: AttemptId, beat: Heartbeat | None, reason: str) -> tuple[Cause, str]:
    """What an attempt ends of whose supervisor or machine is gone: of its loss, or of the stop that was under way,
    which stands: Cancelled, not Down. Raises `StoreUnavailable`."""
    if beat is not None and beat.state is TaskState.STOPPING:
        removed = reason == reasons.MACHINE_REMOVED
        stopping = reasons.REMOVED_WHILE_STOPPING if removed else reasons.LOST_WHILE_STOPPING
        if bucket.verdict(a.job) is not None or _is_stopped(bucket, a):
            return Cause.REQUESTED, stopping
        if beat.stop_cause in _CAUSES:
            return Cause(beat.stop_cause), stopping
    return Cause.MACHINE_LOST, reason


def _is_stopped(bucket: Bucket, a: AttemptId) -> bool:
    """By a person. (That of a block only marks that one of its tasks is.)"""
    terms = bucket.block_terms(a.job)
    return not (terms is not None and blocks.is_unit(terms, a.rank)) and any(bucket.present(keys.stop(a.job, a.rank)))


def cancelled(reason: str) -> Ended:
    return Ended(Cause.REQUESTED, reason)
