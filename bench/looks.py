"""What a look costs in requests, as the command itself tells: `job show` of a finished one-task job, and the second
`job list`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from bench.cluster import NotMeasured, cluster, environment, stado
from bench.figures import Figure, Results
from bench.work import singles

JOBS = 30
COUNTED = re.compile(r"store requests: (\d+)")


def measure(results: Results, place: Path) -> None:
    url = f"file://{place}/store?durable=0"
    with cluster(place, url) as on:
        singles(on, "looked", JOBS)
        env = environment(place, {"STADO_STORE": url})
        _requests(["job", "list"], env)  # rows of finished jobs are kept by whoever looked
        show, listing = _requests(["job", "show", "looked-0"], env), _requests(["job", "list"], env)
    results.add(Figure("show.requests", "job show of a finished one-task job: requests", ""), show)
    results.add(Figure("list.requests", f"job list of {JOBS} finished jobs, again: requests", ""), listing)


def _requests(command: list[str], env: dict[str, str]) -> int:
    ran = subprocess.run([stado(), *command, "--stats"], env=env, capture_output=True, text=True, timeout=60)
    found = COUNTED.search(ran.stderr) or COUNTED.search(ran.stdout)
    if ran.returncode != 0 or found is None:
        raise NotMeasured(f"{' '.join(command)} --stats ended with {ran.returncode}: {ran.stderr.strip()[-300:]}")
    return int(found[1])
