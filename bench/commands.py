"""How long a person waits for a command: wall time from exec to exit, beside that of an empty Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.cluster import NotMeasured, cluster, environment, stado
from bench.figures import Figure, Results
from bench.work import singles
from stado_like.ambient import REAL

EMPTY = Figure("empty_python", "python -c pass", "ms", digits=1)
HELP = Figure("help", "stado --help", "ms", "empty_python", digits=1)


def listing(jobs: int) -> Figure:
    return Figure("job_list", f"stado job list, {jobs:,} finished jobs", "ms", "empty_python", digits=1)


def measure(results: Results, place: Path, *, jobs: int, rounds: int, times: int) -> None:
    url = f"file://{place}/store?durable=0"
    with cluster(place, url) as on:
        singles(on, "listed", jobs)
    env = environment(place, {"STADO_STORE": url})
    _wall_ms([stado(), "job", "list"], env, 1)  # rows of finished jobs are kept by whoever looked
    for _ in range(rounds):
        results.add(EMPTY, _wall_ms([sys.executable, "-c", "pass"], env, times))
        results.add(HELP, _wall_ms([stado(), "--help"], env, times))
        results.add(listing(jobs), _wall_ms([stado(), "job", "list"], env, times))


def _wall_ms(command: Sequence[str], env: dict[str, str], times: int) -> float:
    took = []
    for _ in range(times):
        began_s = REAL.boot_s()
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        took.append((REAL.boot_s() - began_s) * 1000)
        if ran.returncode != 0:
            raise NotMeasured(f"{' '.join(command[1:])} ended with {ran.returncode}: {ran.stderr.strip()[-300:]}")
    return statistics.median(took)
