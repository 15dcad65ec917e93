"""`job events`, `job explain`, and what is left to see of a deleted job."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import pytest

from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.states import Cause
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests.builders_jobs import attempt, beat, claim, end, run
from tests.cli.conftest import Stado


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    return os.environ["STADO_STORE"]


@pytest.fixture
def bucket(url: str) -> Bucket:
    return Bucket(open_store(url), ambient=REAL)


def test_events_are_one_line_each_oldest_first(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    run(bucket, attempt(j), 3)
    said = stado("job", "events", "train")
    assert said.code == 0
    lines = [re.sub(r"\S+Z", "T", line) for line in said.out.splitlines()]
    assert lines[0] == "T  train            Pending       Run created"
    assert "T  train-0 #1       Failed        Exited with code 3  (w1, failure)" in lines
    assert "T  train-0 #2       Pending       Restarted by policy (restart 1/10)  (failure, restarts at T)" in lines
    values = [json.loads(line) for line in stado("job", "events", "train", "--json").out.splitlines()]
    assert len(values) == len(lines)
    assert list(values[0]) == [
        *("at", "job", "task", "rank", "attempt", "worker", "state", "reason", "reason_code", "cause", "details")
    ]
    assert (values[0]["job"], values[0]["task"], values[0]["rank"]) == ("default.train.1", None, None)
    assert [one["at"] for one in values] == sorted(one["at"] for one in values)


def test_follow_ends_when_the_job_is_over_and_tells_nothing_twice(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket)
    claim(bucket, attempt(j))
    beat(bucket, attempt(j))
    timer = threading.Timer(0.5, lambda: end(Bucket(bucket.store, ambient=REAL), attempt(j)))
    timer.start()
    said = stado("job", "events", "train", "--follow", "--json")
    timer.join()
    assert said.code == 0
    values = [json.loads(line) for line in said.out.splitlines()]
    last = values[-1]
    assert (last["task"], last["state"], last["reason"]) == (None, "Completed", "All workers completed")
    told = [(one["task"], one["attempt"], one["state"], one["reason"]) for one in values]
    assert told.count(("train-0", 1, "Completed", "Exited with code 0")) == 1


def test_events_of_no_job_is_3(stado: Stado, url: str) -> None:
    assert stado("job", "events", "nobody").code == 3


def test_explain_names_the_machines_and_the_missing_tick(stado: Stado, bucket: Bucket) -> None:
    build.submit(bucket)
    said = stado("job", "explain", "train")
    assert said.code == 0 and "no tick on this store since it was made: run `stado up`" in said.out
    assert "No machines are registered" in said.out
    build.worker(bucket, "w1")
    assert "  w1                   it fits" in stado("job", "explain", "train").out
    assert stado("job", "explain", "train", "--json").value["machines"][0]["fits"] is True


def test_deleted_job_is_listed_as_deleted_and_show_tells_of_it(stado: Stado, bucket: Bucket) -> None:
    j = build.submit(bucket, template={"restart_policy": "Never"})
    run(bucket, attempt(j), 1, cause=Cause.MACHINE_LOST, reason="gone")
    assert stado("job", "delete", "train").code == 0
    (row,) = stado("job", "list", "--deleted", "--json").value
    assert (row["name"], row["state"], row["ended_as"]) == ("train", "Deleted", "Failed")
    assert "Deleted" in stado("job", "list", "--deleted").out
    said = stado("job", "show", "train", "--json")
    assert said.code == 3
    assert re.fullmatch(
        r"the job default/train was deleted \(default\.train\.1\): it had ended Failed; deleted at \S+Z by \S+",
        said.error["message"],
    )
    assert stado("job", "events", "train").code == 3
    assert bucket.job(keys.JobId("default", "train", 1)) is None
