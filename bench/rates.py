"""Jobs per second and the time to the first instruction, with the floors they stand on."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from bench import work
from bench.cluster import NotMeasured, cluster
from bench.figures import Figure, Results, percentile
from bench.requests import per_job
from stado_like.ambient import REAL
from stado_like.store.protocol import ObjectStore

SPAWN = Figure("spawn", "posix_spawn of /bin/true, 2 slots", "/s")
POPEN = Figure("popen", "Popen + session + log file, 2 slots", "/s")
FORK = Figure("fork", "fork of a warm Python, 2 slots", "/s")
FILES = Figure("files", "create + unlink, memory", "/s")
DISK_FILES = Figure("disk_files", "create + unlink, disk", "/s")
SYNCED = Figure("synced", "create + fsync + fsync of directory + unlink, disk", "/s")
DATE = Figure("date", "Popen of date to its first instruction, p50", "ms", digits=2)
PUTS = Figure("puts", "SeaweedFS: create, read, one after the other, one client", "requests/s")

SINGLES = Figure("singles", "single jobs, memory, no fsync", "jobs/s", "popen", ">= 200")
ARRAY = Figure("array", "one array, memory, no fsync", "tasks/s", "popen")
DISK_SINGLES = Figure("disk_singles", "single jobs, disk, fsync", "jobs/s", "synced")
DISK_ARRAY = Figure("disk_array", "one array, disk, fsync", "tasks/s", "synced")
P50 = Figure("start_p50", "submit to first instruction, idle worker, p50", "ms", "date", "<= 60", digits=1)
P95 = Figure("start_p95", "submit to first instruction, idle worker, p95", "ms", "date", digits=1)
COLD = Figure("start_cold", "the same, first job after 6 s of rest", "ms", "date", digits=1)
S3_SINGLES = Figure("s3_singles", "SeaweedFS: single jobs", "jobs/s", "puts")
S3_P50 = Figure("s3_start_p50", "SeaweedFS: submit to first instruction, idle, p50", "ms", "date", digits=1)

SETTLE_S = 6.0  # warm supervisors are let go after 5


def floors(results: Results, place: Path, n: int, *, disk: bool) -> None:
    if disk:
        results.add(DISK_FILES, _floor("files", n, place))
        results.add(SYNCED, _floor("synced", max(50, n // 5), place))
        return
    for figure in (SPAWN, POPEN, FORK, FILES):
        results.add(figure, _floor(figure.name, n, place))
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


def in_memory(results: Results, place: Path, n: int, samples: int, quick: bool) -> None:
    with cluster(place / "latency", f"file://{place}/latency/store?durable=0") as on:
        if not quick:
            REAL.sleep(SETTLE_S)
        cold = work.start_latency_ms(on, "cold")
        if not quick:
            results.add(COLD, cold)
        took = []
        for i in range(samples):
            REAL.sleep(REAL.uniform(0.0, 0.03))  # not in step with the worker's own looks
            took.append(work.start_latency_ms(on, f"start-{i}"))
        results.add(P50, percentile(took, 0.5))
        results.add(P95, percentile(took, 0.95))
    with cluster(place / "rates", f"file://{place}/rates/store?durable=0") as on:
        results.add(SINGLES, work.singles(on, "single", n))
        results.add(ARRAY, work.array(on, "array", n))


def on_disk(results: Results, place: Path, n: int) -> None:
    with cluster(place / "rates", f"file://{place}/rates/store") as on:
        results.add(DISK_SINGLES, work.singles(on, "single", n))
        results.add(DISK_ARRAY, work.array(on, "array", n))


def on_seaweedfs(results: Results, place: Path, n: int, rounds: int) -> None:
    """A server of its own, data on disk. Credentials are the server's own, for this process and the worker."""
    from tests import servers

    place.mkdir()
    with servers.seaweedfs(place / "server") as server, patch.dict("os.environ", servers.CREDENTIALS):
        server.make_bucket("bench")
        for i in range(rounds):
            url = server.url("bench", f"round-{i}")
            with cluster(place / f"round-{i}", url, env=servers.CREDENTIALS) as on:
                results.add(PUTS, _requests_per_s(on.client.store, 100))
                took = [work.start_latency_ms(on, f"start-{one}") for one in range(10)]
                results.add(S3_P50, percentile(took, 0.5))
                results.add(S3_SINGLES, work.singles(on, "single", n, poll_s=0.1))
        counted = per_job(place / "counted", server.url("bench", "counted"), 20, servers.CREDENTIALS)
        results.requests.update({f"{role}, S3": counts for role, counts in counted.items()})


def _requests_per_s(store: ObjectStore, n: int) -> float:
    began_s = REAL.boot_s()
    for i in range(n):
        store.create(f"floor/{i}", b"x" * 300)
        store.get(f"floor/{i}")
    return 2 * n / (REAL.boot_s() - began_s)
