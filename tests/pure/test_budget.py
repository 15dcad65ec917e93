"""How an attempt ended -> what follows: the contract's table row by row, and no sequence of ends goes on for ever."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.job import budget, reasons
from stado_like.job.budget import RESET_AFTER_S, Ended
from stado_like.job.records import Budgets
from stado_like.job.states import IRIS_VIEW, Cause, Decision, Outcome, TaskState
from stado_like.job.terms import Terms, terms_of

O, D, S = Outcome, Decision, TaskState  # noqa: E741


def terms(**changed: Any) -> Terms:
    document = {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}}}
    return replace(terms_of(document), **changed)


ONFAILURE, ALWAYS, NEVER = (terms(restart_policy=policy) for policy in ("OnFailure", "Always", "Never"))
ZERO = Budgets()
OWN, MACHINE, EVICTED = Budgets(failures=1), Budgets(machine=1), Budgets(preemptions=1)
AGAIN = Budgets(completions=1)

ROWS: list[tuple[Cause, Terms, Outcome, Decision, TaskState, Budgets, float]] = [
    # ended because         policy     outcome      follows   state         spends   wait
    (Cause.NONE,         ONFAILURE, O.COMPLETED, D.FINAL, S.COMPLETED, ZERO,    0),
    (Cause.NONE,         NEVER,     O.COMPLETED, D.FINAL, S.COMPLETED, ZERO,    0),
    (Cause.NONE,         ALWAYS,    O.COMPLETED, D.RETRY, S.PENDING,   AGAIN,   10),
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
    (Cause.UNSCHEDULABLE, ALWAYS,   O.CANCELLED, D.FINAL, S.UNSCHEDULABLE, ZERO, 0),
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
    assert (found.decision, found.state, found.outcome) == (Decision.FINAL, TaskState.PREEMPTED, Outcome.CANCELLED)
    assert found.reason == (
        "Retry budget exhausted after 3/3 restarts for preemptions and losses of its machine; the last: evicted"
    )
    before = budget.decide(Ended(Cause.PREEMPTED, "evicted"), limited, Budgets(preemptions=1, machine=1))
    assert before.decision is Decision.RETRY


def test_machine_lost_once_too_often_for_max_retries_preemption_is_down() -> None:
    """Lost and preempted attempts spend one allowance; what the task ends as says how the last one ended."""
    found = budget.decide(
        Ended(Cause.MACHINE_LOST, "gone"), terms(max_retries_preemption=3), Budgets(preemptions=2, machine=1)
    )
    assert (found.decision, found.state, found.outcome) == (Decision.FINAL, TaskState.DOWN, Outcome.DOWN)


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


def test_back_off_doubles_after_exit_0_and_over_all_that_waits_together() -> None:
    """A service that ends at once every time does not come back every ten seconds for ever; ten minutes forgive it."""
    waits, budgets = [], ZERO
    for cause in (Cause.NONE, Cause.NONE, Cause.FAILURE, Cause.NONE, Cause.MACHINE_LOST, Cause.NONE, Cause.NONE):
        found = budget.decide(Ended(cause, "why"), ALWAYS, budgets)
        budgets = found.budgets
        waits.append(found.wait_s)
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert budgets == Budgets(failures=1, machine=1, completions=5)
    rested = budget.decide(Ended(Cause.NONE, "why", running_s=RESET_AFTER_S), ALWAYS, budgets)
    assert (rested.budgets, rested.wait_s) == (Budgets(completions=1), 10)


def test_service_is_restarted_after_every_end_and_a_job_that_fails_as_one_after_none() -> None:
    document: dict[str, Any] = {"metadata": {"name": "t"}, "spec": {"task_template": {"command": "true"}}}
    service = terms_of({**document, "spec": {**document["spec"], "lifetime": "Service"}})
    assert budget.decide(Ended(Cause.NONE, "why"), service, ZERO).decision is Decision.RETRY
    together = terms_of({**document, "spec": {**document["spec"], "on_failure": "FailJob"}})
    for cause, decision in ((Cause.FAILURE, D.FINAL), (Cause.MACHINE_LOST, D.FINAL), (Cause.PREEMPTED, D.RETRY)):
        assert budget.decide(Ended(cause, "why"), together, ZERO).decision is decision


def died(worker: str = "w1", running_s: float = 0.0) -> Ended:
    return Ended(Cause.MACHINE_LOST, "its supervisor died", running_s, worker)


def test_task_under_which_three_supervisors_died_fails_and_says_where() -> None:
    budgets = ZERO
    for worker in ("w1", "w2"):
        found = budget.decide(died(worker), ONFAILURE, budgets)
        assert found.decision is Decision.RETRY
        budgets = found.budgets
    assert budgets == Budgets(machine=2, supervisor_deaths=("w1", "w2"))
    last = budget.decide(died("w1"), ONFAILURE, budgets)
    assert (last.decision, last.state, last.outcome) == (Decision.FINAL, TaskState.FAILED, Outcome.DOWN)
    assert last.reason == (
        "Failed: three supervisors died while running it, on w1, w2, whose machines lived on; "
        "the last: its supervisor died"
    )


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.REQUESTED])
def test_only_a_supervisor_that_died_counts_for_the_guard(cause: Cause) -> None:
    """Reclaims, drains, reboots and losses of machines never make a task a poisonous one."""
    before = Budgets(supervisor_deaths=("w1", "w2"))
    found = budget.decide(Ended(cause, "why"), ALWAYS, before)
    assert found.budgets.supervisor_deaths == ("w1", "w2")
    assert not found.reason.startswith("Failed: three")


def test_ten_minutes_do_not_forgive_deaths_and_a_day_does() -> None:
    before = Budgets(supervisor_deaths=("w1", "w2"))
    assert budget.decide(died(running_s=budget.FORGIVEN_AFTER_S - 1), ONFAILURE, before).state is TaskState.FAILED
    found = budget.decide(died(running_s=budget.FORGIVEN_AFTER_S), ONFAILURE, before)
    assert (found.decision, found.budgets) == (Decision.RETRY, Budgets(machine=1, supervisor_deaths=("w1",)))


def test_verdict_and_never_stand_before_the_guard() -> None:
    before = Budgets(supervisor_deaths=("w1", "w2"))
    for found in (budget.decide(died(), ONFAILURE, before, over=True), budget.decide(died(), NEVER, before)):
        assert (found.state, found.reason) == (TaskState.DOWN, "its supervisor died")


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
RAN = (0.0, 599.0, 601.0, 86_401.0)
ends = st.lists(
    st.builds(
        Ended,
        cause=st.sampled_from(Cause),
        reason=st.just("why"),
        running_s=st.sampled_from(RAN),
        supervisor_died_on=st.sampled_from(("", "w1", "w2")),
    ),
    max_size=40,
)


@given(some_terms, ends, st.booleans())
def test_any_sequence_of_ends_keeps_budgets_within_limits(policy: Terms, sequence: list[Ended], over: bool) -> None:
    budgets = ZERO
    for ended in sequence:
        before = budgets
        found = budget.decide(ended, policy, before, over=over)
        assert found == budget.decide(ended, policy, before, over=over), "two who end it must decide the same"
        budgets = found.budgets
        assert 0 <= budgets.failures <= policy.max_restarts
        assert 0 <= budgets.machine <= policy.max_machine_restarts
        assert before.preemptions <= budgets.preemptions <= policy.max_retries_preemption + 1
        assert len(budgets.supervisor_deaths) <= budget.SUPERVISOR_DEATHS
        assert 0 <= found.wait_s <= policy.max_backoff_s
        if ended.running_s < RESET_AFTER_S:
            grown = [
                now - then
                for now, then in (
                    (budgets.failures, before.failures),
                    (budgets.machine, before.machine),
                    (budgets.preemptions, before.preemptions),
                    (budgets.completions, before.completions),
                )
            ]
            assert sorted(grown) in ([0, 0, 0, 0], [0, 0, 0, 1]), "an end spends at most one restart of one budget"
        if found.decision is Decision.FINAL:
            assert found.state in (S.COMPLETED, S.FAILED, S.CANCELLED, S.DOWN, S.PREEMPTED, S.UNSCHEDULABLE)
            assert found.wait_s == 0 and found.restart is None
            break
        assert found.state is S.PENDING and not over
        assert found.restart is not None and found.restart["cause"] == ended.cause.value


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


class Iris:
    """The retry arithmetic of Iris, as its reference tells it: two counters, each compared after it was raised."""

    def __init__(self, max_retries_failure: int, max_retries_preemption: int) -> None:
        self.max_failure, self.max_preemption = max_retries_failure, max_retries_preemption
        self.failures = self.preemptions = 0

    def ends(self, attempt: str) -> str:
        """The task's state after an attempt in this state."""
        if attempt == "FAILED":
            self.failures += 1
            return "PENDING" if self.failures <= self.max_failure else attempt
        if attempt in ("WORKER_FAILED", "PREEMPTED"):
            self.preemptions += 1
            return "PENDING" if self.preemptions <= self.max_preemption else attempt
        return "PENDING" if attempt == "ASSIGNED" else attempt


IRIS_ATTEMPT = {
    Cause.FAILURE: "FAILED",
    Cause.MACHINE_LOST: "WORKER_FAILED",
    Cause.PREEMPTED: "PREEMPTED",
    Cause.MOVED: "PREEMPTED",
    Cause.UNDELIVERED: "ASSIGNED",
    Cause.NONE: "SUCCEEDED",
    Cause.REQUESTED: "KILLED",
}


@given(st.integers(0, 4), st.integers(0, 6), st.lists(st.sampled_from(sorted(IRIS_ATTEMPT)), max_size=30))
def test_a_job_in_the_words_of_iris_is_retried_as_iris_retries_it(
    failures: int, preemptions: int, sequence: list[Cause]
) -> None:
    """Its two words only, and no limit on machine losses that it does not have."""
    policy = terms(max_restarts=failures, max_retries_preemption=preemptions, max_machine_restarts=1000)
    iris, budgets = Iris(failures, preemptions), ZERO
    for cause in sequence:
        found = budget.decide(Ended(cause, "why"), policy, budgets)
        budgets = found.budgets
        view = IRIS_VIEW[found.state].name.removeprefix("TASK_STATE_")
        assert view == iris.ends(IRIS_ATTEMPT[cause])
        if found.decision is Decision.FINAL:
            return
        assert (budgets.failures, budgets.machine + budgets.preemptions) == (iris.failures, iris.preemptions)


def test_sentences_of_restarts_are_those_that_people_grep_for() -> None:
    assert reasons.restarted(True, 2, 10) == "Restarted by policy (restart 2/10)"
    assert reasons.restarted(False, 1, 20) == "Restarted after its machine was lost (restart 1 of 20)"
    assert reasons.restarted_after_gpu_fault(1, 20) == "Restarted after a GPU fault (restart 1 of 20)"
    assert reasons.restarted_after_stall(3, 10) == "Restarted after a stall (restart 3/10)"
    assert reasons.preempted("urgent") == "Preempted by higher-priority work (urgent)"
    assert reasons.queued_again("urgent") == "Preempted by urgent; queued again"
    assert reasons.moved_off("gpu-2", "it is being drained") == "Moved off machine gpu-2: it is being drained"
    assert reasons.gang_restart("train-3", "a GPU fault") == "Gang restart after train-3: a GPU fault"
    assert reasons.time_limit(7200) == "Exceeded its time limit of 2h"
