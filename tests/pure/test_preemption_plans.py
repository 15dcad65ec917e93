"""Preemption from plan to plan: a hold first, then the eviction, then the preemptor. Nothing goes round for ever."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stado_like.job.ids import AttemptId, JobId
from stado_like.planning.board import Board, Member, Spot
from stado_like.planning.placement import place
from stado_like.planning.placing import Placing
from tests.builders_preemption import NOW, boards, emptied, job, next_of, preemptors, spot, starts, task, urgent
from tests.builders_worlds import board_of, carried_out, plan_of

SOME = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def step(board: Board) -> tuple[Board, Placing]:
    plan = place(board)
    return carried_out(board, plan), plan


def started(plan: Placing) -> list[str]:
    return [one.job.name for one in (*plan.placed, *plan.taken)]


def test_victims_that_end_apart_are_stopped_once_each_and_the_preemptor_runs() -> None:
    """Row: endless evict/re-admit loop: two victims end 30 s apart, one preemption each."""
    board = Board(NOW, (spot("a", 4, task("v1", 2), task("v2", 2)),), (urgent(4),))
    board, first = step(board)
    assert not first.evictions  # the hold is written, and obeyed before anybody is stopped
    board, told = step(board)
    assert [(one.attempt.job.name, one.reason) for one in told.evictions] == [
        ("v1", "Preempted by higher-priority work (urgent)"),
        ("v2", "Preempted by higher-priority work (urgent)"),
    ]
    board = next_of(board, {AttemptId(job("v1"), 0, 1)})
    board, waiting = step(board)
    assert not waiting.evictions
    assert not waiting.placed
    assert waiting.waiting[job("urgent")].reason == "Starting: waiting for 1 preempted worker(s) to stop"
    board = next_of(board, {AttemptId(job("v2"), 0, 1)})
    board, last = step(board)
    assert started(last) == ["urgent"]
    assert {one.name for one in last.waiting} == {"v1", "v2"}


def test_victim_that_completes_during_its_stop_lets_the_preemptor_start_at_once() -> None:
    """Row: preemptor stuck waiting for a victim already gone."""
    board = Board(NOW, (spot("a", 4, task("v", 4)),), (urgent(4),))
    for _ in range(2):
        board, plan = step(board)
    assert plan.evictions
    board, plan = step(next_of(board, {AttemptId(job("v"), 0, 1)}, back=False))
    assert started(plan) == ["urgent"]


def test_urgent_task_stops_a_whole_gang_and_is_named() -> None:
    """Row: gangs immune to preemption."""
    world = {
        "machines": {
            "a": {"cores": 8, "gpus": 2, "running": [{"job": "batch", "rank": 0, "gpus": 2, "gang": True}]},
            "b": {"cores": 8, "gpus": 2, "running": [{"job": "batch", "rank": 1, "gpus": 2, "gang": True}]},
        },
        "units": [{"job": "urgent", "gpus": 1, "priority": 10}],
    }
    board, plan = step(board_of(world))
    assert plan.waiting[job("urgent")].reason == "Preempting 2 lower-priority worker(s) of batch to start"
    _, plan = step(board)
    assert plan_of(plan)["evictions"] == [
        "batch-0 on a for urgent: Preempted by higher-priority work (urgent)",
        "batch-1 on b for urgent: Preempted by higher-priority work (urgent)",
    ]


@SOME
@given(boards(), st.data())
def test_everything_ends_whoever_preempts_whom(board: tuple[list[Spot], list[Spot]], data: st.DataObject) -> None:
    """No livelock, whatever ends when: each unit stops the same job once at the most, no two stop each other in turn,
    all work ends, and no room is ever given twice."""
    spots = tuple(replace(one, running=tuple(replace(t, capped=False, protected_until=0.0) for t in one.running))
                  for one in (*board[0], *board[1]))  # fmt: skip
    units = []
    for number in range(data.draw(st.integers(1, 4))):
        made, j = data.draw(preemptors()), job(f"new-{number}")
        members = tuple(Member(AttemptId(j, one.attempt.rank, 1), one.ask) for one in made.members)
        units.append(replace(made, job=j, members=members, created_ms=number + 1))
    now = Board(NOW, spots, tuple(unit for unit in units if starts(unit, emptied(spots))))
    whole = {one.machine.worker: one.machine for one in emptied(spots)}
    evicted: set[tuple[JobId, AttemptId]] = set()
    ages: dict[AttemptId, int] = {}
    for _ in range(200):
        now, plan = step(now)
        for told in plan.evictions:
            assert (told.for_job, told.attempt) not in evicted
            evicted.add((told.for_job, told.attempt))
        running = [one for each in now.spots for one in each.running]
        for each in now.spots:
            used = sum(one.ask.cpu_millis for one in each.running)
            assert used <= whole[each.machine.worker].free_cpu_millis
            assert each.machine.free_cpu_millis == whole[each.machine.worker].free_cpu_millis - used
        if not running and not now.units:
            break
        ends = set()
        for one in running:
            ages[one.attempt] = ages.get(one.attempt, 0) + 1
            longest = 3 if one.stopping else 6
            if ages[one.attempt] >= longest or data.draw(st.integers(0, 3)) == 0:
                ends.add(one.attempt)
        now = next_of(now, ends)
    assert not now.units, plan_of(plan)
    by_pair = [(preemptor, victim.job, victim.rank) for preemptor, victim in evicted]
    assert len(by_pair) == len(set(by_pair))
    pairs = {(preemptor, victim.job) for preemptor, victim in evicted}
    assert not any((victim, preemptor) in pairs for preemptor, victim in pairs)
