"""Claims in vain: many workers that look at one queue, and how many creates they lose to each other for a task.

`python -m tests.sim.contention` prints the figure for 32 workers and 1,000 tasks.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from stado_like.job import keys
from tests.sim.fault_store import Change
from tests.sim.fleet import Fleet
from tests.sim.host import POLL_S
from tests.sim.quiet import cluster, give, go

ENOUGH_S = 7200.0


@dataclass
class Creates:
    """Claims that were sent, `won` and `lost`, for so many `tasks`. One that is won after its task ended is in vain
    too."""

    tasks: int
    won: int = 0
    lost: int = 0

    def changed(self, change: Change) -> None:
        self.won += change.key.startswith(keys.RUNNING) and change.before is None and change.after is not None

    def refused(self, key: str, standing: bytes, sent: bytes) -> None:
        self.lost += key.startswith(keys.RUNNING) and standing != sent

    @property
    def wasted_per_task(self) -> float:
        return (self.won + self.lost - self.tasks) / self.tasks


def measure(workers: int, tasks: int, *, cores: int = 2, runs_s: float = 20.0, array: bool = False) -> Creates:
    """The queue is full when all workers meet it; then they run dry together. Their clocks are not in step."""
    creates = Creates(tasks)
    with cluster(hosts=workers, cores=cores, tick_every_s=30.0, apart_s=POLL_S) as fleet:
        fleet.shared.watchers.append(creates)
        _judge_little(fleet)
        go(fleet, 5.0)
        if array:
            give(fleet, "work", runs_s, array={"size": tasks})
        else:
            for n in range(tasks):
                give(fleet, f"work{n}", runs_s)
        began_s = fleet.world.now_s
        while len(fleet.judge.seen.ends) < tasks and fleet.world.now_s < began_s + ENOUGH_S:
            go(fleet, 60.0)
        assert len(fleet.judge.seen.ends) == tasks, f"{len(fleet.judge.seen.ends)} of {tasks} tasks ended"
    return creates


def _judge_little(fleet: Fleet) -> None:
    """The rules that look at every job after every change would take longer than all the rest."""
    fleet.judge.changed = fleet.judge.seen.note  # type: ignore[method-assign]


def main() -> int:
    for array in (False, True):
        began = time.monotonic()
        made = measure(32, 1000, array=array)
        what = "one array" if array else "jobs of one task"
        print(
            f"32 workers, 1000 tasks ({what}): {made.won + made.lost} creates, "
            f"{made.wasted_per_task:.3f} a task in vain; {time.monotonic() - began:.0f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
