"""How an attempt ended, and the policy of its job -> what follows: retry, or final.

| ended because                        | outcome   | spends                     | follows                            |
|--------------------------------------|-----------|----------------------------|------------------------------------|
| exit 0                               | Completed | nothing                    | final (`Always`: retry)            |
| failure, stalled                     | Failed    | failures, `max_restarts`   | policy                             |
| machine-lost, gpu-fault              | Down      | `max_machine_restarts`     | policy                             |
| undelivered                          | Down      | nothing                    | retry, at once                     |
| preempted, moved                     | Cancelled | counted, never refused ... | retry, at once, whatever the policy |
|   ... until `max_retries_preemption` (machine losses included) is passed: final, Preempted                        |
| gang, barrier, requeued              | Cancelled | nothing                    | retry, at once                     |
| time-limit                           | Cancelled | nothing                    | final: the task is Failed          |
| requested                            | Cancelled | nothing                    | final                              |

An attempt that was Running for ten minutes resets failures and machine faults before its own end is counted;
preemptions are never reset. A verdict or a person's stop turns every retry into a final end. Back-off: the first
wait doubled by each restart that spent, up to the longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stado_like.job import reasons
from stado_like.job.records import Budgets
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.job.terms import Terms

RESET_AFTER_S = 600.0

OUTCOME_OF: Mapping[Cause, Outcome] = {
    Cause.NONE: Outcome.COMPLETED,
    Cause.FAILURE: Outcome.FAILED,
    Cause.STALLED: Outcome.FAILED,
    Cause.MACHINE_LOST: Outcome.DOWN,
    Cause.GPU_FAULT: Outcome.DOWN,
    Cause.UNDELIVERED: Outcome.DOWN,
    Cause.PREEMPTED: Outcome.CANCELLED,
    Cause.MOVED: Outcome.CANCELLED,
    Cause.GANG: Outcome.CANCELLED,
    Cause.BARRIER: Outcome.CANCELLED,
    Cause.REQUEUED: Outcome.CANCELLED,
    Cause.TIME_LIMIT: Outcome.CANCELLED,
    Cause.REQUESTED: Outcome.CANCELLED,
}

_OWN = (Cause.FAILURE, Cause.STALLED)
_MACHINE = (Cause.MACHINE_LOST, Cause.GPU_FAULT)
_EVICTED = (Cause.PREEMPTED, Cause.MOVED)
_FREE = (Cause.UNDELIVERED, Cause.GANG, Cause.BARRIER, Cause.REQUEUED)
_STATE_OF = {
    Outcome.COMPLETED: TaskState.COMPLETED,
    Outcome.FAILED: TaskState.FAILED,
    Outcome.CANCELLED: TaskState.CANCELLED,
    Outcome.DOWN: TaskState.DOWN,
}


@dataclass(frozen=True, slots=True)
class Ended:
    """What was seen of an attempt's end. `running_s`: how long it was Running, 0 when it never was."""

    cause: Cause
    reason: str
    running_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Following:
    """What the end record decides. `wait_s`: how long until the next attempt may start; `restart`: what was spent,
    for people."""

    outcome: Outcome
    decision: Decision
    state: TaskState
    reason: str
    budgets: Budgets
    wait_s: float = 0.0
    restart: Mapping[str, Any] | None = None


def decide(ended: Ended, terms: Terms, before: Budgets, *, over: bool = False) -> Following:
    """What follows. `over`: a verdict on the job, or a person's stop of the task, stands: nothing is started again."""
    if ended.cause is Cause.MACHINE_LOST and terms.terminates_agent:
        return _final(Outcome.COMPLETED, reasons.AGENT_TERMINATED, before)
    outcome = OUTCOME_OF[ended.cause]
    budgets = before
    if ended.running_s >= RESET_AFTER_S:
        budgets = Budgets(preemptions=before.preemptions)
    if ended.cause is Cause.TIME_LIMIT:
        return _final(outcome, ended.reason, budgets, TaskState.FAILED)
    if over or ended.cause is Cause.REQUESTED:
        return _final(outcome, ended.reason, budgets)
    if ended.cause in _FREE:
        return _retry(outcome, ended, budgets, 0.0, "nothing", 0)
    if ended.cause in _EVICTED:
        return _evicted(outcome, ended, terms, budgets)
    if ended.cause is Cause.NONE:
        if terms.restart_policy != "Always":
            return _final(outcome, ended.reason, budgets)
        return _retry(outcome, ended, budgets, float(terms.backoff_s), "nothing", 0)
    return _spend(outcome, ended, terms, budgets)


def _spend(outcome: Outcome, ended: Ended, terms: Terms, budgets: Budgets) -> Following:
    own = ended.cause in _OWN
    if terms.restart_policy == "Never":
        return _final(outcome, ended.reason, budgets)
    spent, limit = (budgets.failures, terms.max_restarts) if own else (budgets.machine, terms.max_machine_restarts)
    if spent >= limit:
        reason = reasons.budget_spent(spent, limit, not own, ended.reason) if limit else ended.reason
        return _final(outcome, reason, budgets)
    after = Budgets(
        failures=budgets.failures + own,
        machine=budgets.machine + (not own),
        preemptions=budgets.preemptions,
    )
    if not own and after.machine + after.preemptions > terms.max_retries_preemption:
        return _final(outcome, ended.reason, budgets, TaskState.PREEMPTED)
    wait_s = min(terms.backoff_s * 2 ** min(after.failures + after.machine - 1, 40), terms.max_backoff_s)
    return _retry(outcome, ended, after, float(wait_s), "failures" if own else "machine", spent + 1, limit)


def _evicted(outcome: Outcome, ended: Ended, terms: Terms, budgets: Budgets) -> Following:
    after = Budgets(failures=budgets.failures, machine=budgets.machine, preemptions=budgets.preemptions + 1)
    if after.preemptions + after.machine > terms.max_retries_preemption:
        return _final(outcome, ended.reason, after, TaskState.PREEMPTED)
    return _retry(outcome, ended, after, 0.0, "preemptions", after.preemptions)


def _final(outcome: Outcome, reason: str, budgets: Budgets, state: TaskState | None = None) -> Following:
    return Following(outcome, Decision.FINAL, state or _STATE_OF[outcome], reason, budgets)


def _retry(
    outcome: Outcome, ended: Ended, budgets: Budgets, wait_s: float, budget: str, count: int, limit: int | None = None
) -> Following:
    restart = {"cause": ended.cause.value, "budget": budget, "count": count, "limit": limit}
    return Following(outcome, Decision.RETRY, TaskState.PENDING, ended.reason, budgets, wait_s, restart)
