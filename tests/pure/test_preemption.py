"""Whom a plan stops for more urgent work: never an equal, never one that is protected, nobody in vain, whole gangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings

from stado_like.job.ids import AttemptId
from stado_like.planning.board import Near, Running, Spot, Unit
from stado_like.planning.preemption import victims
from tests.builders_preemption import NOW, boards, crowded, may_go, preemptors, spot, starts, task, urgent, without

SOME = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


MOST_RUNNING = 14
"""Of so many every set is tried."""


def names(found: Sequence[Running]) -> list[str]:
    return [f"{one.job.name}-{one.attempt.rank}" for one in found]


def chosen(unit: Unit, *spots: Spot) -> list[str]:
    found = victims(unit, spots, NOW)
    return names(found.victims) if found is not None else []


# ---- by hand


def test_fewest_are_stopped_though_more_lose_less_work() -> None:
    long, short = task("long", 4, running_at=NOW - 9000), [task(f"short-{i}", 2, running_at=NOW - 1) for i in range(2)]
    assert chosen(urgent(4), spot("a", 4, *short), spot("b", 4, long)) == ["long-0"]


def test_of_equally_many_the_least_work_is_lost() -> None:
    old, young = task("old", 4, running_at=NOW - 9000), task("young", 4, running_at=NOW - 60)
    assert chosen(urgent(4), spot("a", 4, old), spot("b", 4, young)) == ["young-0"]


def test_work_before_a_checkpoint_is_not_lost() -> None:
    saved, young = task("saved", 4, running_at=NOW - 9000, saved_at=NOW - 5), task("young", 4, running_at=NOW - 60)
    assert chosen(urgent(4), spot("a", 4, saved), spot("b", 4, young)) == ["saved-0"]


def test_room_that_is_coming_is_waited_for() -> None:
    """Row: preemptor stuck waiting for a victim already gone, seen from the other side: nobody goes twice."""
    leaves, stays = task("leaves", 4, stopping=True), task("stays", 4)
    found = victims(urgent(4), [spot("a", 4, stays), spot("b", 4, leaves)], NOW)
    assert found is not None
    assert (found.victims, set(found.where.values())) == ((), {"b"})


def test_gang_is_stopped_whole_also_where_the_unit_cannot_go() -> None:
    """Row: gangs immune to preemption."""
    gang = [task("batch", 2, rank=rank, gpus=1, gang=True) for rank in range(3)]
    far = spot("far", 2, gang[2], gpus=1)
    found = victims(urgent(1, gpus=1), [spot("a", 4, *gang[:2], gpus=2)], NOW, others=[far])
    assert found is not None
    assert names(found.victims) == ["batch-0", "batch-1", "batch-2"]


def test_single_tasks_go_before_a_gang() -> None:
    gang = [task("batch", 4, rank=rank, gang=True) for rank in range(2)]
    alone = task("alone", 4, running_at=NOW - 9000)
    assert chosen(urgent(4), spot("a", 4, gang[0]), spot("b", 4, gang[1]), spot("c", 4, alone)) == ["alone-0"]


def test_victims_of_a_gang_are_within_the_network_it_needs() -> None:
    """Row: gang split over two fabrics hangs."""
    near = Near(keep_within="rack")
    lone = spot("a", 4, task("x", 4), rack="r1")
    pair = [spot("b", 4, task("y", 4), rack="r2"), spot("c", 4, task("z", 4), rack="r2")]
    found = victims(urgent(4, tasks=2, near=near), [lone, *pair], NOW)
    assert found is not None
    assert (names(found.victims), set(found.where.values())) == (["y-0", "z-0"], {"b", "c"})


def test_whose_room_a_gang_makes_as_well_is_spared() -> None:
    """The gang goes for the sake of two machines, and then two single tasks are one too many."""
    gang = [task("batch", 1, rank=rank, gang=True) for rank in range(2)]
    short, long = task("short", 1, running_at=NOW - 5), task("long", 1)
    spots = [spot("p", 2, short, gang[0]), spot("q", 1, gang[1]), spot("r", 1, long)]
    assert chosen(urgent(1, tasks=3), *spots) == ["batch-0", "batch-1", "short-0"]


def test_many_small_tasks_on_one_machine_are_enough_and_none_too_many() -> None:
    small = [task(f"s{i:02}", 1, running_at=NOW - i) for i in range(64)]
    assert chosen(urgent(32), spot("a", 64, *small)) == [f"s{i:02}-0" for i in range(32)]


def test_minimum_runtime_protects_and_says_until_when() -> None:
    train = task("train", 4, protected_until=NOW + 1199)
    found = victims(urgent(4), [spot("a", 4, train)], NOW)
    assert found is not None
    assert (found.victims, found.protected) == ((), ("train: in its minimum runtime until 14:20 UTC",))
    assert chosen(urgent(4), spot("a", 4, replace(train, protected_until=NOW))) == ["train-0"]


def test_cap_protects_and_says_so() -> None:
    found = victims(urgent(4), [spot("a", 4, task("train", 4, capped=True))], NOW)
    assert found is not None
    assert found.protected == ("train: preempted as often as its run allows",)


def test_runs_of_another_workspace_are_not_named() -> None:
    found = victims(urgent(4), [spot("a", 4, task("secret", 4, workspace="other", capped=True))], NOW)
    assert found is not None
    assert found.protected == ("(a job in another namespace): preempted as often as its run allows",)


def test_one_protected_member_protects_its_gang() -> None:
    gang = [task("batch", 4, rank=0, gang=True), task("batch", 4, rank=1, gang=True, protected_until=NOW + 60)]
    found = victims(urgent(4), [spot("a", 4, gang[0])], NOW, others=[spot("far", 4, gang[1])])
    assert found is not None
    assert (found.victims, found.protected) == ((), ("batch: in its minimum runtime until 14:01 UTC",))


def test_protected_work_that_would_not_help_is_not_named() -> None:
    equal, train = task("equal", 3, priority=10), task("train", 1, capped=True)
    assert victims(urgent(4), [spot("a", 4, equal, train)], NOW) is None


@pytest.mark.parametrize("priority", [10, 11])
def test_equals_and_more_urgent_work_are_never_stopped(priority: int) -> None:
    """Row: same-band users evict each other."""
    assert victims(urgent(4), [spot("a", 4, task("other", 4, priority=priority))], NOW) is None


# ---- any board


@SOME
@given(boards(), preemptors())
def test_victims_are_lower_unprotected_whole_gangs_and_enough(board: tuple[list[Spot], list[Spot]], unit: Unit) -> None:
    spots, others = board
    found = victims(unit, spots, NOW, others=others)
    if found is None or not found.victims:
        return
    everyone = [one for each in (*spots, *others) for one in each.running]
    gone = {one.attempt for one in found.victims}
    allowed = may_go(unit, everyone)
    assert all(group <= gone or not group & gone for group in allowed)
    assert gone <= set().union(*allowed)
    assert starts(unit, without(spots, gone))
    assert set(found.where) == {member.attempt for member in unit.members}
    assert set(found.where.values()) <= {one.machine.worker for one in spots}


@SOME
@given(boards(), preemptors())
def test_nobody_is_stopped_in_vain(board: tuple[list[Spot], list[Spot]], unit: Unit) -> None:
    """Whoever of the victims stayed, the unit could not start; and where nobody is stopped, nobody's going would do."""
    spots, others = board
    found = victims(unit, spots, NOW, others=others)
    allowed = may_go(unit, [one for each in (*spots, *others) for one in each.running])
    if found is None or found.protected:
        assert not starts(unit, without(spots, set().union(*allowed)))
        return
    gone = {one.attempt for one in found.victims}
    for group in allowed:
        if group <= gone:
            assert not starts(unit, without(spots, gone - group))
    if not gone:
        assert starts(unit, without(spots, set()))


def no_cheaper_set_would_do(unit: Unit, spots: list[Spot], others: list[Spot]) -> None:
    """The fewest tasks, then the least work: against every set there is."""
    found = victims(unit, spots, NOW, others=others)
    if found is None or not found.victims:
        return
    everyone = {one.attempt: one for each in (*spots, *others) for one in each.running}
    allowed = may_go(unit, list(everyone.values()))

    def cost(gone: set[AttemptId]) -> tuple[int, float]:
        return len(gone), sum(NOW - everyone[one].running_at for one in gone)

    sets = (set().union(*groups) for size in range(len(allowed)) for groups in combinations(allowed, size + 1))
    taken = cost({one.attempt for one in found.victims})
    assert not any(starts(unit, without(spots, gone)) for gone in sets if cost(gone) < taken)


@SOME
@given(boards(), preemptors())
def test_no_cheaper_set_of_victims_would_do(board: tuple[list[Spot], list[Spot]], unit: Unit) -> None:
    no_cheaper_set_would_do(unit, *board)


@pytest.mark.parametrize("seed", range(8))
def test_no_cheaper_set_of_victims_would_do_on_crowded_machines(seed: int) -> None:
    """The guesses alone stop too much on one such board in seven."""
    for number in range(20):
        spots, unit = crowded(seed * 1000 + number)
        if sum(len(one.running) for one in spots) <= MOST_RUNNING:
            no_cheaper_set_would_do(unit, spots, [])


@SOME
@given(boards(), preemptors())
def test_order_of_machines_does_not_matter(board: tuple[list[Spot], list[Spot]], unit: Unit) -> None:
    spots, others = board
    turned = [replace(one, running=one.running[::-1]) for one in spots[::-1]]
    assert victims(unit, turned, NOW, others=others[::-1]) == victims(unit, spots, NOW, others=others)
