"""stado's own figures: jobs per second and the time to the first instruction, with the floors they stand on."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from bench import work
from bench.cluster import Cluster, NotMeasured, cluster
from bench.figures import Figure, Results, percentile
from stado_like.ambient import REAL
from stado_like.store.protocol import ObjectStore
from tests import servers

SPAWN = Figure("spawn", "posix_spawn of /bin/true, 2 slots", "/s")
POPEN = Figure("popen", "Popen + session + log file, 2 slots", "/s")
FORK = Figure("fork", "fork of a warm Python, 2 slots", "/s")
FILES = Figure("files", "create + unlink, memory", "/s")
DISK_FILES = Figure("disk_files", "create + unlink, disk", "/s")
SYNCED = Figure("synced", "create + fsync + fsync of directory + unlink, disk", "/s")
DATE = Figure("date", "Popen of date to its first instruction, p50", "ms", digits=2)
PUTS = Figure("puts", "SeaweedFS: create, read, one after the other, one client", "requests/s")

SINGLES = Figure("singles", "stado: single jobs, directory in memory, no fsync", "jobs/s", "popen")
MANY = Figure("many", "stado: 5,000 single jobs, directory in memory, no fsync", "jobs/s", "popen")
ARRAY = Figure("array", "stado: one array, directory in memory, no fsync", "tasks/s", "popen")
DISK_SINGLES = Figure(
    "disk_singles", "stado: single jobs, directory on disk, every deciding record synced", "jobs/s", "synced"
)
DISK_ARRAY = Figure(
    "disk_array", "stado: one array, directory on disk, every deciding record synced", "tasks/s", "synced"
)
P50 = Figure("start_p50", "stado: submit to first instruction, idle worker, p50", "ms", "date", digits=1)
P95 = Figure("start_p95", "stado: submit to first instruction, idle worker, p95", "ms", "date", digits=1)
COLD = Figure("start_cold", "stado: the same, first job after 6 s of rest", "ms", "date", digits=1)
S3_SINGLES = Figure("s3_singles", "stado: single jobs, SeaweedFS", "jobs/s", "puts")
S3_ARRAY = Figure("s3_array", "stado: one array, SeaweedFS", "tasks/s", "puts")
S3_P50 = Figure("s3_start_p50", "stado: submit to first instruction, idle, SeaweedFS, p50", "ms", "date", digits=1)
S3_P95 = Figure("s3_start_p95", "stado: submit to first instruction, idle, SeaweedFS, p95", "ms", "date", digits=1)

SETTLE_S = 6.0  # warm supervisors are let go after 5


def floors(results: Results, place: Path, n: int, *, disk: bool) -> None:
    if disk:
        results.add(DISK_FILES, _floor("files", n, place))
        results.add(SYNCED, _floor("synced", max(50, n // 5), place))
        return
    for figure in (SPAWN, POPEN, FILES):
        results.add(figure, _floor(figure.name, n, place))
    results.add(FORK, _floor(FORK.name, max(10, n // 5), place))
    results.add(DATE, _date_ms())


def _floor(kind: str, n: int, place: Path) -> float:
    folder = place / f"floor-{kind}"
    folder.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "bench.floors", kind, str(n), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    if ran.returncode != 0:
        raise NotMeasured(f"the floor {kind} ended with {ran.returncode}: {ran.stderr[-500:]}")
    return float(ran.stdout)


def _date_ms() -> float:
    took = []
    for _ in range(20):
        before_ns = int(REAL.wall_s() * 1e9)
        said = subprocess.run(work.CLOCK, capture_output=True, text=True, timeout=10).stdout
        took.append((int(said) - before_ns) / 1e6)
    return statistics.median(took)


def in_memory(results: Results, place: Path, *, singles: int, many: int, array: int, samples: int, quick: bool) -> None:
    with cluster(place / "latency", f"file://{place}/latency/store?durable=0") as on:
        if not quick:
            REAL.sleep(SETTLE_S)
        cold = work.start_latency_ms(on, "cold")
        if not quick:
            results.add(COLD, cold)
        _starts(results, on, samples, P50, P95)
    with cluster(place / "rates", f"file://{place}/rates/store?durable=0") as on:
        results.add(SINGLES, work.singles(on, "single", singles))
        results.add(ARRAY, work.array(on, "array", array))
    if many:
        with cluster(place / "many", f"file://{place}/many/store?durable=0") as on:
            results.add(MANY, work.singles(on, "single", many))


def _starts(results: Results, on: Cluster, samples: int, p50: Figure, p95: Figure) -> None:
    took = []
    for i in range(samples):
        REAL.sleep(REAL.uniform(0.0, 0.03))  # not in step with the worker's own looks
        took.append(work.start_latency_ms(on, f"start-{i}"))
    results.add(p50, percentile(took, 0.5))
    results.add(p95, percentile(took, 0.95))


def on_disk(results: Results, place: Path, *, singles: int, array: int) -> None:
    with cluster(place / "rates", f"file://{place}/rates/store") as on:
        results.add(DISK_SINGLES, work.singles(on, "single", singles))
        results.add(DISK_ARRAY, work.array(on, "array", array))


@contextmanager
def seaweedfs(place: Path) -> Iterator[servers.Server]:
    """A server of its own, data on disk, with a bucket. Its credentials are this process's while it lasts."""
    place.mkdir(parents=True)
    with servers.seaweedfs(place / "server") as server, patch.dict("os.environ", servers.CREDENTIALS):
        server.make_bucket("bench")
        yield server


def on_seaweedfs(results: Results, place: Path, url: str, *, singles: int, array: int, samples: int) -> None:
    with cluster(place, url, env=servers.CREDENTIALS) as on:
        results.add(PUTS, _requests_per_s(on.client.store, 100))
        _starts(results, on, samples, S3_P50, S3_P95)
        results.add(S3_SINGLES, work.singles(on, "single", singles, poll_s=0.05))
        results.add(S3_ARRAY, work.array(on, "array", array, poll_s=0.1))


def _requests_per_s(store: ObjectStore, n: int) -> float:
    began_s = REAL.boot_s()
    for i in range(n):
        store.create(f"floor/{i}", b"x" * 300)
        store.get(f"floor/{i}")
    return 2 * n / (REAL.boot_s() - began_s)
