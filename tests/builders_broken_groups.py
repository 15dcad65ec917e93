"""Buckets in which a worker group was released that should not be, or not whole; beside all the others."""

from __future__ import annotations

from typing import Any

from stado_like.bucket import entries
from stado_like.bucket.bucket import Bucket
from tests.builders_broken import CASES as OTHERS
from tests.builders_broken import Make
from tests.builders_check import Yard
from tests.builders_jobs import attempt, beat, claim, submit

GROUPED: dict[str, Any] = {
    "task_groups": [
        {"name": "engine", "task_template": {"command": "serve"}},
        {
            "name": "client",
            "depends_on": [{"group_name": "engine"}],
            "task_template": {"command": "ask", "requested_resources": {"machines": 2}},
        },
    ]
}


def _group_ahead(yard: Yard, b: Bucket) -> None:
    j = submit(b, **GROUPED)
    job = b.job(j)
    assert job is not None
    entries.enqueue(b, job, b.terms(job), attempt(j, 1))


def _group_half_released(yard: Yard, b: Bucket) -> None:
    j = submit(b, **GROUPED)
    claim(b, attempt(j))
    beat(b, attempt(j))
    job = b.job(j)
    assert job is not None
    entries.enqueue(b, job, b.terms(job), attempt(j, 1))


CASES: tuple[tuple[str, Make, bool], ...] = (
    *OTHERS,
    ("rank-not-released", _group_half_released, False),
    ("group-ahead", _group_ahead, False),
)
