"""How long one plan takes, by the size of the board: `python -m bench.plans`. One core, no store, no processes.

The boards look like a cluster that is in use: machines of two sizes, most of their room taken by running work of which
half has a time limit; queued work in a hundred sizes, some of it gangs, two workspaces with quotas. `different` gives
every task an ask of its own, which is the worst that sharing answers among equal asks can meet; `gangs` makes every job
one. What matters beside the seconds is how they grow: both numbers ten times as large should take ten times as long.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TypeVar

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Member, Quota, Running, Spot, Unit
from stado_like.planning.fit import Machine, taking
from stado_like.planning.placement import place

T = TypeVar("T")
GIB = 1 << 30
NOW = 1_791_374_400.0
SIZES = ((1_000, 100), (10_000, 1_000), (100_000, 5_000))
BOUNDS_S = {(10_000, 1_000): 1.0, (100_000, 5_000): 10.0}
BOUNDED = ("usual", "empty")
KINDS = ("usual", "empty", "different", "gangs")


class Dice:
    """Throws that are the same every time, on every machine (Knuth's MMIX generator)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def randrange(self, low: int, high: int | None = None) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        first, after = (0, low) if high is None else (low, high)
        return first + (self._state >> 33) % (after - first)

    def random(self) -> float:
        return self.randrange(1 << 30) / (1 << 30)

    def choice(self, among: Sequence[T]) -> T:
        return among[self.randrange(len(among))]


def board(tasks: int, machines: int, *, kind: str = "usual", seed: int = 1) -> Board:
    dice = Dice(seed)
    spots = tuple(_spot(i, dice, busy=kind != "empty") for i in range(machines))
    units, left, number = [], tasks, 0
    while left > 0:
        number += 1
        size = min(left, _members(dice, kind))
        units.append(_unit(number, size, dice, kind))
        left -= size
    quotas = {"small": Quota(gpus=machines // 10 + 1), "large": Quota(cpu_millis=machines * 16_000)}
    return Board(NOW, spots, tuple(units), quotas)


def _members(dice: Dice, kind: str) -> int:
    if kind == "gangs":
        return dice.choice((2, 4, 8, 16))
    return dice.choice((2, 4, 8)) if dice.random() < 0.02 else 1


def _spot(i: int, dice: Dice, *, busy: bool) -> Spot:
    gpus = 8 if i % 2 else 0
    labels = {"pool": f"p{i % 5}", "topology.stado.io/rack": f"r{i // 20}"}
    machine = Machine(f"m{i:05d}", f"m{i:05d}", 64_000, 256 * GIB, gpus, 0, labels=labels)
    running: list[Running] = []
    while busy and machine.free_cpu_millis >= 16_000:
        ask = Ask(dice.choice((4_000, 8_000, 16_000)), 16 * GIB, min(machine.free_gpus, dice.choice((0, 1, 2))))
        job = JobId(dice.choice(("small", "large", "free")), f"old-{i}-{len(running)}", 1)
        ends_by = NOW + dice.randrange(60, 86_400) if dice.random() < 0.5 else None
        running.append(Running(AttemptId(job, 0, 1), ask, 0, NOW - 600, ends_by))
        machine = taking(machine, ask)
        if dice.random() < 0.1:
            break
    return Spot(machine, tuple(running))


def _unit(number: int, size: int, dice: Dice, kind: str) -> Unit:
    job = JobId(dice.choice(("small", "large", "free")), f"job-{number}", 1)
    cores = number % 16_000 + 1 if kind == "different" else dice.choice((1, 2, 4, 8, 16)) * 1000
    labels = {"pool": f"p{dice.randrange(5)}"} if dice.random() < 0.1 else {}
    memory = dice.choice((1, 4, 16, 64)) * GIB
    ask = Ask(cores, memory, dice.choice((0, 0, 0, 1, 8)), labels=labels, apart=f"{job}/" if size > 1 else "")
    limit = dice.choice((600, 3600, 86_400)) if dice.random() < 0.3 else None
    members = tuple(Member(AttemptId(job, rank, 1), ask) for rank in range(size))
    priority = dice.choice((0, 0, 0, 5))
    return Unit(job, members, priority, number, placed_by_tick=size > 1, time_limit_s=limit)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.plans", description="How long one plan takes, by its size.")
    parser.add_argument("--largest", type=int, default=100_000, help="the most queued tasks")
    wanted = parser.parse_args(arguments)
    late = 0
    _say(f"{'queued':>8} {'machines':>9} {'board':>10} {'placed':>7} {'kept':>5} {'seconds':>8} {'us/task':>8}")
    for tasks, machines in SIZES:
        if tasks > wanted.largest:
            continue
        for kind in KINDS:
            made = board(tasks, machines, kind=kind)
            start = time.process_time()
            plan = place(made)
            took_s = time.process_time() - start
            placed = sum(len(one.where) for one in (*plan.placed, *plan.taken))
            bound_s = BOUNDS_S.get((tasks, machines)) if kind in BOUNDED else None
            over = bound_s is not None and took_s > bound_s
            late += over
            _say(
                f"{tasks:>8} {machines:>9} {kind:>10} {placed:>7} {len(plan.holds):>5} {took_s:>8.3f} "
                f"{took_s / tasks * 1e6:>8.1f}{f'  over its bound of {bound_s:g} s' if over else ''}"
            )
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
