"""`job progress`, what `job show` tells of what tasks say, and `job fetch` with its exit codes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Exit
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Heartbeat
from stado_like.job.states import TaskState
from stado_like.store.url import open_store
from stado_worker.shim.collect import collect
from tests import builders_jobs as build
from tests.builders_jobs import attempt, beat, claim, run
from tests.cli.conftest import Stado


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return Bucket(open_store(os.environ["STADO_STORE"]), ambient=REAL)


def says(bucket: Bucket, a: AttemptId, **more: Any) -> None:
    """A running task whose heartbeat has more to tell."""
    claim(bucket, a)
    beat(bucket, a)
    found = bucket.heartbeat(a)
    assert found is not None
    record: Heartbeat = replace(found.record, **more)
    bucket.put(keys.heartbeat(a), record)


def leaves(bucket: Bucket, a: AttemptId, folder: Path, *paths: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("hello")
    collect(bucket, a, folder, paths, lambda seconds: False)


def test_progress_shows_the_step_the_stall_and_the_previous_end(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    run(bucket, attempt(j), 3)
    progress = {"step": 120, "total": 1000, "loss": 0.31}
    stall = {"since": 1_790_000_000.0, "after_seconds": 1800}
    says(bucket, attempt(j, 0, 2), progress=progress, progress_at=1_790_000_000.25, stall=stall)
    said = stado("job", "progress", "train")
    header, line = said.out.splitlines()
    assert header.split() == ["RANK", "WORKER", "STATE", "MACHINE", "ATTEMPT", "RESTARTS", "(F/M/P)", "NOTE"]
    assert line.split(maxsplit=6)[:6] == ["0", "train-0", "Running", "w1", "2", "1/0/0"]
    assert line.split(maxsplit=6)[6] == (
        "stalled since 2026-09-21T14:13:20.000Z; step 120/1000 loss=0.31; "
        "previous attempt: failure (Exited with code 3)"
    )
    shown = stado("job", "progress", "train", "--json").value
    (worker,) = shown["workers"]
    assert worker["progress"] == progress
    assert worker["stall"] == {"since": "2026-09-21T14:13:20.000Z", "after_seconds": 1800}
    assert (worker["attempt"], worker["previous"]["cause"], shown["straggler"]) == (2, "failure", None)


def test_progress_names_the_straggler_of_a_group(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(
        bucket, array={"size": 3}, task_template={"command": "x", "resilience": {"straggler": {"behind_steps": 5}}}
    )
    now = bucket.now()
    for rank, step in ((0, 100.0), (1, 40.0), (2, 101.0)):
        says(bucket, attempt(j, rank), progress={"step": int(step)}, steps=((now - 1000, step),))
    shown = stado("job", "progress", "train", "--json").value
    straggler = shown["straggler"]
    assert (straggler["rank"], straggler["name"], straggler["machine"]) == (1, "train-1", "w1")
    assert (straggler["step"], straggler["median"], straggler["behind"]) == (40, 100, 60)
    assert stado("job", "show", "train", "--json").value["straggler"]["rank"] == 1
    lines = stado("job", "progress", "train").out.splitlines()
    assert ["straggler: 60 steps behind the median of 100" in line for line in lines] == [False, False, True, False]


def test_show_tells_outputs_and_answer_of_a_task_that_ended(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    end = run(bucket, attempt(j))
    told: End = replace(end, progress={"step": 7}, outputs={"best": "model 3"}, answer="42\n", collected={"files": 2})
    bucket.put(keys.end(attempt(j)), told)
    said = stado("job", "show", "train")
    for line in ("progress: step 7", "output best=model 3", "answer: 42", "collected: 2 files"):
        assert f"  {line}" in said.out
    (task,) = stado("job", "show", "train", "--json").value["tasks"]
    assert (task["progress"], task["outputs"], task["answer"]) == ({"step": 7}, {"best": "model 3"}, "42\n")
    assert task["state"] == TaskState.COMPLETED.value


def test_fetch_writes_below_the_directory_and_says_so(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    j = build.submit(bucket, collect=["*"])
    run(bucket, attempt(j))
    leaves(bucket, attempt(j), tmp_path / "cwd", "a.txt", "gone")
    said = stado("job", "fetch", "train", "got")
    assert (said.code, said.out) == (0, "train-0  attempt 1  1 files, 5 bytes, in got\n")
    assert said.err == "train-0: gone was not collected: there is no such file\n"
    assert (tmp_path / "got" / "a.txt").read_text() == "hello"
    (shown,) = stado("job", "fetch", "train", "got", "--json").value
    assert ([one["path"] for one in shown["files"]], shown["failed"], shown["left_out_count"]) == (["a.txt"], {}, 1)


def test_fetch_of_nothing_is_not_found_and_says_what_to_do(stado: Stado, bucket: Bucket) -> None:
    build.submit(bucket)
    said = stado("job", "fetch", "train", "got")
    assert said.code == Exit.NOT_FOUND
    assert "--collect PATH" in said.err
    build.submit(bucket, "keeps", collect=["*"])
    assert stado("job", "fetch", "keeps", "got").code == Exit.NOT_FOUND
    assert stado("job", "fetch", "nosuch", "got").code == Exit.NOT_FOUND
    assert not Path("got").exists()


def test_fetch_refuses_what_is_in_the_way_until_forced(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    j = build.submit(bucket, collect=["*"])
    leaves(bucket, attempt(j), tmp_path / "cwd", "a.txt")
    (tmp_path / "a.txt").write_text("mine")
    said = stado("job", "fetch", "train", ".")
    assert said.code == Exit.CONFLICT
    assert "--force" in said.err
    assert (tmp_path / "a.txt").read_text() == "mine"
    assert stado("job", "fetch", "train", ".", "--force").code == 0
    assert (tmp_path / "a.txt").read_text() == "hello"


def test_fetch_in_part_names_what_is_not_here(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    j: JobId = build.submit(bucket, collect=["*"])
    leaves(bucket, attempt(j), tmp_path / "cwd", "a.txt")
    bucket.store.put(keys.collected_file(attempt(j), "000001-a.txt"), b"other")
    said = stado("job", "fetch", "train", "got", "--json")
    assert said.code == Exit.PARTLY
    assert list(said.error["detail"]) == ["train-0: a.txt"]
    assert not (tmp_path / "got" / "a.txt").exists()


def test_fetch_into_a_file_is_refused(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    j = build.submit(bucket, collect=["*"])
    leaves(bucket, attempt(j), tmp_path / "cwd", "a.txt")
    (tmp_path / "file").write_text("x")
    assert stado("job", "fetch", "train", "file").code == Exit.REFUSED
