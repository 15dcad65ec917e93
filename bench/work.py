"""The workloads: /bin/true many times over, and one job at a time on an idle worker.

A rate counts from before the first submit to the store's own time of the last end record. On a directory that is the
end's modification time, read afterwards: waiting asks nothing of the store that would slow it down but a look for one
file. On S3, whose times are whole seconds, the wait itself is the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bench.cluster import Cluster, NotMeasured, until
from stado_like.ambient import REAL
from stado_like.handle import Job
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.store.protocol import ObjectStore

TRUE = ("/bin/true",)
CLOCK = ("/bin/date", "+%s%N")  # reads the clock within half a millisecond of its exec, and prints nanoseconds
TOGETHER_S = 120.0
ONE_S = 30.0


def singles(on: Cluster, name: str, n: int, *, poll_s: float = 0.005) -> float:
    """Jobs per second: `n` jobs of one task through one client."""
    began_s = REAL.wall_s()
    jobs = [on.client.submit(command=TRUE, name=f"{name}-{i}") for i in range(n)]
    return n / (_last_end(on, [keys.AttemptId(job.id, 0, 1) for job in jobs], poll_s) - began_s)


def array(on: Cluster, name: str, n: int, *, poll_s: float = 0.005) -> float:
    """Tasks per second: one job of `n` tasks."""
    began_s = REAL.wall_s()
    job = on.client.submit(command=TRUE, name=name, array=n)
    return n / (_last_end(on, [keys.AttemptId(job.id, rank, 1) for rank in range(n)], poll_s) - began_s)


def _last_end(on: Cluster, attempts: Sequence[AttemptId], poll_s: float) -> float:
    """UTC seconds of the last end record, once all are there. Raises `NotMeasured` for a task that did not complete
    in its first attempt: a rate of failures is no rate."""
    store = on.client.store
    for a in attempts:
        until(partial(_is_there, store, keys.end(a)), TOGETHER_S, f"{a} did not end", poll_s=poll_s)
    seen_s = REAL.wall_s()
    times = []
    for a in attempts:
        end = on.client.bucket.end(a)
        if end is None or end.exit_code != 0:
            raise NotMeasured(f"{a} ended otherwise than with exit 0: {end}")
        stat = store.head(keys.end(a))
        times.append(stat.last_modified if stat is not None else seen_s)
    return max(times) if on.url.startswith("file:") else seen_s


def _is_there(store: ObjectStore, key: str) -> bool:
    return store.head(key) is not None


def start_latency_ms(on: Cluster, name: str) -> float:
    """From just before the submit to the first instruction of the command, one job on an idle worker; waits until the
    worker has let go of it."""
    before_ns = int(REAL.wall_s() * 1e9)
    job = on.client.submit(command=CLOCK, name=name)
    ended(on, job)
    said = job.logs().strip()
    if not said.isdigit():
        raise NotMeasured(f"date printed {said!r}")
    return (int(said) - before_ns) / 1e6


def ended(on: Cluster, job: Job) -> None:
    a = keys.AttemptId(job.id, 0, 1)
    store = on.client.store
    until(lambda: store.head(keys.end(a)) is not None, ONE_S, f"{a} did not end", poll_s=0.02)
    until(lambda: store.head(keys.running(a)) is None, ONE_S, f"{a} was not settled", poll_s=0.02)
