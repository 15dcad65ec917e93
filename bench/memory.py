"""What of stado stays resident: agent, nursery, and a supervisor while its task sleeps; on a directory and on S3."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.cluster import cluster
from bench.figures import Figure, Results
from bench.resident import measure

PYTHON = Figure("python", "a bare Python process, resident", "MiB", digits=1)
ROLES = {
    "agent": "agent, resident",
    "nursery": "nursery, resident",
    "supervisor": "one supervisor while its task sleeps, resident",
}


def resident(results: Results, place: Path, url: str, *, name: str = "", env: Mapping[str, str] | None = None) -> None:
    """`name`: what to put before the figures' names (`s3_`)."""
    with cluster(place, url, env=env) as on:
        found = measure(on, "resident")
    if not name:
        results.add(PYTHON, found["python"])
    for role, title in ROLES.items():
        told = f"stado: {title}{', on S3' if name else ''}"
        results.add(Figure(f"{name}{role}", told, "MiB", "python", digits=1), found[role])
    together = Figure(f"{name}worker", f"stado: agent + nursery{', on S3' if name else ''}", "MiB", "python", digits=1)
    results.add(together, found["agent"] + found["nursery"])
