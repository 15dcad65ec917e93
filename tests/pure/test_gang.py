"""What follows the ends of a gang: one decision, charged once, the same whoever computes it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stado_like.job import gang, reasons
from stado_like.job.budget import OUTCOME_OF, Ended, Gang, decide
from stado_like.job.gang import MemberEnd
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, End
from stado_like.job.spec.validate import validate
from stado_like.job.states import Cause, Decision, TaskState
from stado_like.job.terms import Terms, terms_of

J = JobId("default", "train", 1)
AT = 1_800_000_000.0


def terms(tasks: int = 3, **spec: Any) -> Terms:
    task = {"command": "true", "requested_resources": {"node_selection": {"count": tasks, "mode": "Any"}}}
    task |= spec.pop("template", {})
    made = {"metadata": {"name": "train"}, "spec": {"start": "Gang", "task_template": task, **spec}}
    return terms_of(validate(made))


def ended(
    rank: int, cause: Cause, *, at: float = 0.0, ran_s: float = 1.0, alone: bool = False, job: Terms
) -> MemberEnd:
    """As whoever ends a member writes it."""
    reason = reasons.exited(0) if cause is Cause.NONE else cause.value
    following = decide(Ended(cause, reason, ran_s), job, Budgets(), gang=Gang.ALONE if alone else Gang.WHOLE)
    end = End(
        nonce="n",
        attempt="",
        outcome=OUTCOME_OF[cause],
        decision=following.decision,
        state=following.state,
        reason=following.reason,
        cause=cause,
        budgets=following.budgets,
        running_at=AT + at - ran_s,
        ended_at=AT + at,
    )
    return gang.member_end(job, AttemptId(J, rank, 1), end)


def follows(*causes: Cause, job: Terms | None = None, before: Budgets | None = None) -> gang.Whole:
    job = job or terms(len(causes))
    ends = [ended(rank, cause, at=rank, job=job) for rank, cause in enumerate(causes)]
    return gang.follows(job, ends, before or Budgets())


OK, FAILED, LOST, GPU = Cause.NONE, Cause.FAILURE, Cause.MACHINE_LOST, Cause.GPU_FAULT
STOPPED, EVICTED, MOVED, REQUEUED = Cause.GANG, Cause.PREEMPTED, Cause.MOVED, Cause.REQUEUED


@pytest.mark.parametrize(
    ("causes", "restarts", "spent"),
    [
        ((OK, OK, OK), False, (0, 0, 0)),
        ((OK, FAILED, STOPPED), True, (1, 0, 0)),
        ((FAILED, FAILED, FAILED), True, (1, 0, 0)),
        ((FAILED, LOST, FAILED), True, (0, 1, 0)),
        ((FAILED, GPU, STOPPED), True, (0, 1, 0)),
        ((EVICTED, EVICTED, EVICTED), True, (0, 0, 1)),
        ((EVICTED, FAILED, STOPPED), True, (0, 0, 1)),
        ((MOVED, STOPPED, FAILED), True, (0, 0, 1)),
        ((REQUEUED, STOPPED, STOPPED), True, (0, 0, 0)),
        ((Cause.BARRIER, Cause.BARRIER, Cause.BARRIER), True, (0, 0, 0)),
        ((Cause.UNDELIVERED, Cause.BARRIER, Cause.BARRIER), True, (0, 0, 0)),
        ((Cause.TIME_LIMIT, STOPPED, STOPPED), False, (0, 0, 0)),
        ((Cause.REQUESTED, STOPPED, FAILED), False, (0, 0, 0)),
    ],
)
def test_complete_set_is_charged_once_to_the_gravest(
    causes: tuple[Cause, ...], restarts: bool, spent: tuple[int, int, int]
) -> None:
    whole = follows(*causes)
    found = whole.budgets
    assert (whole.restart, (found.failures, found.machine, found.preemptions)) == (restarts, spent)


@pytest.mark.parametrize("causes", [(FAILED, LOST, STOPPED), (OK, FAILED, FAILED), (EVICTED, FAILED, MOVED)])
def test_order_in_which_ends_are_read_decides_nothing(causes: tuple[Cause, ...]) -> None:
    job = terms()
    ends = [ended(rank, cause, at=10 - rank, job=job) for rank, cause in enumerate(causes)]
    assert len({repr(gang.follows(job, order, Budgets())) for order in itertools.permutations(ends)}) == 1


def test_of_equals_the_first_to_end_is_charged() -> None:
    job = terms()
    ends = [ended(rank, FAILED, at=at, job=job) for rank, at in enumerate((5.0, 2.0, 9.0))]
    whole = gang.follows(job, ends, Budgets())
    assert whole.culprit is not None and whole.culprit.rank == 1
    assert whole.not_before == AT + 9 + 10


def test_back_off_doubles_with_what_the_gang_had_spent() -> None:
    assert follows(FAILED, STOPPED, before=Budgets(failures=2)).not_before == AT + 1 + 40


def test_budget_spent_ends_the_gang_and_says_what_was_left_of_whom() -> None:
    job = terms(2, template={"resilience": {"max_restarts": 1}})
    ends = [ended(0, STOPPED, job=job), ended(1, FAILED, job=job)]
    whole = gang.follows(job, ends, Budgets(failures=1))
    assert not whole.restart and "Retry budget exhausted after 1/1" in whole.reason
    left = [gang.as_ended(job, whole, one) for one in ends]
    assert [(one.decision, one.state) for one in left] == [
        (Decision.FINAL, TaskState.COSCHED_FAILED),
        (Decision.FINAL, TaskState.FAILED),
    ]
    assert gang.stop_reason(job, ends[1], ends, Budgets(failures=1)) == reasons.GANG_BUDGET_SPENT


def test_fail_job_restarts_nobody_and_says_so() -> None:
    job = terms(2, on_failure="FailJob")
    ends = [ended(0, FAILED, job=job), ended(1, STOPPED, job=job)]
    assert not gang.follows(job, ends, Budgets()).restart
    assert gang.stop_reason(job, ends[0], ends[:1], Budgets()) == "A worker failed, and the run fails on a failure"


def test_gpu_fault_is_named_to_the_others() -> None:
    job = terms(4)
    bad = ended(3, GPU, job=job)
    assert gang.stop_reason(job, bad, [bad], Budgets()) == "Gang restart after train-3: a GPU fault"


def test_ten_minutes_of_running_reset_what_was_spent() -> None:
    job = terms(2)
    ends = [ended(0, FAILED, ran_s=601.0, job=job), ended(1, STOPPED, job=job)]
    assert gang.follows(job, ends, Budgets(failures=9)).budgets.failures == 1


def test_member_that_restarts_alone_decides_itself_until_its_budget_is_spent() -> None:
    job = terms(2, on_failure="RestartTask")
    assert gang.restarts_alone(job, 1) and not gang.restarts_alone(job, 0)
    assert ended(1, FAILED, alone=True, job=job).end.decision is Decision.RETRY
    spent = terms(2, on_failure="RestartTask", template={"resilience": {"max_restarts": 0}})
    last = ended(1, FAILED, alone=True, job=spent)
    assert (last.end.decision, last.end.state) == (Decision.GANG, TaskState.FAILED)
    whole = gang.follows(spent, [ended(0, OK, job=spent), last], Budgets())
    assert not whole.restart and whole.culprit == last


def test_verdict_keeps_all_from_starting_again() -> None:
    job = terms(2)
    ends = [ended(0, FAILED, job=job), ended(1, STOPPED, job=job)]
    assert not gang.follows(job, ends, Budgets(), judged=True).restart


def test_service_starts_again_when_all_exited_0() -> None:
    job = terms(2, lifetime="Service")
    whole = gang.follows(job, [ended(rank, OK, job=job) for rank in (0, 1)], Budgets())
    assert whole.restart and whole.budgets.completions == 1


def test_wait_after_aborts_doubles_to_five_minutes() -> None:
    assert [gang.wait_after_aborts_s(n) for n in (0, 1, 2, 3, 6, 60)] == [0, 10, 20, 40, 300, 300]
