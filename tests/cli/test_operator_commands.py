"""`job requeue`, `worker cordon|uncordon|drain`, `queue pause|resume`: what they print, and what they exit with."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.bucket import workers
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.store.url import open_store
from tests import builders_jobs as jobs
from tests.cli.conftest import Stado


@pytest.fixture(autouse=True)
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    url = f"file://{tmp_path}/store?durable=0"
    monkeypatch.setenv("STADO_STORE", url)
    monkeypatch.chdir(tmp_path)
    return Bucket(open_store(url))


def test_cordon_drain_uncordon_show_in_the_list(stado: Stado, bucket: Bucket) -> None:
    jobs.worker(bucket, "w1")
    jobs.worker(bucket, "w2")
    said = stado("worker", "cordon", "w1", "w2", "--reason", "a fan")
    assert (said.code, said.out, said.err) == (0, "w1: cordoned\nw2: cordoned\n", "")
    assert stado("worker", "drain", "w2").out == "w2: is being drained\n"
    rows = {one["worker"]: one for one in stado("worker", "list", "--json").value}
    assert [(one["state"], one["why_not"], one["cordoned"], one["drain"]) for one in rows.values()] == [
        ("Cordoned", "a fan", True, False),
        ("Draining", "a fan", True, True),
    ]
    assert rows["w1"]["obeys"] is False and rows["w1"]["cordoned_at"]
    shown = stado("worker", "uncordon", "w1", "--json").value
    assert [(one["worker"], one["cordoned"], one["drain"], one["reason"]) for one in shown] == [
        ("w1", False, False, None)
    ]
    assert {one["worker"]: one["state"] for one in stado("worker", "list", "--json").value} == {
        "w1": "Ready",
        "w2": "Draining",
    }


def test_drain_of_a_worker_that_is_not_there_is_said_so_and_stands(stado: Stado, bucket: Bucket) -> None:
    jobs.worker(bucket, "w1")
    said = stado("worker", "drain", "w3")
    assert said.code == 0
    assert "no worker w3 says that it is there (those that do: w1); it obeys when it starts" in said.err
    assert bucket.store.head(keys.wanted("w3")) is not None


def test_drain_waits_until_the_machine_says_that_it_holds_nothing(stado: Stado, bucket: Bucket) -> None:
    jobs.worker(bucket, "w1")
    said = stado("worker", "drain", "w1", "--wait", "--timeout", "1s")
    assert said.code == 124 and "w1 still holds 0 tasks" not in said.err
    assert "w1 has not heard of it after 1 s" in said.err
    (row,) = stado("worker", "drain", "w1", "--json").value
    wanted = bucket.store.get(keys.wanted("w1"))
    assert wanted is not None and row["drain"]
    jobs.worker(bucket, "w1", wanted=workers.read(bucket, "w1").nonce)
    assert stado("worker", "show", "w1", "--json").value["obeys"] is True


def test_drain_wait_of_a_machine_that_is_away_waits_for_its_claims(stado: Stado, bucket: Bucket) -> None:
    j = jobs.submit(bucket)
    jobs.claim(bucket, jobs.attempt(j), "gone")
    said = stado("worker", "drain", "gone", "--wait", "--timeout", "1s")
    assert said.code == 124
    assert "gone still holds 1 task after 1 s" in said.err
    assert "is reaped by a tick" in said.err
    jobs.end(bucket, jobs.attempt(j))
    said = stado("worker", "drain", "gone", "--wait", "--timeout", "10s")
    assert said.code == 0 and "gone holds nothing" in said.err


def test_requeue_says_what_it_did(stado: Stado, bucket: Bucket) -> None:
    j = jobs.submit(bucket, array={"size": 2})
    jobs.claim(bucket, jobs.attempt(j, 0), "w1")
    said = stado("job", "requeue", "train", "--task", "0-1", "--reason", "wrong data")
    assert said.code == 0
    assert said.out.splitlines() == [
        "train-0: attempt 1 is being stopped on w1; it runs again",
        "train-1: attempt 1 waits on the queue already; nothing was done",
    ]
    rows = stado("job", "requeue", "train", "--task", "0", "--json").value
    assert rows == [{"name": "train-0", "rank": 0, "attempt": 1, "done": "stopping", "worker": "w1"}]
    assert stado("job", "requeue", "train", "--task", "7").code == 2
    stado("job", "cancel", "train")
    said = stado("job", "requeue", "train", "--task", "0")
    assert said.code == 4 and "is being stopped for good" in said.err


def test_pause_and_resume_show_in_the_status(stado: Stado, bucket: Bucket) -> None:
    jobs.worker(bucket, "w1")
    said = stado("queue", "pause", "--reason", "a new switch")
    assert (said.code, said.out) == (0, "the queue is paused: a new switch\n")
    assert stado("queue", "pause", "--reason", "other").out == "the queue was paused before: a new switch\n"
    assert stado("queue", "status").out.startswith("paused: a new switch\n")
    assert stado("queue", "status", "--json").value["paused"]["reason"] == "a new switch"
    assert stado("queue", "resume").out == "the queue goes on\n"
    assert stado("queue", "resume").out == "the queue was not paused\n"
    assert stado("queue", "status", "--json").value["paused"] is None
