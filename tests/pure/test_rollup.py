"""Tasks' states -> the job's: our order, and Iris's beside it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stado_like.job import rollup
from stado_like.job.rollup import Rolled, TaskEnd
from stado_like.job.states import ACTIVE_TASK, TERMINAL_JOB, TERMINAL_TASK, JobState, TaskState
from stado_like.job.terms import Terms, terms_of

S, J = TaskState, JobState


def terms(tasks: int = 3, **spec: Any) -> Terms:
    array = {"array": {"size": tasks}} if tasks > 1 else {}
    return terms_of({"metadata": {"name": "train"}, "spec": {"task_template": {"command": "x"}, **array, **spec}})


def ends(*states: TaskState, **more: Any) -> list[TaskEnd]:
    return [TaskEnd(rank, f"train-{rank}", state, f"why {rank}", "m1", **more) for rank, state in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "state", "reason"),
    [
        ((S.COMPLETED,) * 3, J.COMPLETED, "All workers completed"),
        ((S.COMPLETED, S.FAILED, S.COMPLETED), J.FAILED, "Worker train-1 failed on m1: why 1"),
        (
            (S.FAILED, S.FAILED, S.CANCELLED),
            J.FAILED,
            "2 of 3 workers failed; the first: Worker train-0 failed on m1: why 0",
        ),
        ((S.COMPLETED, S.DOWN, S.CANCELLED), J.FAILED, "Worker train-1 was lost on m1: why 1"),
        ((S.PREEMPTED, S.COMPLETED, S.COMPLETED), J.FAILED, "Worker train-0 was lost on m1: why 0"),
        ((S.COMPLETED, S.CANCELLED, S.COMPLETED), J.CANCELLED, "All workers ended; some were cancelled"),
        ((S.COMPLETED, S.UNSCHEDULABLE, S.CANCELLED), J.UNSCHEDULABLE, "why 1"),
    ],
)
def test_over(states: tuple[TaskState, ...], state: JobState, reason: str) -> None:
    assert rollup.over(terms(), ends(*states)) == Rolled(state, reason)


def test_one_task_says_why_it_was_cancelled() -> None:
    assert rollup.over(terms(1), ends(S.CANCELLED)) == Rolled(J.CANCELLED, "why 0")


def test_past_its_time_limit_is_worded_so() -> None:
    found = rollup.over(terms(1), ends(S.FAILED, overran=True))
    assert found == Rolled(J.FAILED, "Worker train-0: why 0")


def test_failures_up_to_the_limit_are_allowed() -> None:
    allowing = terms(max_task_failures=1)
    assert rollup.over(allowing, ends(S.FAILED, S.COMPLETED, S.COMPLETED)).state is J.COMPLETED
    assert rollup.over(allowing, ends(S.FAILED, S.FAILED, S.COMPLETED)).state is J.FAILED
    assert rollup.early(allowing, ends(S.FAILED)) is None
    assert rollup.early(allowing, ends(S.FAILED, S.FAILED)) is not None


@pytest.mark.parametrize(
    ("spec", "overran", "stops"),
    [
        ({}, False, ""),
        ({"on_failure": "FailJob"}, False, "A worker failed, and the run fails on a failure"),
        ({}, True, "A worker exceeded its time limit"),
        ({"on_failure": "FailJob"}, True, "A worker exceeded its time limit"),
    ],
)
def test_who_is_stopped_by_a_failure_hears_why(spec: dict[str, Any], overran: bool, stops: str) -> None:
    found = rollup.early(terms(**spec), ends(S.FAILED, overran=overran))
    assert found is not None and (found.state, found.stops) == (J.FAILED, stops)


def test_one_that_waited_too_long_decides_for_all() -> None:
    assert rollup.early(terms(), ends(S.UNSCHEDULABLE)) == Rolled(J.UNSCHEDULABLE, "why 0")


def test_a_stopped_or_lost_task_decides_nothing_before_the_others_ended() -> None:
    assert rollup.early(terms(), ends(S.CANCELLED, S.DOWN)) is None


def _finishing(tasks: int = 1, **spec: Any) -> Terms:
    """Ranks 0 and 1 serve; the run is over with the group `work`, which follows them."""

    def template(count: int) -> dict[str, Any]:
        asked = {"node_selection": {"mode": "Any", "count": count}} if count > 1 else {}
        return {"command": "x", "requested_resources": asked}

    groups = [
        {"name": "serve", "task_template": template(2)},
        {"name": "work", "task_template": template(tasks)},
    ]
    return terms_of({"metadata": {"name": "train"}, "spec": {"task_groups": groups, "complete_with": "work", **spec}})


def _end(rank: int, state: TaskState, name: str = "") -> TaskEnd:
    return TaskEnd(rank, name or f"train-{rank}", state, "why", "m1")


def test_complete_with_its_group_the_run_is() -> None:
    of_two = _finishing(tasks=2)
    assert rollup.early(of_two, [_end(2, S.COMPLETED)]) is None
    found = rollup.early(of_two, [_end(2, S.COMPLETED), _end(3, S.COMPLETED)])
    assert found == Rolled(J.COMPLETED, "Worker group work completed")
    assert rollup.early(of_two, [_end(0, S.COMPLETED), _end(1, S.COMPLETED)]) is None, "the others complete nothing"
    every = [_end(0, S.CANCELLED), _end(1, S.CANCELLED), _end(2, S.COMPLETED), _end(3, S.COMPLETED)]
    assert rollup.over(of_two, every) == Rolled(J.COMPLETED, "Worker group work completed")


@pytest.mark.parametrize("state", [S.FAILED, S.DOWN])
def test_without_a_serving_group_it_cannot_finish(state: TaskState) -> None:
    found = rollup.early(_finishing(max_task_failures=3), [_end(1, state, "train-serve-1")])
    verb = "failed" if state is S.FAILED else "was lost"
    assert found == Rolled(
        J.FAILED, f"Worker train-serve-1 {verb} on m1: why; worker group work cannot finish without it"
    )


def test_group_that_cannot_complete_any_more_ends_the_run_too() -> None:
    assert rollup.early(_finishing(), [_end(2, S.FAILED)]) == Rolled(J.FAILED, "Worker train-2 failed on m1: why")
    assert rollup.early(_finishing(), [_end(2, S.DOWN)]) == Rolled(J.FAILED, "Worker train-2 was lost on m1: why")
    stopped = rollup.early(_finishing(), [_end(2, S.CANCELLED)])
    assert stopped == Rolled(J.CANCELLED, "All workers ended; some were cancelled")


@pytest.mark.parametrize("state", sorted(TERMINAL_TASK))
def test_over_is_terminal_for_every_end(state: TaskState) -> None:
    assert rollup.over(terms(1), ends(state)).state in TERMINAL_JOB


@pytest.mark.parametrize(
    ("states", "state", "reason"),
    [
        ((S.RUNNING, S.PENDING, S.COMPLETED), J.RUNNING, "1 of 3 workers running"),
        ((S.STALE, S.STOPPING, S.RUNNING), J.RUNNING, "3 of 3 workers running"),
        ((S.PREPARING, S.PENDING, S.PENDING), J.PENDING, "Waiting for workers to start"),
        ((S.PENDING, S.PENDING, S.PENDING), J.PENDING, "because"),
    ],
)
def test_going(states: tuple[TaskState, ...], state: JobState, reason: str) -> None:
    assert rollup.going(terms(), Counter(states), "because") == Rolled(state, reason)


def test_a_service_serves() -> None:
    serving = terms(1, lifetime="Service")
    assert rollup.going(serving, Counter([S.RUNNING]), "") == Rolled(J.RUNNING, "1 of 1 workers serving")


@pytest.mark.parametrize("state", sorted(set(TaskState) - TERMINAL_TASK))
def test_going_is_never_terminal(state: TaskState) -> None:
    assert rollup.going(terms(1), Counter([state]), "").state not in TERMINAL_JOB


@pytest.mark.parametrize(
    ("states", "iris"),
    [
        ((S.COMPLETED,) * 3, "JOB_STATE_SUCCEEDED"),
        ((S.COMPLETED, S.FAILED, S.RUNNING), "JOB_STATE_FAILED"),
        ((S.RUNNING, S.UNSCHEDULABLE, S.CANCELLED), "JOB_STATE_UNSCHEDULABLE"),
        ((S.RUNNING, S.CANCELLED, S.COMPLETED), "JOB_STATE_KILLED"),
        ((S.DOWN, S.COMPLETED, S.PREEMPTED), "JOB_STATE_WORKER_FAILED"),
        ((S.DOWN, S.RUNNING, S.COMPLETED), "JOB_STATE_RUNNING"),
        ((S.ASSIGNED, S.PENDING, S.PENDING), "JOB_STATE_RUNNING"),
        ((S.PENDING, S.PENDING, S.COMPLETED), "JOB_STATE_PENDING"),
    ],
)
def test_iris_state_in_its_order(states: tuple[TaskState, ...], iris: str) -> None:
    assert rollup.iris_job_state(terms(), Counter(states)) == iris


def test_every_active_state_is_running_for_iris() -> None:
    for state in ACTIVE_TASK:
        assert rollup.iris_job_state(terms(1), Counter([state])) == "JOB_STATE_RUNNING"
