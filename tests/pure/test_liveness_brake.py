"""The brake: when most machines look dead at once, none is reaped for a while, and then only a few a minute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stado_like.job.records import Observed
from stado_like.planning.actions import BrakePulled
from stado_like.planning.liveness import judge
from stado_like.planning.world import Look, World
from tests.builders_tick import T0, TTL_S, armed, attempt, look, said, world

OLD = 2 * TTL_S + 15 + 1


def fleet(dead: int, alive: int, tasks: int = 1) -> tuple[Look, ...]:
    down = [look(attempt(f"d{i}-{t}"), worker=f"dead{i}", beat_age_s=OLD) for i in range(dead) for t in range(tasks)]
    up = [look(attempt(f"a{i}-{t}"), worker=f"live{i}", beat_age_s=1) for i in range(alive) for t in range(tasks)]
    return (*down, *up)


def braked(state: World, since_s: float, **more: float) -> World:
    observed = Observed(
        armed={str(one.attempt): armed(one, 2000) for one in state.looks if one.machine.startswith("dead")},
        brake_since=T0 - since_s,
        braked_at=T0 - 5,
        **more,  # type: ignore[arg-type]
    )
    return replace(state, observed=observed)


@pytest.mark.parametrize(
    ("dead", "alive", "pulled"),
    [
        (1, 0, False),
        (1, 1, False),
        (1, 9, False),
        (2, 0, True),
        (2, 1, True),
        (2, 2, False),
        (3, 2, True),
        (5, 5, False),
    ],
)
def test_more_than_half_and_at_least_two_pull_it(dead: int, alive: int, pulled: bool) -> None:
    judged = judge(world(*fleet(dead, alive), armed_s=TTL_S))
    assert (judged.brake is not None) is pulled
    assert len(judged.reaps) == (0 if pulled else dead)


def test_it_names_the_machines_and_begins_to_count() -> None:
    judged = judge(world(*fleet(3, 1), armed_s=TTL_S))
    assert judged.brake is not None
    assert judged.brake.machines == ("dead0", "dead1", "dead2") and judged.brake.of_machines == 4
    assert judged.brake.since == T0 and judged.brake.until == T0 + 600
    assert judged.remember is not None and judged.remember.observed.brake_since == T0


def test_reap_now_overrides_the_brake_and_not_the_arming() -> None:
    looks = fleet(3, 0)
    assert len(judge(world(*looks, armed_s=TTL_S), reap_now=True).reaps) == 3
    assert judge(world(*looks), reap_now=True).reaps == ()


def test_machine_that_still_broadcasts_does_not_look_dead() -> None:
    looks = fleet(2, 0)
    judged = judge(world(*looks, armed_s=TTL_S, broadcasts={"dead0": said("dead0")}))
    assert judged.brake is None and len(judged.reaps) == 2


def test_machine_with_one_living_task_does_not_look_dead() -> None:
    mixed = look(attempt("mixed"), worker="dead0", beat_age_s=1)
    judged = judge(world(*fleet(2, 0), mixed, armed_s=TTL_S))
    assert judged.brake is None and len(judged.reaps) == 2


@pytest.mark.parametrize(("since_s", "goes"), [(0, False), (599, False), (600, True)])
def test_it_delays_ten_minutes(since_s: float, goes: bool) -> None:
    judged = judge(braked(world(*fleet(3, 1)), since_s))
    assert bool(judged.reaps) is goes
    assert judged.brake is not None and judged.brake.since == T0 - since_s


@pytest.mark.parametrize(("since_s", "goes"), [(3 * TTL_S - 1, False), (3 * TTL_S, True)])
def test_it_delays_three_ttl_when_another_machine_is_heard(since_s: float, goes: bool) -> None:
    judged = judge(braked(world(*fleet(3, 1), broadcasts={"idle": said("idle")}), since_s))
    assert bool(judged.reaps) is goes


def test_failed_reads_start_the_ten_minutes_again() -> None:
    lost = look(attempt("lost"), worker="live0", unknown="timed out")
    judged = judge(braked(world(*fleet(3, 0), lost), 5000))
    assert judged.reaps == () and judged.brake is not None and judged.brake.since == T0


def test_five_a_minute_go_oldest_first() -> None:
    """Lost allocations stop being replaced, by the thousand: they go, a few a minute, and none is forgotten."""
    state = braked(world(*fleet(2, 0, tasks=10)), 700)
    first = judge(state)
    assert len(first.reaps) == 5 and first.brake is not None and first.brake.released == 5
    assert len(first.brake.attempts) == 15
    assert first.remember is not None and first.remember.observed.reaped_at == (T0,) * 5
    at_once = judge(replace(state, now=T0 + 30, observed=first.remember.observed))
    assert at_once.reaps == ()
    later = judge(replace(state, now=T0 + 60, observed=first.remember.observed))
    assert len(later.reaps) == 5


def test_a_tenth_of_many_goes_each_minute() -> None:
    judged = judge(braked(world(*fleet(4, 0, tasks=50)), 700))
    assert len(judged.reaps) == 20


def test_brake_lets_go_when_life_returns() -> None:
    state = braked(world(*fleet(1, 3)), 100)
    judged = judge(state)
    assert judged.brake is None and len(judged.reaps) == 1
    assert judged.remember is not None and judged.remember.observed.brake_since == 0.0


def test_unreadable_machine_counts_as_silent_for_the_brake() -> None:
    lost = look(attempt("lost"), worker="dead9", unknown="timed out")
    judged = judge(world(*fleet(1, 0), lost, armed_s=TTL_S))
    assert isinstance(judged.brake, BrakePulled) and judged.reaps == ()


def test_hours_in_which_no_tick_looked_count_five_minutes() -> None:
    """The coordinator was out for hours: its first tick finds an old brake, and lets nobody go for that."""
    state = braked(world(*fleet(3, 0)), 8100)
    judged = judge(replace(state, observed=replace(state.observed, braked_at=T0 - 8000)))
    assert judged.reaps == () and judged.brake is not None and judged.brake.until == T0 + 200
    assert judged.remember is not None and judged.remember.observed.braked_at == T0


def test_rare_ticks_still_let_them_go() -> None:
    """It delays, it does not forbid: with one tick an hour each counts five minutes."""
    state = braked(world(*fleet(3, 0)), 0)
    for hour in range(3):
        now = T0 + 3600 * hour
        judged = judge(replace(state, now=now))
        if judged.remember is not None:
            state = replace(state, observed=judged.remember.observed)
    assert len(judged.reaps) == 3
