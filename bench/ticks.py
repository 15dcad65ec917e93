"""One tick over a long queue, as cron runs it: its requests, its time from exec to exit, and the memory it takes.

The queue is built by copying one submitted job's records under other names, which is what a hundred thousand submits
would have left. A first tick meets the queue; then a hundred things change (submits, claims, ends) and the tick after
them is the one that counts. Requests are what the tick itself reports.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import orjson

from bench.cluster import NotMeasured, environment, stado
from bench.figures import Figure, Results
from bench.work import TRUE
from stado_like.ambient import REAL
from stado_like.client import Client
from stado_like.job.keys import JobId
from stado_like.job.records import Held
from stado_like.store.meter import PRICE_PER_1000
from tests.builders_jobs import attempt, beat, claim, run, worker

SIZES = (100, 10_000, 100_000)
CHANGES = 100
ROUNDS = 3
LOOK_S = 0.01
TEMPLATE = "job-0000000"
KINDS = {"list": "LIST", "gets": "GET and HEAD", "puts": "PUT"}


def name_of(queued: int, what: str) -> str:
    return f"tick_{queued}.{what}"


def measure(results: Results, place: Path, queued: int, rounds: int = ROUNDS) -> None:
    """Ticks over `queued` jobs, each after a hundred changes. Raises `NotMeasured`."""
    store = place / "store"
    url = f"file://{store}?durable=0"
    env = environment(place, {"STADO_STORE": url})
    with Client(url) as client:
        client.ready_to_write()
        _fill(client, store, queued)
        held: list[Held] = []
        worker(client.bucket)
        first = _tick(env)
        figure = Figure(name_of(queued, "first"), f"tick, {queued:,} queued, the first: requests", "")
        results.add(figure, first.requests["total"])
        for i in range(rounds):
            held += _change(client, i, queued)
            worker(client.bucket, held=tuple(held))
            _add(results, queued, _tick(env))


def _add(results: Results, queued: int, tick: _Tick) -> None:
    size = f"tick, {queued:,} queued, {CHANGES} changes"
    results.add(Figure(name_of(queued, "seconds"), size, "s", digits=2), tick.wall_s)
    results.add(Figure(name_of(queued, "memory"), f"{size}, largest resident size", "MiB"), tick.resident_mib)
    for what, title in KINDS.items():
        results.add(Figure(name_of(queued, what), f"{size}: {title}", ""), _of_kind(tick.requests, what))
    figure = Figure(name_of(queued, "dollars"), f"{size}: a day of one such tick a minute", "$", digits=3)
    results.add(figure, tick.requests["dollars"] * 24 * 60)


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


def _change(client: Client, i: int, queued: int) -> list[Held]:
    """A third each: submitted, claimed, ended. Returns what is held then, as its worker broadcasts it."""
    third, held = CHANGES // 3, []
    for number in range(CHANGES - 2 * third):
        client.submit(command=TRUE, name=f"new-{i}-{number}")
    for number in range(2 * third * i, min(2 * third * (i + 1), queued)):
        a = attempt(JobId("default", f"job-{number:07d}", 1))
        if number % 2:
            held.append(Held(attempt=str(a), nonce=claim(client.bucket, a).nonce, alive=True))
            beat(client.bucket, a)
        else:
            run(client.bucket, a)
    return held


@dataclass(frozen=True, slots=True)
class _Tick:
    requests: Mapping[str, float]
    wall_s: float
    resident_mib: float


def _tick(env: Mapping[str, str]) -> _Tick:
    """By the command, from its exec to its exit. Its largest resident size is read again and again while it runs: what
    wait4 tells of a child includes the memory that this process had when it forked."""
    command = [stado(), "scheduler", "tick", "--json"]
    largest_kib = 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
        began_s = REAL.boot_s()
        with subprocess.Popen(command, env=dict(env), stdout=out, stderr=log) as process:
            while process.poll() is None:
                largest_kib = max(largest_kib, _largest_kib(process.pid))
                REAL.sleep(LOOK_S)
            took_s = REAL.boot_s() - began_s
        said, trouble = _whole(out), _whole(log).decode(errors="replace")
    if process.returncode != 0:
        raise NotMeasured(f"the tick ended with {process.returncode}: {trouble[-300:]}")
    return _Tick(orjson.loads(said)["requests"], took_s, largest_kib / 1024)


def _largest_kib(pid: int) -> int:
    """0 when it has just ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
