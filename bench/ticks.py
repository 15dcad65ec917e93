"""One tick over a long queue, as cron runs it: its requests, its time from exec to exit, and the memory it takes.

The queue is built by copying one submitted job's records under other names, which is what a hundred thousand submits
would have left. A first tick meets the queue; then a hundred things change (submits, claims, ends) and the tick after
them is the one that counts. Requests are what the tick itself reports.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from bench.cluster import NotMeasured, environment, stado
from bench.figures import Figure, Results
from bench.work import TRUE
from stado_like.ambient import REAL
from stado_like.client import Client
from stado_like.job.keys import JobId
from stado_like.store.meter import PRICE_PER_1000
from tests.builders_jobs import attempt, claim, run, worker

SIZES = (100, 10_000, 100_000)
CHANGES = 100
TEMPLATE = "job-0000000"
KINDS = {"list": "LIST", "gets": "GET and HEAD", "puts": "PUT"}


def name_of(queued: int, what: str) -> str:
    return f"tick_{queued}.{what}"


def measure(results: Results, place: Path, queued: int) -> None:
    """A tick over `queued` jobs after a hundred changes. Raises `NotMeasured`."""
    store = place / "store"
    url = f"file://{store}?durable=0"
    with Client(url) as client:
        client.ready_to_write()
        _fill(client, store, queued)
        env = environment(place, {"STADO_STORE": url})
        worker(client.bucket)
        first, _ = _tick(env)
        _change(client, queued)
        worker(client.bucket)
        requests, (wall_s, resident_mib) = _tick(env)
    size = f"{queued:,} queued, {CHANGES} changes"
    results.add(Figure(name_of(queued, "seconds"), f"tick, {size}", "s", digits=2), wall_s)
    results.add(
        Figure(name_of(queued, "memory"), f"tick, {size}, largest resident size", "MiB", digits=0), resident_mib
    )
    for what, title in KINDS.items():
        results.add(Figure(name_of(queued, what), f"tick, {size}: {title}", ""), _of_kind(requests, what))
    dollars = requests["dollars"] * 24 * 60
    results.add(
        Figure(name_of(queued, "dollars"), f"tick, {size}: a day of one such tick a minute", "$", digits=3), dollars
    )
    results.add(Figure(name_of(queued, "first"), f"tick, {queued:,} queued, the first: requests", ""), first["total"])


def _of_kind(requests: Mapping[str, float], what: str) -> float:
    kinds = {"list": ("list",), "gets": ("get", "head", "not_modified"), "puts": ("create", "put", "replace")}[what]
    assert set(kinds) <= set(PRICE_PER_1000)
    return sum(requests.get(kind, 0) for kind in kinds)


def _fill(client: Client, store: Path, queued: int) -> None:
    client.submit(command=TRUE, name=TEMPLATE)
    made = [path for path in store.rglob(f"*{TEMPLATE}*") if path.is_file()]
    if len(made) < 2:
        raise NotMeasured(f"a submitted job left {[str(path) for path in made]}: a job and its entry were expected")
    bodies = [(str(path), path.read_bytes()) for path in made]
    for number in range(1, queued):
        name = f"job-{number:07d}"
        for path, body in bodies:
            Path(path.replace(TEMPLATE, name)).write_bytes(body.replace(TEMPLATE.encode(), name.encode()))


def _change(client: Client, queued: int) -> None:
    """A third each: submitted, claimed, ended."""
    changed = CHANGES // 3
    for number in range(CHANGES - 2 * changed):
        client.submit(command=TRUE, name=f"new-{number}")
    for number in range(min(2 * changed, queued)):
        a = attempt(JobId("default", f"job-{number:07d}", 1))
        if number % 2:
            claim(client.bucket, a)
        else:
            run(client.bucket, a)


def _tick(env: Mapping[str, str]) -> tuple[dict[str, Any], tuple[float, float]]:
    """Requests, and seconds with the largest resident size in MiB."""
    began_s = REAL.boot_s()
    with subprocess.Popen(
        [stado(), "scheduler", "tick", "--json"], env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        said, trouble = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    took_s = REAL.boot_s() - began_s
    if process.returncode != 0:
        raise NotMeasured(f"the tick ended with {process.returncode}: {trouble.decode(errors='replace')[-300:]}")
    return orjson.loads(said)["requests"], (took_s, usage.ru_maxrss / 1024)
