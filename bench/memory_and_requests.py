"""What stays resident, and what a job asks of its store: the two costs that go on while nothing happens."""

from __future__ import annotations

from pathlib import Path

from bench.cluster import cluster
from bench.figures import Figure, Results
from bench.requests import per_job
from bench.resident import measure

PYTHON = Figure("python", "a bare Python process, resident (PSS)", "MiB", digits=1)
ROLES = {
    "agent": Figure("agent", "agent, resident", "MiB", "python", "<= 60", digits=1),
    "nursery": Figure("nursery", "nursery, resident", "MiB", "python", digits=1),
    "supervisor": Figure("supervisor", "one supervisor while its task sleeps, resident", "MiB", "python", digits=1),
}


def resident(results: Results, place: Path) -> None:
    with cluster(place / "resident", f"file://{place}/resident/store?durable=0") as on:
        found = measure(on, "resident")
    results.add(PYTHON, found["python"])
    for role, figure in ROLES.items():
        results.add(figure, found[role])


def requests(results: Results, place: Path, jobs: int) -> None:
    results.requests.update(per_job(place, f"file://{place}/store?durable=0&poll=50ms", jobs))
