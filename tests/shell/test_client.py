"""The client: a program submits, waits, reads, cancels, and meets the same errors as a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like import Client, JobSpec
from stado_like.asking.naming import default_name, next_name
from stado_like.asking.overlay import merged
from stado_like.asking.variables import labels, variables
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, InvalidSpecification, NotFound, Refused, StoreUnavailable, TimedOut, UsageError
from stado_like.patience import Patience, pauses
from stado_like.store.memory import MemoryStore
from tests import builders_jobs as build
from tests.builders_blocks import run_block, unit
from tests.builders_jobs import Clock, attempt, run


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Client:
    bucket = build.make_bucket(clock)
    return Client(bucket.store.url, opened=bucket.store, ambient=clock)


def test_submit_wait_state_logs(client: Client, clock: Clock) -> None:
    job = client.submit(command=["python", "train.py"], name="train", cpus=4, memory="16GiB", env={"SEED": "1"})
    assert (job.name, job.state) == ("train", "Pending")

    def work() -> None:
        clock.while_asleep = None
        run(client.bucket, attempt(job.id), log=build.log_tail(b"hi\n"))

    clock.while_asleep = work
    assert job.wait(timeout_s=60) == "Completed"
    assert (job.state, job.logs(), job.raw_logs()) == ("Completed", "hi\n", b"hi\n")
    job.delete()
    with pytest.raises(NotFound):
        job.view()


def test_a_spec_and_keywords_mean_the_same(client: Client) -> None:
    spec = JobSpec(command=["a", "b"], name="x", array="4%2", time_limit="1h30m", restarts=3, labels={"k": "v"})
    said = client.document(spec)
    assert said["spec"]["array"] == {"size": 4, "max_parallel": 2}
    assert said["spec"]["task_template"]["time_limit_seconds"] == 5400
    assert said["spec"]["task_template"]["resilience"]["max_restarts"] == 3
    assert said["metadata"] == {"name": "x", "labels": {"k": "v"}, "workspace": "default"}
    with pytest.raises(UsageError):
        client.submit(spec, name="y")


def test_wrong_jobs_are_refused_before_anything_is_written(client: Client) -> None:
    with pytest.raises(InvalidSpecification) as told:
        client.submit(command=["x"], name="a.b", priority=9999)
    assert set(told.value.detail) == {"metadata.name", "priority"}
    with pytest.raises(UsageError, match="--array and --gang exclude each other"):
        client.submit(command=["x"], gang=True, array=8)
    assert client.store.list("").rows == ()


def test_wait_times_out_and_the_job_goes_on(client: Client, clock: Clock) -> None:
    job = client.submit(command=["x"])
    with pytest.raises(TimedOut, match="did not end within 5 s"):
        job.wait(timeout_s=5)
    assert sum(clock.slept_s) == pytest.approx(5)
    assert max(clock.slept_s) <= 0.05


def test_a_waiting_client_writes_the_final_that_nobody_wrote(client: Client, clock: Clock) -> None:
    """The last supervisor died between its end and the job's final, and no tick runs."""
    job = client.submit(command=["x"], array=70, name="many")
    for block in range(35):
        run_block(client.bucket, unit(job.id, block, tasks=70))
    assert client.bucket.final(job.id) is None
    assert job.view().state == "Running"
    assert job.wait(timeout_s=60) == "Completed"
    assert client.bucket.final(job.id) is not None


def test_waiting_for_a_job_that_is_deleted_ends(client: Client, clock: Clock) -> None:
    other = Client(client.store.url, opened=client.store, ambient=clock)
    waiting = client.submit(command=["x"], name="y")

    def remove() -> None:
        clock.while_asleep = None
        other.cancel("y")
        other.delete("y")

    clock.while_asleep = remove
    with pytest.raises(NotFound, match="was deleted"):
        waiting.wait(timeout_s=600)


def test_cancel_rerun_stop(client: Client) -> None:
    job = client.submit(command=["x"], name="x", array=3)
    assert job.stop_task(1, "not this one") is True
    assert job.cancel("enough").over
    with pytest.raises(Conflict):
        job.cancel()
    again = job.rerun()
    assert again.name == "x-2" and again.view().terms.array_size == 3


def test_workspace_of_the_client_is_where_names_lie(client: Client, clock: Clock) -> None:
    lab = Client(client.store.url, workspace="lab", opened=client.store, ambient=clock)
    job = lab.submit(command=["x"], name="x")
    assert job.id.workspace == "lab"
    assert client.job("lab/x").id == job.id
    with pytest.raises(NotFound, match="x"):
        client.job("x")


def test_relative_workdir_is_shipped_unless_the_store_is_of_this_machine(client: Client, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the folder to ship does not exist"):
        client.document(JobSpec(command="x", workdir="src"))
    assert "cwd" not in client.document(JobSpec(command="x"))["spec"]
    with Client(f"file://{tmp_path}/s?durable=0") as local:
        assert local.document(JobSpec(command="x", workdir="src"))["spec"]["workdir"].endswith("/src")
        assert "cwd" in local.document(JobSpec(command="x"))["spec"]


class Away(MemoryStore):
    """A store whose reads do not answer while `away`."""

    away = False

    def get(self, key: str):  # type: ignore[no-untyped-def]
        if self.away:
            raise StoreUnavailable("no answer within 10 s")
        return super().get(key)


def test_waiting_outlives_an_outage_and_says_so(clock: Clock) -> None:
    store = Away("away", clock)
    client = Client(store.url, opened=store, ambient=clock)
    job = client.submit(command=["x"], name="x")
    notes: list[str] = []

    def turns() -> None:
        if len(clock.slept_s) == 3:
            store.away = True
        if len(clock.slept_s) == 200:
            store.away = False
            run(Bucket(store, ambient=clock), attempt(job.id))

    clock.while_asleep = turns
    assert client.wait([job], on_note=notes.append)[0].state == "Completed"
    assert [note.split("(")[0].split(",")[0] for note in notes] == [
        "the store does not answer ",
        "the store answers again",
    ]
    store.away = True
    with pytest.raises(StoreUnavailable):
        client.wait([job])


def test_patience_gives_up_after_a_quarter_of_an_hour(clock: Clock) -> None:
    store = Away("away-long", clock)
    patience = Patience("s3://bucket", clock)

    def look() -> None:
        store.get("a")

    with pytest.raises(StoreUnavailable):
        for _ in patience.rounds():
            patience.ask(look)
            store.away = True
    assert 900 <= sum(clock.slept_s) <= 910
    assert max(clock.slept_s) == 5.0


def test_pauses_by_how_far_the_store_is() -> None:
    near, far = pauses("file:///x"), pauses("s3://bucket")
    assert next(near) == pytest.approx(0.02) and next(far) == 1.0
    assert max(next(near) for _ in range(50)) == 0.05
    assert max(next(far) for _ in range(50)) == 5.0
    assert next(pauses("s3://bucket?endpoint_url=http://127.0.0.1:9")) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("command", "name"),
    [("/usr/bin/env", "env-"), ("träin.py", "tr-in-py-"), ("...", "job-"), ("x" * 99, "x" * 50 + "-")],
)
def test_default_names_are_names(command: str, name: str) -> None:
    made = default_name(command, "0123456789abcdef")
    assert made == f"{name}012345"
    assert build.document(made)["metadata"]["name"] == made


def test_next_names() -> None:
    assert next_name("train", frozenset({"train"})) == "train-2"
    assert next_name("train-2", frozenset({"train-3"})) == "train-4"
    assert next_name("run-2026", frozenset()) == "run-2027"
    long = next_name("x" * 57, frozenset())
    assert build.document(long)["metadata"]["name"] == long


def test_merged_changes_neither() -> None:
    under = {"a": {"b": 1, "c": [1]}, "d": 1}
    assert merged(under, {"a": {"c": [2]}, "e": {"f": 1}}) == {"a": {"b": 1, "c": [2]}, "d": 1, "e": {"f": 1}}
    assert under == {"a": {"b": 1, "c": [1]}, "d": 1}
    assert merged({"spec": []}, {"spec": {}}) == {"spec": []}
    assert merged({"spec": [], "a": None}, {"spec": {"b": 1}, "a": {"c": 1}}) == {"spec": [], "a": {"c": 1}}


def test_variables_and_labels() -> None:
    assert variables(["A=1=2", "B=", "HOME"], {"HOME": "/h"}) == {"A": "1=2", "B": "", "HOME": "/h"}
    with pytest.raises(UsageError) as told:
        variables(["X", "=1"], {})
    assert set(told.value.detail) == {"X", "=1"}
    with pytest.raises(UsageError):
        labels(["k"])
