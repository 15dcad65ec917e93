"""From all ends of a generation of a gang -> what follows: everybody again, or the end of the job. Pure.

A gang has one budget. It is charged once a generation, by one end of the complete set: one machine that is lost makes
the others crash, and their failures are its doing. The gravest cause is charged (a machine or GPU, preempted, moved, a
failure of its own), of equals the first to end; so whoever looks, and whenever, finds the same.

    a member ended for good: a person's stop, a verdict, its time limit, its own budget    no restart
    all exited 0                                                                           Completed (`Always`: again)
    something was charged                                                                  again, within the budget
    nothing was: the barrier was closed, a person put one back                             again, nothing spent

With `RestartTask` a member that does not lead restarts alone: its end decides *retry* by itself, and only one that ends
its generation is in the set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stado_like.job import budget, reasons
from stado_like.job.budget import Ended
from stado_like.job.ids import AttemptId
from stado_like.job.records import Budgets, End
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.job.terms import Terms, display_name

_GRAVITY: Mapping[Cause, int] = {
    Cause.MACHINE_LOST: 0,
    Cause.GPU_FAULT: 0,
    Cause.PREEMPTED: 1,
    Cause.MOVED: 2,
    Cause.FAILURE: 3,
    Cause.STALLED: 3,
}
_FOR_GOOD = (TaskState.FAILED, TaskState.DOWN, TaskState.PREEMPTED)
_STATE_OF = {
    Outcome.COMPLETED: TaskState.COMPLETED,
    Outcome.FAILED: TaskState.FAILED,
    Outcome.DOWN: TaskState.DOWN,
    Outcome.CANCELLED: TaskState.COSCHED_FAILED,
}
ABORT_BACKOFF_S = 10.0
ABORT_BACKOFF_MOST_S = 300.0


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """How one rank ended in a generation: its last end there."""

    attempt: AttemptId
    name: str
    end: End

    @property
    def rank(self) -> int:
        return self.attempt.rank


@dataclass(frozen=True, slots=True)
class Whole:
    """What follows for all. `culprit`: whose end was charged, or ended the gang. `budgets`: spent from now on.
    `not_before`: when the next placement may be, store time."""

    restart: bool
    budgets: Budgets
    culprit: MemberEnd | None = None
    state: TaskState = TaskState.COMPLETED
    reason: str = ""
    not_before: float = 0.0
    spent: Mapping[str, Any] | None = None


def leads(terms: Terms, rank: int) -> bool:
    return rank == terms.leader


def restarts_alone(terms: Terms, rank: int) -> bool:
    """Whether a member that started may fail without the others."""
    return terms.on_failure == "RestartTask" and not leads(terms, rank)


def is_bad(end: End) -> bool:
    """Whether the rest of its generation is stopped for this end."""
    if end.decision is Decision.RETRY:
        return False
    return end.cause is not Cause.NONE and end.state is not TaskState.COMPLETED


def ended_for_good(end: End) -> bool:
    """Whether it alone keeps its gang from starting again."""
    return is_bad(end) and (end.decision is Decision.FINAL or end.state in _FOR_GOOD)


def follows(terms: Terms, ends: Sequence[MemberEnd], before: Budgets, *, judged: bool = False) -> Whole:
    """What follows the complete set of a generation's ends, in any order. `before`: what the gang had spent when it was
    placed. `judged`: a verdict stands."""
    last_at = max(one.end.ended_at for one in ends)
    over = _first([one for one in ends if ended_for_good(one.end)])
    if judged or over is not None:
        return Whole(
            False, before, over, over.end.state if over else TaskState.CANCELLED, over.end.reason if over else ""
        )
    charged = _first([one for one in ends if one.end.cause in _GRAVITY and is_bad(one.end)])
    if charged is None:
        return _nothing_charged(terms, ends, before, last_at)
    following = budget.decide(_ended(charged.end, before), terms.for_rank(charged.rank), before)
    spent = {**following.restart, "attempt": charged.attempt.n + 1} if following.restart else None
    return Whole(
        restart=following.decision is Decision.RETRY,
        budgets=following.budgets,
        culprit=charged,
        state=following.state,
        reason=following.reason,
        not_before=last_at + following.wait_s,
        spent=spent,
    )


def _nothing_charged(terms: Terms, ends: Sequence[MemberEnd], before: Budgets, last_at: float) -> Whole:
    bad = _first([one for one in ends if is_bad(one.end)])
    if bad is not None:
        return Whole(True, before, bad, TaskState.PENDING, bad.end.reason, last_at)
    if terms.restart_policy != "Always":
        return Whole(False, before)
    following = budget.decide(Ended(Cause.NONE, reasons.exited(0)), terms, before)
    return Whole(True, following.budgets, None, following.state, following.reason, last_at + following.wait_s)


def _first(found: Sequence[MemberEnd]) -> MemberEnd | None:
    """The gravest; of equals the first to end. What charges nothing is the least: a stop that followed another."""
    return min(found, key=lambda one: (_GRAVITY.get(one.end.cause, 9), one.end.ended_at, one.rank), default=None)


def _ended(end: End, before: Budgets) -> Ended:
    running_s = end.ended_at - end.running_at if end.running_at else 0.0
    known, told = before.supervisor_deaths, end.budgets.supervisor_deaths
    died_on = told[-1] if len(told) > len(known) else ""
    return Ended(end.cause, end.reason, running_s, died_on)


def stop_reason(terms: Terms, bad: MemberEnd, so_far: Sequence[MemberEnd], before: Budgets) -> str:
    """What the other members are told when they are stopped for one that ended so."""
    end = bad.end
    if end.cause is Cause.TIME_LIMIT:
        return reasons.GANG_OVERRAN
    if end.cause is Cause.REQUESTED:
        return reasons.worker_stopped(bad.name, end.reason)
    if follows(terms, so_far, before).restart:
        return reasons.gang_restarts(bad.name) if end.cause in _OWN else reasons.gang_restart(bad.name, why(end))
    if terms.on_failure == "FailJob" or terms.for_rank(bad.rank).restart_policy == "Never":
        return reasons.FAILS_ON_A_FAILURE
    return reasons.GANG_BUDGET_SPENT


_OWN = (Cause.FAILURE, Cause.STALLED)


def why(end: End) -> str:
    """What befell a member, in the words that follow `Gang restart after train-3: `."""
    return reasons.A_GPU_FAULT if end.cause is Cause.GPU_FAULT else end.reason


def as_ended(terms: Terms, whole: Whole, member: MemberEnd, *, judged: str = "") -> End:
    """A member's end as it stands once there is no restart: final, with what became of the task. `judged`: what a
    verdict says that came before all had ended."""
    end = member.end
    if end.decision is Decision.FINAL:
        return end
    state, reason = end.state, end.reason
    if state not in (*_FOR_GOOD, TaskState.COMPLETED):
        state = _STATE_OF[end.outcome]
    if whole.culprit is not None and whole.culprit.attempt == member.attempt:
        state, reason = whole.state, whole.reason
    elif judged and end.outcome is Outcome.CANCELLED:
        state, reason = TaskState.CANCELLED, judged
    return replace(end, decision=Decision.FINAL, state=state, reason=reason)


def wait_after_aborts_s(aborts: int) -> float:
    """Before the placement that follows so many in a row which never started."""
    return float(min(ABORT_BACKOFF_S * 2 ** min(aborts - 1, 40), ABORT_BACKOFF_MOST_S)) if aborts > 0 else 0.0


def member_end(terms: Terms, a: AttemptId, end: End) -> MemberEnd:
    return MemberEnd(a, display_name(terms, a.rank), end)
