"""The examples with which the run specification is published, submitted as they stand: accepted, stored, and waiting.

Nothing here can run a container or start a gang yet, so none of them may be taken by a machine that has plenty of room:
each waits and says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.store.url import open_store
from tests import builders_jobs as build
from tests.cli.conftest import Stado

EXAMPLES = Path(__file__).resolve().parent.parent / "data" / "specifications"
MINIMAL = {
    "one-gpu.json": ("export", 1, 1),
    "cpu-only.json": ("etl", 1, 1),
    "gpus-of-any-shape.json": ("pretrain", None, 1),
    "array-of-100.json": ("sweep", 100, 10),
    "shape.json": ("train-resnet", 1, 1),
}
"""Name, tasks (nobody knows before the scheduler picks a shape), and how many of them are queued at once."""


@pytest.fixture(autouse=True)
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    url = f"file://{tmp_path}/store?durable=0"
    monkeypatch.setenv("STADO_STORE", url)
    monkeypatch.chdir(tmp_path)
    return Bucket(open_store(url), ambient=REAL)


def entries(bucket: Bucket, index: str) -> list[keys.Entry]:
    return [keys.parse_entry(row.key) for row in bucket.store.list(index).rows]


def test_the_complete_example_waits_for_its_gang(stado: Stado, bucket: Bucket, tmp_path: Path) -> None:
    file = EXAMPLES / "complete.yaml"
    said = stado("--json", "submit", "-f", file)
    assert said.code == 2
    assert said.error["detail"] == {
        "priority": "Must be at most 0, the maximum priority of workspace default, got 10; an administrator raises it "
        "with stado workspace set default --max-priority 10"
    }
    assert not (tmp_path / "store").exists()
    assert stado("workspace", "set", "default", "--max-priority", "10").code == 0
    said = stado("submit", "-f", file)
    assert (said.code, said.out) == (0, "llama-finetune\n")
    (line,) = [line for line in said.err.splitlines() if line.startswith("accepted, not yet acted upon: ")]
    for part in ("image", "datavolume_refs", "security_context"):
        assert part in line
    assert "secret_refs" not in line and "per_gpu" not in line  # these act
    assert entries(bucket, keys.QUEUED_OPEN) == []
    held = entries(bucket, keys.QUEUED_HELD)
    assert [(one.attempt.rank, one.priority, one.envelope.gpus) for one in held] == [(0, 10, 8), (1, 10, 8)]
    build.worker(bucket, "w1")
    shown = stado("job", "show", "llama-finetune", "--json").value
    assert shown["status"]["state"] == "Pending" and shown["status"]["reason"]
    assert shown["expected_task_count"] == 2
    assert shown["spec"]["on_failure"] == "RestartJob" and shown["spec"]["policy"] == "Gang"
    assert stado("storage", "fsck", "--audit").code == 0


@pytest.mark.parametrize("name", MINIMAL)
def test_a_minimal_example_is_taken_as_it_stands_and_waits_for_containers(
    stado: Stado, bucket: Bucket, name: str
) -> None:
    job, tasks, queued_at_once = MINIMAL[name]
    said = stado("submit", "-f", EXAMPLES / name)
    assert (said.code, said.out) == (0, f"{job}\n")
    assert "accepted, not yet acted upon: " in said.err and "image" in said.err
    build.worker(bucket, "w1")
    shown = stado("job", "show", job, "--json").value
    assert shown["status"]["state"] == "Pending" and shown["status"]["reason"]
    assert shown["expected_task_count"] == tasks
    queued = [*entries(bucket, keys.QUEUED_OPEN), *entries(bucket, keys.QUEUED_HELD)]
    assert queued and all(one.envelope.picky for one in queued)
    assert len(queued) == queued_at_once
    assert stado("storage", "fsck", "--audit").code == 0


def test_the_stored_form_of_each_is_stored_unchanged(stado: Stado, tmp_path: Path) -> None:
    assert stado("workspace", "set", "default", "--max-priority", "10").code == 0
    for path in sorted(EXAMPLES.iterdir()):
        stored = stado("--json", "submit", "--dry-run", "-f", path)
        assert stored.code == 0, (path, stored.err)
        (tmp_path / "again.json").write_bytes(stored.out_bytes)
        assert stado("--json", "submit", "--dry-run", "-f", "again.json").value == stored.value
