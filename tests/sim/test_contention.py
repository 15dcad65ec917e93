"""How much is claimed in vain where many workers look at one queue, and in which order one that is alone claims."""

from __future__ import annotations

from stado_like.job import keys
from stado_worker.crowd import Crowd
from tests.sim.ambient import Clocks, VirtualAmbient
from tests.sim.contention import measure
from tests.sim.world import World

CLASS = [keys.parse_entry(f"queued/open/1000.{n:013d}.default.j{n}.1.00000.000001.c1m1024g0.json") for n in range(40)]
URGENT = keys.parse_entry("queued/open/0990.0000000000009.default.u.1.00000.000001.c1m1024g0.json")


def test_few_creates_are_lost_to_other_workers() -> None:
    """Case: dozens of idle runners claim the same first entry. (32 workers and 1,000 tasks: `python -m
    tests.sim.contention`.)"""
    made = measure(8, 96, cores=2, runs_s=10.0)
    print(f"8 workers, 96 tasks: {made.wasted_per_task:.3f} creates a task in vain")
    assert made.wasted_per_task < 0.35, made


def test_worker_that_meets_no_other_keeps_to_the_queue() -> None:
    crowd = Crowd(_ambient(World(1)))
    for _ in range(20):
        assert crowd.order(CLASS) == CLASS
        crowd.won()


def test_who_loses_chooses_at_random_but_never_before_what_is_more_urgent() -> None:
    crowd = Crowd(_ambient(World(1)))
    crowd.lost()
    found = crowd.order([URGENT, *CLASS])
    assert found[0] == URGENT
    assert found[1:] != CLASS and sorted(found[1:], key=lambda one: one.order) == CLASS
    assert found[9:] == CLASS[8:], "only the first of the queue change places"


def test_order_of_the_queue_comes_back_with_time() -> None:
    world = World(1)
    crowd = Crowd(_ambient(world))
    for _ in range(3):
        crowd.lost()
    assert crowd.order(CLASS) != CLASS
    world.advance(11 * 60.0)
    assert crowd.order(CLASS) == CLASS


def _ambient(world: World) -> VirtualAmbient:
    return VirtualAmbient(world, "w1", Clocks(world, "w1"))
