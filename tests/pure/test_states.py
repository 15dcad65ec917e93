"""The life of a task: table and code are equal over the full product, every state is reachable, Iris's names hold."""

from __future__ import annotations

import itertools

import pytest

from stado_like.job.states import (
    ACTIVE_TASK,
    IRIS_VIEW,
    TABLE,
    TERMINAL_JOB,
    TERMINAL_TASK,
    Event,
    ImpossibleTransition,
    JobState,
    TaskState,
    Who,
    after,
)

EXPECTED = """
Pending       assign→Assigned  claim→Preparing  stopped→Cancelled  waited too long→Unschedulable
Assigned      withdrawn→Pending  claim→Preparing  stopped→Cancelled
Preparing     pull→Pulling  reach the barrier→ReadyToStart  start→Starting
              fail→Failed  ask to stop→Stopping  stopped→Cancelled  lost→Down
Pulling       reach the barrier→ReadyToStart  start→Starting
              fail→Failed  ask to stop→Stopping  stopped→Cancelled  lost→Down
ReadyToStart  start→Starting  fail→Failed  ask to stop→Stopping  stopped→Cancelled  lost→Down
Starting      run→Running  exit 0→Completed  fail→Failed  ask to stop→Stopping  stopped→Cancelled  lost→Down
Running       heartbeat→Running  heartbeat late→Stale  exit 0→Completed  fail→Failed
              ask to stop→Stopping  stopped→Cancelled  lost→Down
Stale         heartbeat→Running  exit 0→Completed  fail→Failed  ask to stop→Stopping  stopped→Cancelled  lost→Down
Stopping      stopped→Cancelled  exit 0→Completed  fail→Failed  lost→Down
Completed     retry→Pending
Failed        retry→Pending
Down          retry→Pending
Cancelled     retry→Pending  preempted for the last time→Preempted  its gang ended for good→CoschedFailed
Preempted
Unschedulable
CoschedFailed
"""


def _expected() -> dict[tuple[TaskState, Event], TaskState]:
    arrows: dict[tuple[TaskState, Event], TaskState] = {}
    state = TaskState.PENDING
    for line in EXPECTED.strip().splitlines():
        first, *rest = line.split("  ")
        if first:
            state = TaskState(first.strip())
        for one in rest:
            if one.strip():
                event, _, to = one.strip().partition("→")
                arrows[state, Event(event)] = TaskState(to)
    return arrows


@pytest.mark.parametrize(("state", "event"), list(itertools.product(TaskState, Event)))
def test_every_pair_is_an_arrow_or_impossible(state: TaskState, event: Event) -> None:
    expected = _expected().get((state, event))
    if expected is None:
        with pytest.raises(ImpossibleTransition, match=f"a task that is {state} cannot {event}"):
            after(state, event)
        assert (state, event) not in TABLE
    else:
        assert after(state, event) is expected
        assert TABLE[state, event].to is expected


def test_every_state_is_reachable_from_pending() -> None:
    reached = {TaskState.PENDING}
    while True:
        more = {arrow.to for (state, _), arrow in TABLE.items() if state in reached} | reached
        if more == reached:
            break
        reached = more
    assert reached == set(TaskState)


def test_every_event_is_used_and_every_writer_writes() -> None:
    assert {event for _, event in TABLE} == set(Event)
    assert {arrow.who for arrow in TABLE.values()} == set(Who)


def test_terminal_states_lead_nowhere_but_back_through_a_retry() -> None:
    for (state, event), arrow in TABLE.items():
        if state in TERMINAL_TASK:
            assert event is Event.RETRY or arrow.to in TERMINAL_TASK
    assert not TERMINAL_TASK & ACTIVE_TASK
    assert set(TaskState) - TERMINAL_TASK - ACTIVE_TASK == {TaskState.PENDING, TaskState.ASSIGNED}
    assert set(JobState) - TERMINAL_JOB == {JobState.PENDING, JobState.STARTING, JobState.RUNNING}


def test_only_a_reader_makes_a_task_stale() -> None:
    """Stale is how old a heartbeat looks; nobody writes it."""
    stale = [arrow.who for arrow in TABLE.values() if arrow.to is TaskState.STALE]
    assert stale == [Who.READER]


IRIS = {
    TaskState.PENDING: ("TASK_STATE_PENDING", 1, "pending"),
    TaskState.ASSIGNED: ("TASK_STATE_ASSIGNED", 9, "assigned"),
    TaskState.PREPARING: ("TASK_STATE_BUILDING", 2, "building"),
    TaskState.PULLING: ("TASK_STATE_BUILDING", 2, "building"),
    TaskState.READY_TO_START: ("TASK_STATE_BUILDING", 2, "building"),
    TaskState.STARTING: ("TASK_STATE_BUILDING", 2, "building"),
    TaskState.RUNNING: ("TASK_STATE_RUNNING", 3, "running"),
    TaskState.STALE: ("TASK_STATE_RUNNING", 3, "running"),
    TaskState.STOPPING: ("TASK_STATE_RUNNING", 3, "running"),
    TaskState.COMPLETED: ("TASK_STATE_SUCCEEDED", 4, "succeeded"),
    TaskState.FAILED: ("TASK_STATE_FAILED", 5, "failed"),
    TaskState.CANCELLED: ("TASK_STATE_KILLED", 6, "killed"),
    TaskState.DOWN: ("TASK_STATE_WORKER_FAILED", 7, "worker_failed"),
    TaskState.PREEMPTED: ("TASK_STATE_PREEMPTED", 10, "preempted"),
    TaskState.UNSCHEDULABLE: ("TASK_STATE_UNSCHEDULABLE", 8, "unschedulable"),
    TaskState.COSCHED_FAILED: ("TASK_STATE_COSCHED_FAILED", 11, "cosched_failed"),
}


@pytest.mark.parametrize("state", list(TaskState))
def test_iris_view(state: TaskState) -> None:
    view = IRIS_VIEW[state]
    assert (view.name, view.number, view.shown) == IRIS[state]
    assert len(view.colour) == 7 and view.colour.startswith("#")


def test_one_iris_state_has_one_number_and_one_colour() -> None:
    seen = {(view.name, view.number, view.colour) for view in IRIS_VIEW.values()}
    assert len(seen) == len({name for name, _, _ in seen}) == len({number for _, number, _ in seen})
