"""How an attempt ended, and the policy of its job -> what follows: retry, or final.

| ended because                        | outcome   | spends                      | follows                             |
|--------------------------------------|-----------|-----------------------------|-------------------------------------|
| exit 0                               | Completed | nothing                     | final (`Always`: retry)             |
| failure, stalled                     | Failed    | failures, `max_restarts`    | policy                              |
| machine-lost, gpu-fault              | Down      | `max_machine_restarts`, and | policy                              |
|                                      |           | `max_retries_preemption`    |                                     |
| undelivered                          | Down      | nothing                     | retry, at once                      |
| preempted, moved                     | Cancelled | `max_retries_preemption`    | retry, at once, whatever the policy |
| moved, of a resident job             | Cancelled | nothing                     | retry, at once                      |
| gang, barrier, requeued              | Cancelled | nothing                     | retry, at once                      |
| time-limit                           | Cancelled | nothing                     | final: the task is Failed           |
| requested                            | Cancelled | nothing                     | final                               |
| unschedulable                        | Cancelled | nothing                     | final: the task is Unschedulable    |

`max_retries_preemption` bounds preemptions, moves and machine faults together: beyond it a preempted task is Preempted
for good, a lost one Down.

An attempt that was Running for ten minutes resets failures and machine faults before its own end is counted;
preemptions are never reset. A verdict or a person's stop turns every retry into a final end. Back-off: the first
wait doubled by each restart since the last reset that spent a budget or followed exit 0, up to the longest.

In a gang an end decides *gang*, and what follows is decided by all of them; only where a member may restart alone does
its own end decide a retry.

The poison guard: a task under which three supervisors died while their machines lived on is Failed, for it takes down
what runs it. Losses of machines, reboots, moves and preemptions do not count. Ten minutes do not reset it, or a task
that needs eleven to exhaust its machine's memory would go through all machines for ever; a day does, or a service
would end with the third time that an operator killed its supervisor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from stado_like.job import reasons
from stado_like.job.records import Budgets
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.job.terms import Terms

RESET_AFTER_S = 600.0
FORGIVEN_AFTER_S = 86_400.0
SUPERVISOR_DEATHS = 3
"""So many supervisors may die under a task, the last of them included."""

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
    Cause.UNSCHEDULABLE: Outcome.CANCELLED,
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
    """What was seen of an attempt's end. `running_s`: how long it was Running, 0 when it never was.
    `supervisor_died_on`: the worker, where its supervisor died and the machine lived on."""

    cause: Cause
    reason: str
    running_s: float = 0.0
    supervisor_died_on: str = ""


class Gang(Enum):
    """How an attempt's end concerns its gang. WHOLE: all restart or none; ALONE: it started, and may restart without
    the others."""

    WHOLE = auto()
    ALONE = auto()


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


def decide(
    ended: Ended, terms: Terms, before: Budgets, *, over: bool = False, gang: Gang | None = None
) -> Following:
    """What follows. `over`: a verdict on the job, or a person's stop of the task, stands: nothing is started again.
    `gang`: it belongs to one, whose ends decide together (see `gang`)."""
    if ended.cause is Cause.MACHINE_LOST and terms.terminates_agent:
        return _final(Outcome.COMPLETED, reasons.AGENT_TERMINATED, before)
    outcome = OUTCOME_OF[ended.cause]
    budgets = _after_running(ended.running_s, before)
    if ended.cause is Cause.TIME_LIMIT:
        return _final(outcome, ended.reason, budgets, TaskState.FAILED)
    if ended.cause is Cause.UNSCHEDULABLE:
        return _final(outcome, ended.reason, budgets, TaskState.UNSCHEDULABLE)
    if over and ended.cause is Cause.UNDELIVERED:
        return _final(Outcome.CANCELLED, ended.reason, budgets)  # it never began: what forbade it is how it ended
    if over or ended.cause is Cause.REQUESTED:
        return _final(outcome, ended.reason, budgets)
    if gang is not None:
        return _in_gang(outcome, ended, terms, before, gang)
    if ended.cause in _FREE or (ended.cause is Cause.MOVED and terms.resident):
        return _retry(outcome, ended, budgets, 0.0, "nothing", 0)
    if ended.cause in _EVICTED:
        return _evicted(outcome, ended, terms, budgets)
    if ended.cause is Cause.NONE:
        return _completed(outcome, ended, terms, budgets)
    if terms.restart_policy == "Never":
        return _final(outcome, ended.reason, budgets)
    return (_failed if ended.cause in _OWN else _lost)(outcome, ended, terms, budgets)


def _in_gang(outcome: Outcome, ended: Ended, terms: Terms, before: Budgets, gang: Gang) -> Following:
    """Left to the whole set, and charged there. Its state says what it is alone: Completed; over for good, where its
    own budget is spent; else it waits for the others."""
    if ended.cause is Cause.NONE:
        return Following(outcome, Decision.GANG, TaskState.COMPLETED, ended.reason, before)
    if gang is Gang.ALONE:
        alone = decide(ended, terms, before)
        return replace(alone, decision=Decision.GANG) if alone.decision is Decision.FINAL else alone
    if ended.supervisor_died_on:
        before = replace(before, supervisor_deaths=(*before.supervisor_deaths, ended.supervisor_died_on))
    return Following(outcome, Decision.GANG, TaskState.PENDING, ended.reason, before)


def _after_running(running_s: float, before: Budgets) -> Budgets:
    if running_s < RESET_AFTER_S:
        return before
    forgiven = running_s >= FORGIVEN_AFTER_S
    return Budgets(preemptions=before.preemptions, supervisor_deaths=() if forgiven else before.supervisor_deaths)


def _completed(outcome: Outcome, ended: Ended, terms: Terms, budgets: Budgets) -> Following:
    if terms.restart_policy != "Always":
        return _final(outcome, ended.reason, budgets)
    after = replace(budgets, completions=budgets.completions + 1)
    return _retry(outcome, ended, after, _wait_s(after, terms), "nothing", 0)


def _failed(outcome: Outcome, ended: Ended, terms: Terms, budgets: Budgets) -> Following:
    spent, limit = budgets.failures, terms.max_restarts
    if spent >= limit:
        return _final(
            outcome, reasons.budget_spent(spent, limit, False, ended.reason) if limit else ended.reason, budgets
        )
    after = replace(budgets, failures=spent + 1)
    return _retry(outcome, ended, after, _wait_s(after, terms), "failures", spent + 1, limit)


def _lost(outcome: Outcome, ended: Ended, terms: Terms, budgets: Budgets) -> Following:
    if ended.supervisor_died_on:
        deaths = (*budgets.supervisor_deaths, ended.supervisor_died_on)
        budgets = replace(budgets, supervisor_deaths=deaths)
        if len(deaths) >= SUPERVISOR_DEATHS:
            return _final(outcome, reasons.supervisors_died(deaths, ended.reason), budgets, TaskState.FAILED)
    spent, limit = budgets.machine, terms.max_machine_restarts
    if spent >= limit:
        return _final(
            outcome, reasons.budget_spent(spent, limit, True, ended.reason) if limit else ended.reason, budgets
        )
    after = replace(budgets, machine=spent + 1)
    if _evictions(after) > terms.max_retries_preemption:
        return _final(outcome, _evictions_spent(ended, terms), budgets)
    return _retry(outcome, ended, after, _wait_s(after, terms), "machine", spent + 1, limit)


def _evicted(outcome: Outcome, ended: Ended, terms: Terms, budgets: Budgets) -> Following:
    after = replace(budgets, preemptions=budgets.preemptions + 1)
    if _evictions(after) > terms.max_retries_preemption:
        return _final(outcome, _evictions_spent(ended, terms), after, TaskState.PREEMPTED)
    return _retry(outcome, ended, after, 0.0, "preemptions", after.preemptions)


def _evictions(spent: Budgets) -> int:
    return spent.preemptions + spent.machine


def _evictions_spent(ended: Ended, terms: Terms) -> str:
    limit = terms.max_retries_preemption
    return reasons.evictions_spent(limit, limit, ended.reason) if limit else ended.reason


def _wait_s(spent: Budgets, terms: Terms) -> float:
    """Before the restart that is in `spent` already."""
    restarts = spent.failures + spent.machine + spent.completions
    return float(min(terms.backoff_s * 2 ** min(restarts - 1, 40), terms.max_backoff_s))


def _final(outcome: Outcome, reason: str, budgets: Budgets, state: TaskState | None = None) -> Following:
    return Following(outcome, Decision.FINAL, state or _STATE_OF[outcome], reason, budgets)


def _retry(
    outcome: Outcome, ended: Ended, budgets: Budgets, wait_s: float, budget: str, count: int, limit: int | None = None
) -> Following:
    restart = {"cause": ended.cause.value, "budget": budget, "count": count, "limit": limit}
    return Following(outcome, Decision.RETRY, TaskState.PENDING, ended.reason, budgets, wait_s, restart)
