"""`--workdir` on a store of another machine: packed when the document is made, sent before the job is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stado_like import Client, JobSpec
from stado_like.bundle.unpack import unpack
from stado_like.errors import NotFound, Refused
from stado_like.job import keys
from stado_like.store.memory import MemoryStore
from stado_like.store.meter import Meter, MeteredStore
from tests import builders_jobs as build
from tests.builders_jobs import Clock

DAY_S = 86_400.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def client(clock: Clock, meter: Meter) -> Client:
    bucket = build.make_bucket(clock)
    return Client(bucket.store.url, opened=MeteredStore(bucket.store, meter), ambient=clock)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "project"
    (place / "src").mkdir(parents=True)
    (place / "src/train.py").write_text("print(1)\n")
    monkeypatch.chdir(place)
    return place


def digest_of(client: Client, workdir: str) -> str:
    spec = client.document(JobSpec(command="x", workdir=workdir))["spec"]
    assert spec.get("workdir") is None and "cwd" not in spec
    return str(spec["bundle"])


def test_a_directory_of_this_machine_is_shipped_however_it_is_named(client: Client, folder: Path) -> None:
    assert digest_of(client, ".") == digest_of(client, str(folder)) == digest_of(client, "../project")
    assert digest_of(client, "src") != digest_of(client, ".")
    assert client.store.list("").rows == ()  # a document is made without writing


def test_a_folder_named_from_a_directory_that_is_gone_is_refused(
    client: Client, folder: Path, clock: Clock, tmp_path: Path
) -> None:
    here = tmp_path / "gone"
    here.mkdir()
    os.chdir(here)
    here.rmdir()
    for place in (client, Client(f"file://{tmp_path}/store", ambient=clock)):
        with pytest.raises(Refused, match="the directory this was started from no longer exists"):
            place.document(JobSpec(command="x", workdir="."))


def test_an_absolute_path_that_is_nothing_here_is_the_workers(client: Client, folder: Path) -> None:
    spec = client.document(JobSpec(command="x", workdir="/data/of/the/worker"))["spec"]
    assert spec["workdir"] == "/data/of/the/worker" and spec.get("bundle") is None
    with pytest.raises(Refused, match=r"the folder to ship is not a folder: .*train\.py"):
        client.document(JobSpec(command="x", workdir="src/train.py"))


def test_a_document_whose_bundle_is_nowhere_writes_nothing_on_a_fresh_store(client: Client) -> None:
    document = client.document(JobSpec(command="x", name="a", document={"spec": {"bundle": "0" * 64}}))
    with pytest.raises(NotFound, match="is not in the store any more"):
        client.submit_document(document)
    assert client.store.list("").rows == ()


def test_the_bundle_lies_there_before_the_job(client: Client, folder: Path, tmp_path: Path) -> None:
    job = client.submit(command=["python", "src/train.py"], workdir=".", name="train")
    digest = client.bucket.job(job.id).document["spec"]["bundle"]  # type: ignore[union-attr]
    found = client.store.get(keys.bundle(digest))
    record = client.store.get(keys.job(job.id))
    assert found is not None and record is not None and found.last_modified <= record.last_modified
    archive = tmp_path / "archive"
    archive.write_bytes(found.body)
    with archive.open("rb") as file:
        unpack(file, tmp_path / "out")
    assert (tmp_path / "out/src/train.py").read_text() == "print(1)\n"


def test_the_same_files_are_sent_once_a_day(client: Client, clock: Clock, meter: Meter, folder: Path) -> None:
    client.submit(command="x", workdir=".", name="one")
    first = meter.snapshot()
    client.submit(command="x", workdir=".", name="two")
    assert (meter.snapshot() - first)["put"] == 0
    clock.now_s += DAY_S + 1
    key = keys.bundle(digest_of(client, "."))
    client.submit(command="x", workdir=".", name="three")
    stat = client.store.head(key)
    assert stat is not None and stat.last_modified == clock.now_s


def test_rerun_looks_for_the_bundle_and_makes_it_young(client: Client, clock: Clock, folder: Path) -> None:
    job = client.submit(command="x", workdir=".", name="train")
    key = keys.bundle(digest_of(client, "."))
    with Client(client.store.url, opened=client.store, ambient=clock) as elsewhere:
        clock.now_s += DAY_S + 1
        before = client.store.get(key)
        elsewhere.rerun("train")
        after = client.store.get(key)
        assert before is not None and after is not None
        assert (after.body, after.last_modified) == (before.body, clock.now_s)
        client.store.delete(key)
        with pytest.raises(NotFound, match="is not in the store any more") as gone:
            elsewhere.rerun(job.id)
    assert gone.value.next_step.startswith("Submit again with --workdir")
    assert [row.key for row in client.store.list("jobs/").rows] == [
        "jobs/default/train-2.1.json",
        "jobs/default/train.1.json",
    ]


def test_a_document_that_names_a_bundle_keeps_its_workdir(client: Client, folder: Path) -> None:
    client.submit(command="x", workdir=".", name="one")
    digest = digest_of(client, ".")
    named = {"spec": {"bundle": digest, "workdir": "src"}}
    job = client.submit(command="x", name="two", document=named)
    spec = client.bucket.job(job.id).document["spec"]  # type: ignore[union-attr]
    assert (spec["bundle"], spec["workdir"]) == (digest, "src")


def test_on_a_store_of_this_machine_the_directory_is_used_in_place(folder: Path, tmp_path: Path) -> None:
    with Client(f"file://{tmp_path}/s?durable=0") as local:
        spec = local.document(JobSpec(command="x", workdir="src"))["spec"]
        assert (spec["workdir"], spec.get("bundle")) == (str(folder / "src"), None)
        named = local.document(JobSpec(command="x", document={"spec": {"bundle": "0f" * 32, "workdir": "src"}}))
        assert (named["spec"]["workdir"], named["spec"].get("cwd")) == ("src", None)


def test_what_takes_long_is_told(client: Client, clock: Clock, folder: Path) -> None:
    (folder / "large").write_bytes(bytes(range(256)) * 40_000)
    told: list[str] = []
    client.shipping.on_note = told.append

    class Slow(MemoryStore):
        def put_file(self, key, file):  # type: ignore[no-untyped-def]
            file.seek(0)
            body = b""
            while piece := file.read(1024):
                body += piece
                clock.now_s += 0.4
            return self.put(key, body)

    slow = Slow("slow", clock)
    with Client(slow.url, opened=slow, ambient=clock) as other:
        other.shipping.on_note = told.append
        other.submit(command="x", workdir=".")
    assert told and all(note.startswith("sending bundle ") and " of " in note for note in told)
    assert len(told) <= 20
