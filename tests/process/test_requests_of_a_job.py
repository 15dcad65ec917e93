"""What a job of one task costs, from submit to settled: counted in every process that has to do with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.requests import per_job

pytestmark = pytest.mark.serial
JOBS = 4
BELL = "state/doorbell.json"
PAID_ONCE = ("state/store.json", "capacity", "config", "workers", "queue", "queued/later", "inbox", "state/holds.json")
"""Families that a process asks for when it starts, or by the minute, and never for a job."""


def test_job_of_one_task_costs_four_puts_a_ring_and_eight_gets(tmp_path: Path) -> None:
    counts = per_job(tmp_path, f"file://{tmp_path}/store?durable=0&poll=20ms", JOBS)
    whole = {role: {kind: n for kind, n in counted.items() if n >= 1} for role, counted in counts.items()}
    once = {kind for counted in counts.values() for kind in counted if kind.split(" ")[1] in PAID_ONCE}
    rung = {"create " + BELL, "replace " + BELL}
    assert {kind: n for kind, n in whole["submitter"].items() if kind.split(" ")[1] != BELL} == {
        "create jobs": 1,
        "create queued/open": 1,
        "get deleted": 1,
    }
    assert sum(counts["submitter"].get(kind, 0) for kind in rung) == 1
    assert counts["submitter"]["get " + BELL] == 1
    told = {kind for kind in whole["worker"] if kind.split(" ")[1] != BELL} - once
    assert {kind: whole["worker"][kind] for kind in told} == {
        "create running": 1,
        "head status": 3,
        "head deleted": 1,
        "get jobs": 1,
        "delete queued/open": 1,
        "delete queued/held": 1,
    }
    assert whole["supervisor"] == {
        "create status": 1,
        "delete running": 1,
        "delete queued/open": 1,
        "delete queued/held": 1,
    }
    total = Counter[str]()
    for counted in whole.values():
        for kind, n in counted.items():
            if kind.split(" ")[1] != BELL and kind not in once:
                total[kind.split(" ")[0]] += int(n)
    heard = 2  # the ringer reads the bell, and the worker hears it once
    assert total["create"] + total["put"] == 4
    assert total["get"] + total["head"] + heard == 8
