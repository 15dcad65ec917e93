"""How long the pure plan takes at the sizes that are promised; one core, no store."""

from __future__ import annotations

import time

from bench.figures import Figure, Results
from bench.plans import board
from stado_like.planning.placement import place

SIZES = ((100, 10), (10_000, 1_000), (100_000, 5_000))


def name_of(tasks: int) -> str:
    return f"plan_{tasks}"


def measure(results: Results, tasks: int, machines: int) -> None:
    made = board(tasks, machines)
    began_s = time.process_time()
    place(made)
    took_s = time.process_time() - began_s
    figure = Figure(name_of(tasks), f"plan, {tasks:,} queued × {machines:,} machines, CPU time", "s", digits=3)
    results.add(figure, took_s)
