"""The workloads: /bin/true many times over, and one job at a time on an idle worker.

A rate of single jobs counts from before the first submit to the store's own time of the last end record. On a directory
that is the end's modification time, read afterwards: waiting asks nothing of the store that would slow it down but a
look for one file. On S3, whose times are whole seconds, the wait itself is the clock.
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
TOGETHER_S = 300.0
ONE_S = 30.0


def singles(on: Cluster, name: str, n: int, *, poll_s: float = 0.005) -> float:
    """Jobs per second: `n` jobs of one task through one client."""
    began_s = REAL.wall_s()
    jobs = [on.client.submit(command=TRUE, name=f"{name}-{i}") for i in range(n)]
    return n / (_last_end(on, [keys.AttemptId(job.id, 0, 1) for job in jobs], poll_s) - began_s)


def array(on: Cluster, name: str, n: int, *, poll_s: float = 0.01) -> float:
    """Tasks per second: one job of `n` tasks. The clock stops when nothing of it is queued or held any more, so that
    it does not matter in which records the ends are kept. Raises `NotMeasured` unless the job is Completed then."""
    store = on.client.store
    began_s = REAL.boot_s()
    job = on.client.submit(command=TRUE, name=name, array=n)
    while True:
        until(lambda: _is_empty(store, keys.QUEUED_OPEN, keys.RUNNING), TOGETHER_S, f"{name}: {n} tasks", poll_s=poll_s)
        took_s = REAL.boot_s() - began_s
        if all(task.is_over for task in job.view().tasks):
            break  # else the two looks fell between a claim that went and its successor's entry
    state = job.wait(ONE_S)
    if state != "Completed":
        raise NotMeasured(f"{name} is {state}: {job.view().reason}")
    return n / took_s


def _is_empty(store: ObjectStore, *prefixes: str) -> bool:
    return not any(store.list(prefix, limit=1).rows for prefix in prefixes)


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
