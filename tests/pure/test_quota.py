"""What a workspace may hold at once: what counts, what is said, and what a head sets aside."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.job.ids import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.planning.board import Board, Quota, Running, Spot
from stado_like.planning.fit import Machine
from stado_like.planning.quota import Ledger

GIB = 1 << 30
OLD, NEW, FAR = JobId("lab", "old", 1), JobId("lab", "new", 1), JobId("other", "far", 1)


def ledger(*running: Running, **limits: Any) -> Ledger:
    spot = Spot(Machine("m", "m", 0, 0, 0, len(running)), running)
    return Ledger(Board(0.0, (spot,), (), {"lab": Quota(**limits)}))


def task(job: JobId, ask: Ask, *, rank: int = 0, stopping: bool = False) -> Running:
    return Running(AttemptId(job, rank, 1), ask, 0, stopping=stopping)


@pytest.mark.parametrize(
    ("limits", "ask", "says"),
    [
        ({"gpus": 8}, Ask(1000, GIB, 4), "Waits for namespace quota: gpus 6 in use + 4 asked > 8"),
        ({"cpu_millis": 4000}, Ask(1500, GIB, 0), "Waits for namespace quota: cores 3 in use + 1.5 asked > 4"),
        ({"memory_bytes": 8 * GIB}, Ask(1, 4 * GIB, 0),
         "Waits for namespace quota: memory 6 GiB in use + 4 GiB asked > 8 GiB"),
        ({"running_jobs": 1}, Ask(1, 1, 0), "Waits for namespace quota: running jobs 1 in use + 1 asked > 1"),
        ({"gpus": 8}, Ask(1000, GIB, 12),
         "Waits for more than the namespace's quota allows at all (gpus 12 asked > 8): raise the quota "
         "or ask for less"),
    ],
)  # fmt: skip
def test_each_limit_in_its_words(limits: dict[str, int], ask: Ask, says: str) -> None:
    found = ledger(task(OLD, Ask(3000, 6 * GIB, 6)), **limits).refuses(NEW, [ask], gang=False)
    assert found is not None and found.reason == says


def test_gang_waits_as_a_whole() -> None:
    found = ledger(gpus=8).refuses(NEW, [Ask(1, 1, 2)] * 5, gang=True)
    assert found is not None and found.numbers == "gpus 10 asked > 8"
    book = ledger(task(OLD, Ask(1, 1, 6)), gpus=8)
    found = book.refuses(NEW, [Ask(1, 1, 2)] * 2, gang=True)
    assert found is not None and found.reason == "Gang waits for namespace quota: gpus 6 in use + 4 asked > 8"


def test_exactly_the_limit_is_within_it() -> None:
    assert ledger(task(OLD, Ask(1, 1, 6)), gpus=8).refuses(NEW, [Ask(1, 1, 2)], gang=False) is None


def test_work_that_asks_for_none_of_what_is_used_up_goes_on() -> None:
    assert ledger(task(OLD, Ask(1, 1, 9)), gpus=8).refuses(NEW, [Ask(1, 1, 0)], gang=False) is None


def test_another_task_of_a_running_job_is_no_other_job() -> None:
    assert ledger(task(OLD, Ask(1, 1, 0)), running_jobs=1).refuses(OLD, [Ask(1, 1, 0)], gang=False) is None


def test_what_is_stopping_still_counts() -> None:
    """Row: two jobs on one accelerator. Room that a stop frees is free when the stop is over."""
    assert ledger(task(OLD, Ask(1, 1, 8), stopping=True), gpus=8).refuses(NEW, [Ask(1, 1, 1)], gang=False) is not None


def test_other_workspaces_have_no_limits() -> None:
    assert ledger(gpus=0).refuses(FAR, [Ask(1, 1, 99)], gang=False) is None


def test_what_the_plan_placed_counts() -> None:
    book = ledger(gpus=4)
    book.charge(NEW, [Ask(1, 1, 3)])
    found = book.refuses(OLD, [Ask(1, 1, 2)], gang=False)
    assert found is not None and found.numbers == "gpus 3 in use + 2 asked > 4"


def test_what_the_head_will_need_is_set_aside() -> None:
    book = ledger(gpus=4)
    book.set_aside(OLD, [Ask(1, 1, 4)])
    found = book.refuses(NEW, [Ask(1, 1, 1)], gang=False)
    assert found is not None and found.reserved
    assert book.refuses(NEW, [Ask(1, 1, 0)], gang=False) is None
