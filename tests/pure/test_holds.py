"""Who may use room that is held for the head: what ends in time, fits beside it, is ahead of it, or is its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stado_like.job.hardware import Device
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Hold, Member, Running, Unit
from stado_like.planning.fit import Kept, Machine, taking
from stado_like.planning.holds import Passer, at_start, holds_for, in_one_order, kept_now, passes
from stado_like.planning.leaving import leaving
from tests.builders_worlds import at

GIB = 1 << 30
NOW = at("14:00")
BIG, SMALL = JobId("default", "big", 1), JobId("default", "small", 1)
MACHINE = Machine("m", "m", 8000, 32 * GIB, 4, 0)
OLD = Running(AttemptId(JobId("default", "old", 1), 0, 1), Ask(4000, GIB, 4), 0, at("13:00"), at("14:20"))
BUSY = taking(MACHINE, OLD.ask)
HOLD = Hold(BIG, "m", 6000, GIB, 2, priority=5, starts_at=at("14:20"), created_ms=10)


def small(cores: int = 1, gpus: int = 0, limit_s: int | None = None, **change: object) -> Passer:
    passer = Passer(SMALL, 5, 11, Ask(cores * 1000, GIB, gpus), limit_s)
    return replace(passer, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("who", "may"),
    [
        pytest.param(small(4, limit_s=20 * 60), True, id="ends when the head starts"),
        pytest.param(small(4, limit_s=20 * 60 + 1), False, id="ends a second later"),
        pytest.param(small(2), True, id="fits beside: 8 cores at the start, less 6"),
        pytest.param(small(3), False, id="one core too many beside"),
        pytest.param(small(2, gpus=2), True, id="GPUs beside: 4 at the start, less 2"),
        pytest.param(small(2, gpus=3), False, id="one GPU too many beside"),
        pytest.param(small(4, priority=6), True, id="higher priority"),
        pytest.param(small(4, created_ms=9), True, id="created earlier"),
        pytest.param(small(4, priority=4, created_ms=9), False, id="created earlier, lower priority"),
        pytest.param(small(4, job=BIG), True, id="the head itself"),
    ],
)
def test_who_passes_a_hold_with_a_known_start(who: Passer, may: bool) -> None:
    assert passes(HOLD, who, BUSY, (OLD,), NOW) is may


@pytest.mark.parametrize(
    ("who", "may"),
    [
        pytest.param(small(1, limit_s=1), False, id="however short: the head's whole room is kept"),
        pytest.param(small(1, job=BIG), True, id="the head itself"),
    ],
)
def test_without_a_known_start_nothing_passes_for_being_short(who: Passer, may: bool) -> None:
    assert passes(replace(HOLD, starts_at=0.0), who, BUSY, (OLD,), NOW) is may


def test_without_a_known_start_what_leaves_the_whole_room_alone_passes() -> None:
    """The head lacks GPUs only."""
    hold = replace(HOLD, cpu_millis=1000, starts_at=0.0)
    assert passes(hold, small(3), BUSY, (OLD,), NOW)
    assert not passes(hold, small(4), BUSY, (OLD,), NOW)


def test_nothing_passes_beside_a_whole_machine_and_no_whole_machine_beside_a_hold() -> None:
    assert not passes(replace(HOLD, whole=True), small(1), BUSY, (OLD,), NOW)
    exclusive = small(1, ask=Ask(1000, GIB, 0, exclusive=True))
    assert not passes(HOLD, exclusive, BUSY, (OLD,), NOW)


def test_where_gpus_differ_no_gpu_is_beside() -> None:
    """A hold says how many it needs, not which."""
    cards = tuple(Device(id=str(i), model="H100" if i else "L4") for i in range(4))
    mixed = replace(MACHINE, gpus=cards)
    assert not passes(HOLD, small(1, gpus=1), mixed, (), NOW)
    assert passes(HOLD, small(1), mixed, (), NOW)
    assert kept_now(HOLD, mixed, mixed).gpus == 4


def test_work_that_is_late_still_counts_as_ended_by_the_start() -> None:
    late = replace(OLD, ends_by=at("13:50"))
    assert at_start(HOLD, BUSY, (late,)).free_cpu_millis == 8000


def test_what_must_stay_free_now_is_the_hold_less_what_comes_back() -> None:
    then = at_start(HOLD, BUSY, (OLD,))
    assert kept_now(HOLD, BUSY, then) == Kept(cpu_millis=2000, memory_bytes=0, gpus=0)
    unknown = replace(HOLD, starts_at=0.0)
    assert kept_now(unknown, BUSY, at_start(unknown, BUSY, (OLD,))) == Kept(6000, GIB, 2)


def test_members_on_one_machine_share_a_hold_and_holds_have_one_order() -> None:
    members = tuple(Member(AttemptId(BIG, rank, 1), Ask(1000, GIB, 1)) for rank in range(3))
    unit = Unit(BIG, members, 5, 10)
    where = {members[0].attempt: "z", members[1].attempt: "a", members[2].attempt: "z"}
    machines = {name: replace(MACHINE, worker=name) for name in "az"}
    found = holds_for(unit, where, machines, NOW)
    assert [(one.worker, one.cpu_millis, one.gpus) for one in found] == [("a", 1000, 1), ("z", 2000, 2)]
    assert in_one_order(reversed(found)) == found


def test_share_of_a_machine_is_held_in_its_own_numbers() -> None:
    half = Ask(0, 0, 0, node_share=5000)
    unit = Unit(BIG, (Member(AttemptId(BIG, 0, 1), half),), 5, 10)
    machine = replace(MACHINE, total_cpu_millis=8000, total_memory_bytes=32 * GIB)
    (hold,) = holds_for(unit, {unit.members[0].attempt: "m"}, {"m": machine}, 0.0)
    assert (hold.cpu_millis, hold.memory_bytes) == (4000, 16 * GIB)


# ---- a machine when tasks are gone


def test_leaving_is_the_other_direction_of_taking() -> None:
    cards = tuple(Device(id=str(i), index=i) for i in range(2))
    machine = replace(MACHINE, gpus=cards, free_gpus=2, total_cpu_millis=8000, total_memory_bytes=32 * GIB)
    ask = Ask(1000, GIB, 1, exclusive=True, apart="default.big/", devices=("1",))
    task = replace(OLD, ask=ask)
    taken = taking(machine, ask)
    assert taken.free_gpus == 1 and taken.taken_whole
    assert leaving(taken, (task,)) == machine


def test_leaving_keeps_what_others_hold() -> None:
    mine, other = (replace(OLD, ask=Ask(1000, GIB, 0, apart=word)) for word in ("same", "same"))
    machine = taking(taking(MACHINE, mine.ask), other.ask)
    left = leaving(machine, (mine,), (other,))
    assert left.apart == {"same"} and left.running == 1 and left.free_cpu_millis == 7000
