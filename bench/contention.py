"""Many workers at one queue: how many creates they lose to each other for a task, in the simulator, under its clock."""

from __future__ import annotations

from bench.figures import Figure, Results
from tests.sim.contention import measure

WORKERS, TASKS = 32, 320


def wasted(results: Results) -> None:
    figure = Figure(
        "contention", f"{WORKERS} workers, {TASKS} queued tasks: creates a task in vain (simulated)", "", digits=3
    )
    results.add(figure, measure(WORKERS, TASKS).wasted_per_task)
