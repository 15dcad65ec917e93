"""How an attempt ended -> what follows: the contract's table row by row, and no sequence of ends goes on for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.job import budget
from stado_like.job.budget import RESET_AFTER_S, Ended
from stado_like.job.records import Budgets
from stado_like.job.states import Cause, Decision, Outcome, TaskState
from stado_like.job.terms import Terms, terms_of

O, D, S = Outcome, Decision, TaskState  # noqa: E741


def terms(**changed: Any) -> Terms:
    document = {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}}}
    return replace(terms_of(document), **changed)


ONFAILURE, ALWAYS, NEVER = (terms(restart_policy=policy) for policy in ("OnFailure", "Always", "Never"))
ZERO = Budgets()
OWN, MACHINE, EVICTED = Budgets(failures=1), Budgets(machine=1), Budgets(preemptions=1)

ROWS: list[tuple[Cause, Terms, Outcome, Decision, TaskState, Budgets, float]] = [
    # ended because         policy     outcome      follows   state         spends   wait
    (Cause.NONE,         ONFAILURE, O.COMPLETED, D.FINAL, S.COMPLETED, ZERO,    0),
    (Cause.NONE,         NEVER,     O.COMPLETED, D.FINAL, S.COMPLETED, ZERO,    0),
    (Cause.NONE,         ALWAYS,    O.COMPLETED, D.RETRY, S.PENDING,   ZERO,    10),
    (Cause.FAILURE,      ONFAILURE, O.FAILED,    D.RETRY, S.PENDING,   OWN,     10),
    (Cause.FAILURE,      ALWAYS,    O.FAILED,    D.RETRY, S.PENDING,   OWN,     10),
    (Cause.FAILURE,      NEVER,     O.FAILED,    D.FINAL, S.FAILED,    ZERO,    0),
    (Cause.STALLED,      ONFAILURE, O.FAILED,    D.RETRY, S.PENDING,   OWN,     10),
    (Cause.STALLED,      NEVER,     O.FAILED,    D.FINAL, S.FAILED,    ZERO,    0),
    (Cause.MACHINE_LOST, ONFAILURE, O.DOWN,      D.RETRY, S.PENDING,   MACHINE, 10),
    (Cause.MACHINE_LOST, NEVER,     O.DOWN,      D.FINAL, S.DOWN,      ZERO,    0),
    (Cause.GPU_FAULT,    ONFAILURE, O.DOWN,      D.RETRY, S.PENDING,   MACHINE, 10),
    (Cause.GPU_FAULT,    NEVER,     O.DOWN,      D.FINAL, S.DOWN,      ZERO,    0),
    (Cause.UNDELIVERED,  ONFAILURE, O.DOWN,      D.RETRY, S.PENDING,   ZERO,    0),
    (Cause.UNDELIVERED,  NEVER,     O.DOWN,      D.RETRY, S.PENDING,   ZERO,    0),
    (Cause.PREEMPTED,    ONFAILURE, O.CANCELLED, D.RETRY, S.PENDING,   EVICTED, 0),
    (Cause.PREEMPTED,    NEVER,     O.CANCELLED, D.RETRY, S.PENDING,   EVICTED, 0),
    (Cause.MOVED,        NEVER,     O.CANCELLED, D.RETRY, S.PENDING,   EVICTED, 0),
    (Cause.GANG,         NEVER,     O.CANCELLED, D.RETRY, S.PENDING,   ZERO,    0),
    (Cause.BARRIER,      NEVER,     O.CANCELLED, D.RETRY, S.PENDING,   ZERO,    0),
    (Cause.REQUEUED,     NEVER,     O.CANCELLED, D.RETRY, S.PENDING,   ZERO,    0),
    (Cause.TIME_LIMIT,   ALWAYS,    O.CANCELLED, D.FINAL, S.FAILED,    ZERO,    0),
    (Cause.REQUESTED,    ALWAYS,    O.CANCELLED, D.FINAL, S.CANCELLED, ZERO,    0),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0].value or 'exit 0'} {row[1].restart_policy}" for row in ROWS])
def test_row_of_the_contract(row: tuple[Cause, Terms, Outcome, Decision, TaskState, Budgets, float]) -> None:
    cause, policy, outcome, decision, state, budgets, wait_s = row
    found = budget.decide(Ended(cause, "why"), policy, ZERO)
    assert (found.outcome, found.decision, found.state, found.budgets, found.wait_s) == (
        outcome, decision, state, budgets, wait_s,
    )  # fmt: skip
    assert found.reason == "why"


def test_every_cause_has_a_row() -> None:
    assert {row[0] for row in ROWS} == set(Cause) == set(budget.OUTCOME_OF)


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("policy", [ONFAILURE, ALWAYS, NEVER], ids=["OnFailure", "Always", "Never"])
def test_nothing_is_started_again_under_a_verdict(cause: Cause, policy: Terms) -> None:
    found = budget.decide(Ended(cause, "why"), policy, ZERO, over=True)
    assert found.decision is Decision.FINAL
    assert found.budgets == ZERO
    assert found.wait_s == 0


def test_spent_budget_says_how_much_and_the_last_reason() -> None:
    found = budget.decide(Ended(Cause.FAILURE, "Exited with code 1"), ONFAILURE, Budgets(failures=10))
    assert (found.decision, found.state) == (Decision.FINAL, TaskState.FAILED)
    assert found.reason == (
        "Retry budget exhausted after 10/10 restarts for its own failures; the last: Exited with code 1"
    )
    assert found.budgets == Budgets(failures=10)


def test_spent_machine_budget_is_down() -> None:
    found = budget.decide(Ended(Cause.MACHINE_LOST, "Machine lost"), ONFAILURE, Budgets(machine=20))
    assert (found.decision, found.outcome, found.state) == (Decision.FINAL, Outcome.DOWN, TaskState.DOWN)


def test_undelivered_is_never_charged_whatever_the_budgets() -> None:
    """Case: worker dies between claim and exec -> attempt costs 0."""
    spent = Budgets(failures=10, machine=20, preemptions=100)
    stingy = terms(max_restarts=0, max_machine_restarts=0)
    found = budget.decide(Ended(Cause.UNDELIVERED, "never started"), stingy, spent)
    assert (found.decision, found.budgets, found.wait_s) == (Decision.RETRY, spent, 0)


def test_last_preemption_ends_it_as_preempted() -> None:
    limited = terms(max_retries_preemption=3)
    found = budget.decide(Ended(Cause.PREEMPTED, "evicted"), limited, Budgets(preemptions=2, machine=1))
    assert (found.decision, found.state) == (Decision.FINAL, TaskState.PREEMPTED)
    before = budget.decide(Ended(Cause.PREEMPTED, "evicted"), limited, Budgets(preemptions=1, machine=1))
    assert before.decision is Decision.RETRY


def test_ten_minutes_of_running_reset_failures_and_machine_but_not_preemptions() -> None:
    spent = Budgets(failures=10, machine=20, preemptions=7)
    long = budget.decide(Ended(Cause.FAILURE, "why", running_s=RESET_AFTER_S), ONFAILURE, spent)
    assert (long.decision, long.budgets) == (Decision.RETRY, Budgets(failures=1, preemptions=7))
    assert long.wait_s == ONFAILURE.backoff_s
    short = budget.decide(Ended(Cause.FAILURE, "why", running_s=RESET_AFTER_S - 0.001), ONFAILURE, spent)
    assert short.decision is Decision.FINAL


def test_back_off_doubles_to_its_longest() -> None:
    waits = [
        budget.decide(Ended(Cause.FAILURE, "why"), terms(max_restarts=1000), Budgets(failures=failures)).wait_s
        for failures in (0, 1, 2, 3, 4, 5, 6, 999)
    ]
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_job_that_ends_its_worker_completes_when_the_worker_vanishes() -> None:
    found = budget.decide(Ended(Cause.MACHINE_LOST, "gone"), terms(terminates_agent=True), ZERO)
    assert (found.decision, found.outcome, found.state) == (Decision.FINAL, Outcome.COMPLETED, TaskState.COMPLETED)


SPENDING = (Cause.FAILURE, Cause.STALLED, Cause.MACHINE_LOST, Cause.GPU_FAULT, Cause.PREEMPTED, Cause.MOVED)
some_terms = st.builds(
    terms,
    restart_policy=st.sampled_from(("OnFailure", "Always", "Never")),
    max_restarts=st.integers(0, 4),
    max_machine_restarts=st.integers(0, 4),
    max_retries_preemption=st.integers(0, 6),
    backoff_s=st.integers(1, 400),
    max_backoff_s=st.integers(400, 1000),
)
ends = st.lists(st.tuples(st.sampled_from(Cause), st.sampled_from((0.0, 599.0, 601.0))), max_size=40)


@given(some_terms, ends)
def test_any_sequence_of_ends_keeps_budgets_within_limits(policy: Terms, sequence: list[tuple[Cause, float]]) -> None:
    budgets = ZERO
    for cause, running_s in sequence:
        before = budgets
        found = budget.decide(Ended(cause, "why", running_s=running_s), policy, before)
        budgets = found.budgets
        assert 0 <= budgets.failures <= policy.max_restarts
        assert 0 <= budgets.machine <= policy.max_machine_restarts
        assert before.preemptions <= budgets.preemptions <= policy.max_retries_preemption + 1
        assert 0 <= found.wait_s <= policy.max_backoff_s
        if running_s < RESET_AFTER_S:
            grown = (budgets.failures - before.failures) + (budgets.machine - before.machine)
            grown += budgets.preemptions - before.preemptions
            assert grown in (0, 1), "an end spends at most one restart of one budget"
        if found.decision is Decision.FINAL:
            assert found.state in (S.COMPLETED, S.FAILED, S.CANCELLED, S.DOWN, S.PREEMPTED)
            break
        assert found.state is S.PENDING


@given(some_terms, st.lists(st.sampled_from(SPENDING), min_size=60, max_size=60))
def test_ends_that_spend_come_to_an_end(policy: Terms, sequence: list[Cause]) -> None:
    """Case: every launch raises -> ends failed within the budget with the last cause."""
    budgets = ZERO
    most = policy.max_restarts + policy.max_machine_restarts + policy.max_retries_preemption + 1
    for count, cause in enumerate(sequence):
        assert count <= most
        found = budget.decide(Ended(cause, "why"), policy, budgets)
        if found.decision is Decision.FINAL:
            return
        budgets = found.budgets
    pytest.fail(f"still restarted after {len(sequence)} ends that spend")
