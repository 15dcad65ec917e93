"""Buckets in which a group was released that should not be, or a checkpoint is not whole; beside all the others."""

from __future__ import annotations

from typing import Any

from stado_like.bucket import checkpoints, entries
from stado_like.bucket.bucket import Bucket
from stado_like.job.checkpoint import Blob, Kept, Manifest, Piece, Ref
from stado_like.job.checkpoint_keys import Shelf
from tests.builders_blocks import CASES as OTHERS
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


def _checkpoint_without_a_blob(yard: Yard, b: Bucket) -> None:
    j = submit(b, task_template={"command": "true", "checkpoint": {"dir": "state"}})
    claim(b, attempt(j))
    beat(b, attempt(j))
    shelf = Shelf(j, 0)
    there, gone = Blob(1, "1" * 64, 1), Blob(1, "2" * 64, 1)
    b.store.put(shelf.blob(1, there.digest), b"x")
    b.store.put(shelf.blob(1, "3" * 64), b"on its way into the next one")
    files = {name: Kept(0o600, 1, 1, "", (Piece(blob, 0, 1),)) for name, blob in ((b"a", there), (b"b", gone))}
    checkpoints.publish(b, shelf, Manifest(str(attempt(j)), Ref(1, 1), 1.0, files=files))


CASES: tuple[tuple[str, Make, bool], ...] = (
    *OTHERS,
    ("rank-not-released", _group_half_released, False),
    ("group-ahead", _group_ahead, False),
    ("checkpoint-incomplete", _checkpoint_without_a_blob, True),
)
