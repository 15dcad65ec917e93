"""A folder submitted from one place runs on a machine that shares nothing with it but an S3 server."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stado_like import Client
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Cause, TaskState
from tests import servers
from tests.process.rig import Rig, make_rig, until

pytestmark = pytest.mark.serial
BUCKET = "bundles"
AWS = {
    **servers.CREDENTIALS,
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A worker on SeaweedFS."""
    place = tmp_path_factory.mktemp("far")
    before = dict(os.environ)
    os.environ.update(AWS)
    try:
        with servers.seaweedfs(place / "data") as server:
            server.make_bucket(BUCKET)
            with make_rig(place / "rig", server.url(BUCKET, "x"), AWS) as rig:
                rig.worker("w1", "--cpus", "4", "--memory", "4GiB")
                yield rig
    finally:
        os.environ.clear()
        os.environ.update(before)


def stado(rig: Rig, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stado_cli.main", "--store", rig.url, *words],
        cwd=folder,
        env={**rig.env, **AWS},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def client(far: Rig) -> Client:
    return Client(far.url, opened=far.bucket.store)


def submitted(client: Client, name: str, *command: str, **more: Any) -> JobId:
    return client.submit(command=command, name=name, cpus=0.5, memory="64MiB", **more).id


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib/words.txt").write_text("hello from a bundle\n")
    (folder / "run.sh").write_text('#!/bin/sh\ncat lib/words.txt\npwd\nls\necho mine > "left-behind-$1"\n')
    (folder / "run.sh").chmod(0o755)
    (folder / "secret.env").write_text("s")
    (folder / ".stadoignore").write_text("*.env\n")
    return folder


def test_a_script_of_the_folder_runs_beside_its_files(far: Rig, client: Client, project: Path) -> None:
    done = stado(far, project, "job", "submit", "--name", "one", "--workdir", ".", "--", "./run.sh", "1")
    assert done.returncode == 0, done.stderr
    first = JobId("default", "one", 1)
    assert far.last(first)[1].exit_code == 0, far.output(first)
    lines = far.output(first).decode().splitlines()
    assert lines[0] == "hello from a bundle" and lines[2:] == ["lib", "run.sh"]
    assert not lines[1].startswith(str(project))
    second = submitted(client, "two", "./run.sh", "2", workdir=str(project))
    assert far.last(second)[1].exit_code == 0
    assert far.output(second).decode().splitlines()[2:] == ["lib", "run.sh"]  # what the first left is not there
    assert [row.key for row in far.bucket.store.list("bundles/").rows] == [keys.bundle(digest_of(far, first))]
    assert os.listdir(far.state / "w1/bundles").count(digest_of(far, first)) == 1
    inside = {"spec": {"bundle": digest_of(far, first), "workdir": "lib"}}
    third = submitted(client, "three", "cat", "words.txt", document=inside)
    assert far.last(third)[1].exit_code == 0
    assert far.output(third) == b"hello from a bundle\n"


def test_a_bundle_that_is_gone_is_said_where_it_is_missed_and_spends_nothing(
    far: Rig, client: Client, project: Path
) -> None:
    (project / "lib/words.txt").write_text("another digest\n")
    job = submitted(client, "four", "./run.sh", workdir=str(project), pinned_host="w2", heartbeat_ttl=10)
    far.bucket.store.delete(keys.bundle(digest_of(far, job)))
    done = stado(far, project, "job", "rerun", "four")
    assert done.returncode == 3
    assert "is not in the store any more" in done.stderr and "Submit again with --workdir" in done.stderr
    far.worker("w2", "--cpus", "4", "--memory", "4GiB")
    sentence = f"bundle {digest_of(far, job)[:12]} is not in the store: submit again with --workdir"
    until(lambda: sentence in said(far, job), 30, f"{sentence}; {far.told(AttemptId(job, 0, 1))}")
    beat = far.beat(job)
    assert beat is not None and beat.state is TaskState.PREPARING
    assert far.bucket.end(AttemptId(job, 0, 1)) is None
    client.cancel(job)
    assert far.end(job).cause is Cause.REQUESTED


def said(rig: Rig, job: JobId) -> str:
    beat = rig.beat(job)
    return beat.reason if beat is not None else ""


def digest_of(rig: Rig, job: JobId) -> str:
    record = rig.bucket.job(job)
    assert record is not None
    return str(record.document["spec"]["bundle"])


def test_files_that_a_task_left_come_back_from_another_machine(far: Rig, tmp_path: Path) -> None:
    script = "mkdir out; head -c 9437184 /dev/urandom > out/big; : > out/empty; sha256sum out/big; exit 3"
    words = ("job", "submit", "-J", "keeps", "--restarts", "0", "--collect", "out", "--", "sh", "-c", script)
    assert stado(far, tmp_path, *words).returncode == 0
    j = JobId("default", "keeps", 1)
    end = far.end(j)
    assert (end.exit_code, end.collected["files"]) == (3, 2)
    fetched = stado(far, tmp_path, "job", "fetch", "keeps", "got")
    assert fetched.returncode == 0, fetched.stderr
    digest = hashlib.sha256((tmp_path / "got/out/big").read_bytes()).hexdigest()
    assert far.output(j).decode().split()[0] == digest
    assert (tmp_path / "got/out/empty").read_bytes() == b""
