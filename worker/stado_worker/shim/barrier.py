"""The barrier of a gang, as one member's supervisor meets it: it says that it is ready, and waits for the one verdict.

    reached  →  create ready.<rank>.<n>  →  all ready? create go  →  read the verdict, once a second, or when nudged
             →  go: start, with the address where the members meet      abort: end, and nothing was started

The last to arrive opens it, as does whoever looks again after ten seconds; and whoever has waited for fifteen minutes
closes it. All requests are the I/O thread's; control asks only whether it is open.

The leader chooses a port that is free now, anew in each generation: a member that comes back never meets what listened
there before.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from stado_like.ambient import Ambient
from stado_like.bucket import gang, generations
from stado_like.bucket.bucket import Bucket
from stado_like.job import gang_keys, reasons
from stado_like.job.gang_records import Barrier, Ready
from stado_like.job.states import Cause
from stado_worker.shim.gang_told import meeting
from stado_worker.shim.life import Life
from stado_worker.shim.task import Read

POLL_S = 1.0
TRY_EVERY_S = 10.0
NEVER_S = float("inf")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


class GangBarrier:
    def __init__(
        self, read: Read, life: Life, bucket: Bucket, ambient: Ambient, port: Callable[[], int] = free_port
    ) -> None:
        self._read = read
        self._life = life
        self._bucket = bucket
        self._ambient = ambient
        self._port = port
        self._g = read.task.claim.generation
        self._reached_boot_s: float | None = None
        self._said = False
        self._due_s = self._try_s = 0.0
        self.opened: Barrier | None = None
        """The verdict that lets it start. Written once, by the I/O thread."""

    # ---- control's side

    def reached(self) -> None:
        """Set up: from now on this member waits."""
        if self._reached_boot_s is None:
            self._reached_boot_s = self._ambient.boot_s()

    def variables(self) -> dict[str, str]:
        """What the verdict tells the command."""
        assert self.opened is not None
        return meeting(self.opened)

    # ---- the I/O thread's

    def hurry(self) -> None:
        self._due_s = 0.0

    def step(self) -> float:
        """Ask for the verdict where that is due; when to come again, by the boot clock. Raises `StoreUnavailable`,
        `BadRecord`."""
        if self._reached_boot_s is None or self.opened is not None or self._life.stop is not None:
            return NEVER_S
        now_s = self._ambient.boot_s()
        if now_s < self._due_s:
            return self._due_s
        self._due_s = now_s + self._ambient.uniform(0.8, 1.2) * POLL_S
        verdict = self._ask(now_s)
        if verdict is None:
            return self._due_s
        if verdict.go and str(self._read.a) in verdict.attempts:  # guard: start on go
            self.opened = verdict
            self._life.wake_control()
        else:
            self._life.ask_stop(Cause.BARRIER, verdict.reason or reasons.BARRIER_TIMED_OUT)
        return NEVER_S

    def _ask(self, now_s: float) -> Barrier | None:
        j, worker = self._read.a.job, self._read.task.worker
        assert self._reached_boot_s is not None
        if not self._said:
            self._bucket.ensure(gang_keys.ready(self._read.a, self._g), self._ready())
            self._said = True
        if now_s - self._reached_boot_s > gang.BARRIER_WITHIN_S:
            return generations.close(self._bucket, j, self._g, reasons.BARRIER_TIMED_OUT, by=worker)
        if now_s >= self._try_s:
            self._try_s = now_s + self._ambient.uniform(0.8, 1.2) * TRY_EVERY_S
            return gang.try_go(self._bucket, j, self._g, worker)
        return generations.read_barrier(self._bucket, j, self._g)

    def _ready(self) -> Ready:
        task = self._read.task
        members = task.placement.members if task.placement is not None else ()
        ranks = [one.rank for one in members]
        first = self._read.terms.leader if self._read.terms.leader in ranks else min(ranks, default=-1)
        return Ready(
            nonce=self._bucket.token(),
            attempt=task.attempt,
            worker=task.worker,
            address=task.address or self._ambient.host,
            port=self._port() if self._read.a.rank == first else 0,
            at=self._bucket.now(),
        )
