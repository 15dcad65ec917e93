"""A program asks for a job by keywords: they mean what the options of the command line mean."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like import Client, JobSpec
from stado_like.errors import NotFound, UsageError
from tests import builders_jobs as build
from tests.builders_jobs import Clock


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.delenv("STADO_JOB", raising=False)
    clock = Clock()
    bucket = build.make_bucket(clock)
    return Client(bucket.store.url, opened=bucket.store, ambient=clock)


def test_keywords_are_options(client: Client) -> None:
    client.submit(command="prep", name="prep")
    job = client.submit(
        command=["python", "train.py"],
        name="train",
        image="busybox",
        gpus=8,
        gpu_models=["H100", "H200"],
        gpu_memory=80,
        machines=2,
        gang=True,
        env={"SEED": "1"},
        time_limit="2h",
        deadline="+1-0",
        signal="USR1@2m",
        stall_after=600,
        restart_stalled=True,
        scheduling_timeout=60,
        min_runtime="5m",
        checkpoint_dir="ckpt",
        collect=["out"],
        after=["prep:Ended"],
    )
    kept = client.bucket.job(job.id)
    assert kept is not None
    stored: Any = kept.document
    spec, template = stored["spec"], stored["spec"]["task_template"]
    assert (spec["start"], spec["collect"], spec["scheduling_timeout_seconds"]) == ("Gang", ["out"], 60)
    assert spec["after"] == [{"job": "default.prep.1", "state": "Ended"}]
    assert spec["deadline"].endswith("Z")
    asked = template["requested_resources"]
    assert (asked["machines"], asked["gpu_requests"]["models"], asked["gpu_requests"]["min_memory_gb"]) == (
        *(2, ["H100", "H200"], 80),
    )
    resilience = template["resilience"]
    assert resilience["signal_before_limit"] == {"signal": "SIGUSR1", "seconds": 120}
    assert (resilience["stall"]["after_seconds"], resilience["stall"]["restart"]) == (600, True)
    assert resilience["preemptible_after_seconds"] == 300
    assert (template["image"], template["checkpoint"]["dir"]) == ("busybox", "ckpt")


def test_entries_and_indices(client: Client) -> None:
    def array(**said: Any) -> Any:
        return client.document(JobSpec(command="x", **said))["spec"]["array"]

    assert array(entries=["a", "b"], max_parallel=1) == {"size": 2, "entries": ["a", "b"], "max_parallel": 1}
    assert array(array="1-5:2") == {"size": 3, "indices": [1, 3, 5], "max_parallel": 0}
    assert array(array=4) == {"size": 4, "max_parallel": 0}


def test_what_cannot_be_meant_is_refused_before_anything_is_written(client: Client) -> None:
    with pytest.raises(UsageError, match="--array and --each-line"):
        client.submit(command="x", array=3, entries=["a"])
    with pytest.raises(NotFound, match="absent"):
        client.submit(command="x", after=["absent"])
    with pytest.raises(UsageError, match="not a moment"):
        client.submit(command="x", deadline="soon")
    assert client.store.list("").rows == ()


def test_a_program_in_a_task_submits_children(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STADO_JOB", "default.parent.1")
    monkeypatch.setenv("STADO_STORE", client.store.url)
    assert client.document(JobSpec(command="x"))["metadata"]["parent"] == "default.parent.1"
    assert "parent" not in client.document(JobSpec(command="x", detached=True))["metadata"]
    monkeypatch.setenv("STADO_STORE", "not a store")
    assert "parent" not in client.document(JobSpec(command="x"))["metadata"]
