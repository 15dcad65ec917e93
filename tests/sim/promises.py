"""Who passes the head of the queue does not delay it: a quiet cluster, jobs at random, every time limit true.

The checker reads what is promised in `state/holds.json`, and sees when the room is given to the head: it is held no
more. (Not when its process starts: a gang that was given its machines may meet one that has just claimed something by
itself, and is placed anew.) A promise counts when it has stood for two ticks: a worker that claims while the tick makes
its first one knows nothing of it yet. All jobs are of one priority: nothing that comes later has a right to the room.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

from stado_like.job import codec, keys
from stado_like.job.held_room import Holds
from stado_like.job.keys import JobId
from tests.sim.fault_store import Change
from tests.sim.fleet import Fleet
from tests.sim.quiet import cluster, give, go
from tests.sim.world import EPOCH_S

TICK_S = 5.0
STANDS_S = 2 * TICK_S + 1.0
GIVEN_WITHIN_S = 3 * TICK_S
"""After the moment that was promised: what is stopped at its limit has its grace, and a tick sees that it is gone."""
LAST_S = 6000.0
"""More than all jobs need one after the other."""
HOSTS, CORES, JOBS = 2, 4, 24


class Promises:
    """Watches a bucket: by job, the earliest start that it was promised and that stood."""

    def __init__(self, fleet: Fleet) -> None:
        self.made: dict[JobId, float] = {}
        self.kept: dict[JobId, float] = {}
        """When the job's room was given to it, or held no more for another reason."""
        self._world = fleet.world
        self._standing: dict[JobId, tuple[float, float]] = {}
        fleet.shared.watchers.append(self)

    def changed(self, change: Change) -> None:
        if change.key != keys.HOLDS or change.after is None:
            return
        said: defaultdict[JobId, float] = defaultdict(float)
        for hold in codec.decode(Holds, change.after, change.key).holds:
            said[JobId.parse(hold.job)] = hold.starts_at
        self.settle()
        now_s = self._world.now_s
        for j in self.made.keys() - said.keys():
            self.kept.setdefault(j, now_s)
        self._standing = {
            j: (at, self._standing[j][1] if j in self._standing and at <= self._standing[j][0] + 1.0 else now_s)
            for j, at in said.items()
            if at
        }

    def refused(self, key: str, standing: bytes | None, body: bytes) -> None:
        """No promise is made by a create."""

    def settle(self) -> None:
        """What has stood long enough counts from now on."""
        for j, (at, since) in self._standing.items():
            if self._world.now_s - since >= STANDS_S:
                self.made[j] = min(at, self.made.get(j, at))


def heads_start_when_they_were_told(seed: int) -> int:
    """Raises AssertionError where one did not. Returns how many promises were kept."""
    dice = random.Random(f"promises {seed}")
    with cluster(hosts=HOSTS, cores=CORES, tick_every_s=TICK_S) as fleet:
        go(fleet, 10.0)
        promises, given = Promises(fleet), []
        for number in range(JOBS):
            limit_s = dice.choice((60, 60, 120, 240, 400))
            runs_s = limit_s * dice.uniform(0.3, 0.95)
            gang = dice.random() < 0.2
            cores = dice.randint(1, 2 if gang else CORES)
            more: dict[str, Any] = {"tasks": 2, "start": "Gang"} if gang else {}
            if dice.random() < 0.9:
                more["template"] = {"time_limit_seconds": limit_s}
            given.append(give(fleet, f"job{number}", runs_s, cores=cores, **more))
            go(fleet, dice.choice((0.5, 5.0, 20.0, 60.0)))
        go(fleet, LAST_S)
        promises.settle()
        assert not [j for j in given if not any(one.job == j for one in fleet.judge.seen.starts)], "some never started"
        for j, told in promises.made.items():
            gave = promises.kept.get(j, fleet.world.now_s)
            assert gave <= told + GIVEN_WITHIN_S, (
                f"seed {seed}: {j} was told {told - EPOCH_S:.0f} s, and had no room before {gave - EPOCH_S:.0f} s"
            )
        return len(promises.made)


def heads_start_as_promised() -> None:
    assert sum(heads_start_when_they_were_told(seed) for seed in range(4)) >= 4, "hardly a promise was made"
