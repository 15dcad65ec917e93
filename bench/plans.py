"""How long one plan takes, by the size of the board: `python -m bench.plans`. One core, no store, no processes.

The boards look like a cluster that is in use: machines of two sizes, most of their room taken by running work of which
half has a time limit; queued work in a hundred sizes, some of it gangs, two workspaces with quotas. The others are the
worst of one thing each: `different` gives every task an ask of its own, `gangs` makes every job one, `labels` asks for
many labels, `cards` describes every GPU, `rules` has gangs with rules about racks, `joins` adds tasks to runs that are
spread over racks, `avoid` has refusals, `urgent` preempts, `pinned` makes a head on every machine. What matters beside
the seconds is how they grow: both numbers ten times as large should take ten times as long.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from stado_like.job.hardware import Device, GpuKind
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Member, Near, Quota, Running, Spot, Unit
from stado_like.planning.fit import Machine, taking
from stado_like.planning.placement import place

T = TypeVar("T")
GIB = 1 << 30
NOW = 1_791_374_400.0
SIZES = ((1_000, 100), (10_000, 1_000), (100_000, 5_000))
BOUNDS_S = {(10_000, 1_000): 1.0, (100_000, 5_000): 10.0}
KINDS = ("usual", "empty", "different", "gangs", "labels", "cards", "rules", "joins", "avoid", "urgent", "pinned")
RACKS, PAIRS = 20, 8


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
    spots = tuple(_spot(i, dice, kind) for i in range(machines))
    units, left, number = [], tasks, 0
    while left > 0:
        number += 1
        size = min(left, _members(dice, kind))
        units.append(_unit(number, size, dice, kind, machines))
        left -= size
    quotas = {"small": Quota(gpus=machines // 10 + 1), "large": Quota(cpu_millis=machines * 16_000)}
    return Board(NOW, spots, tuple(units), quotas)


def _members(dice: Dice, kind: str) -> int:
    if kind in ("gangs", "rules"):
        return dice.choice((2, 4, 8, 16))
    if kind in ("joins", "pinned"):
        return 1
    return dice.choice((2, 4, 8)) if dice.random() < 0.02 else 1


def _spot(i: int, dice: Dice, kind: str) -> Spot:
    gpus = 8 if i % 2 else 0
    labels = {"pool": f"p{i % 5}", "topology.stado.io/rack": f"r{i // RACKS}"}
    if kind == "labels":
        labels |= {f"l{n}": str(dice.randrange(3)) for n in range(PAIRS)}
    cards = tuple(_card(i, index) for index in range(gpus)) if kind == "cards" else ()
    memory_bytes = 256 * GIB - dice.randrange(GIB)  # measured, so no two are equal
    machine = Machine(f"m{i:05d}", f"m{i:05d}", 64_000, memory_bytes, gpus, 0, labels=labels, gpus=cards)
    running: list[Running] = []
    while kind != "empty" and machine.free_cpu_millis >= 16_000:
        ask = Ask(dice.choice((4_000, 8_000, 16_000)), 16 * GIB, min(machine.free_gpus, dice.choice((0, 1, 2))))
        job = JobId(dice.choice(("small", "large", "free")), f"old-{i}-{len(running)}", 1)
        gang = kind == "urgent" and dice.random() < 0.3
        if gang or (kind == "joins" and dice.random() < 0.3):
            job = JobId("free", f"joined-{dice.randrange(100)}", 1)
        ends_by = NOW + dice.randrange(60, 86_400) if dice.random() < 0.5 else None
        priority = dice.randrange(4) if kind == "urgent" and not gang else 0
        attempt = AttemptId(job, i * 10 + len(running) if gang or kind == "joins" else 0, 1)
        running.append(Running(attempt, ask, priority, NOW - dice.randrange(6000), ends_by, gang=gang))
        machine = taking(machine, ask)
        if dice.random() < 0.1:
            break
    return Spot(machine, tuple(running))


def _card(i: int, index: int) -> Device:
    model = ("NVIDIA A100", "NVIDIA H100", "NVIDIA L40S")[i % 3]
    return Device(id=f"{i}-{index}", index=index, model=model, memory_bytes=(80, 80, 48)[i % 3] * GIB)


def _unit(number: int, size: int, dice: Dice, kind: str, machines: int) -> Unit:
    job = JobId(dice.choice(("small", "large", "free")), f"job-{number}", 1)
    cores = number % 16_000 + 1 if kind == "different" else dice.choice((1, 2, 4, 8, 16)) * 1000
    labels = {"pool": f"p{dice.randrange(5)}"} if dice.random() < 0.1 else {}
    if kind == "labels":
        labels = {f"l{n}": str(dice.randrange(3)) for n in range(PAIRS) if dice.random() < 0.3}
    memory = dice.choice((1, 4, 16, 64)) * GIB
    gpus = dice.choice((0, 0, 0, 1, 8))
    ask = Ask(cores, memory, gpus, labels=labels, apart=f"{job}/" if size > 1 else "")
    limit = dice.choice((600, 3600, 86_400)) if dice.random() < 0.3 else None
    near, avoid = Near(), frozenset[str]()
    if kind == "cards" and gpus:
        ask = replace(ask, gpu_kind=dice.choice((GpuKind(), GpuKind(models=("H100",)), GpuKind(min_memory_gb=80))))
    elif kind == "rules":
        near = dice.choice((Near(keep_within="rack"), Near(spread="rack"), Near(min_nodes=2), Near(patience_s=60)))
    elif kind == "joins":
        job, near = JobId("free", f"joined-{dice.randrange(100)}", 1), Near(keep_within="rack")
    elif kind == "avoid":
        avoid = frozenset(f"m{dice.randrange(machines):05d}" for _ in range(3))
    elif kind == "pinned":
        ask = replace(ask, pinned_host=f"m{dice.randrange(machines):05d}")
    members = tuple(Member(AttemptId(job, 1_000_000 * (kind == "joins") + number + n, 1), ask) for n in range(size))
    priority = 0 if kind == "joins" else dice.choice((0, 0, 0, 5))
    return Unit(
        job, members, priority, number,
        placed_by_tick=size > 1, near=near, time_limit_s=limit, waiting_since=NOW - 30, avoid=avoid,
    )  # fmt: skip


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.plans", description="How long one plan takes, by its size.")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which boards")
    parser.add_argument("--largest", type=int, default=100_000, help="the most queued tasks")
    wanted = parser.parse_args(arguments)
    late = 0
    _say(f"{'queued':>8} {'machines':>9} {'board':>10} {'placed':>7} {'kept':>5} {'seconds':>8} {'us/task':>8}")
    for tasks, machines in SIZES:
        if tasks > wanted.largest:
            continue
        for kind in wanted.kinds.split(","):
            made = board(tasks, machines, kind=kind)
            start = time.process_time()
            plan = place(made)
            took_s = time.process_time() - start
            placed = sum(len(one.where) for one in (*plan.placed, *plan.taken))
            bound_s = BOUNDS_S.get((tasks, machines))
            over = bound_s is not None and took_s > bound_s
            late += over
            _say(
                f"{tasks:>8} {machines:>9} {kind:>10} {placed:>7} {len(plan.holds):>5} {took_s:>8.3f} "
                f"{took_s / tasks * 1e6:>8.1f}{f'  over its bound of {bound_s:g} s' if over else ''}"
            )
    return 1 if late else 0


if __name__ == "__main__":
    raise SystemExit(main())
