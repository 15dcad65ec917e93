"""Workers with GPUs: a job goes where those are that it asks for, or takes all that are free; others say why not."""

from __future__ import annotations

import json

import pytest

from stado_like.job.ids import AttemptId
from stado_like.job.terms import terms_of
from stado_like.reading.surroundings import Surroundings
from tests.process.rig import Rig

pytestmark = pytest.mark.serial

GIB = 1 << 30
ROOM = ("--cpus", "8", "--memory", "8GiB")


def asks(count: int, **kind: object) -> dict[str, object]:
    return {"cpu_cores": 1, "memory_bytes": GIB, "gpu_requests": {"count": count, **kind}}


def test_job_goes_where_its_gpus_are_and_others_say_why_not(rig: Rig) -> None:
    for worker, model in (("w1", "T4"), ("w2", "H100")):
        path = rig.folder / f"{worker}.json"
        path.write_text(json.dumps({"gpus": [{"model": model, "memory_bytes": 80 * GIB}] * 2}))
        rig.worker(worker, *ROOM, "--gpus", f"file:{path}")
    gate = rig.folder / "gate"
    hold = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    first = rig.submit("first", hold, task={"requested_resources": asks(2, models=["H100"], min_memory_gb=80)})
    assert rig.running(first).worker == "w2"
    second = rig.submit("second", "true", task={"requested_resources": asks(1, models=["H100"])})
    third = rig.submit("third", "true", task={"requested_resources": asks(1, models=["T4"])})
    assert rig.end(third).worker == "w1"

    job = rig.bucket.job(second)
    assert job is not None
    said = {one.name: one.reasons for one in Surroundings(rig.bucket).nodes(terms_of(job.document))}
    assert said["w1"] == ("no H100 GPU",)
    (kept,) = [json.loads(path.read_text()) for path in rig.folder.rglob("claim.json") if "first" in str(path)]
    assert kept["ask"]["devices"] == ["0", "1"]
    gate.touch()
    assert rig.end(second).worker == "w2"


def test_every_free_gpu_is_taken_and_the_task_is_told_how_many(rig: Rig) -> None:
    path = rig.folder / "gpus.json"
    path.write_text(json.dumps({"gpus": [{"id": f"card-{n}", "model": "T4"} for n in range(4)]}))
    rig.worker("w1", *ROOM, "--gpus", f"file:{path}")
    gate = rig.folder / "gate"
    hold = f"echo gpus=$STADO_GPU_COUNT; while [ ! -e {gate} ]; do sleep 0.05; done"
    one = rig.submit("one", hold, task={"requested_resources": asks(1)})
    rig.running(one)
    per_gpu = {"per_gpu": {"cpu_cores": 1.5, "memory_bytes": GIB}, "gpu_requests": {"policy": "All"}}
    every = rig.submit("every", hold, task={"requested_resources": per_gpu})
    rig.running(every)
    claim = rig.bucket.claim(AttemptId(every, 0, 1))
    assert claim is not None and claim.record.devices == ("card-1", "card-2", "card-3")
    late = rig.submit("late", "true", task={"requested_resources": asks(1)})
    after = rig.submit("after", "true", task={"requested_resources": asks(0)})
    rig.end(after)
    assert rig.bucket.claim(AttemptId(late, 0, 1)) is None, "no GPU is left for it"
    gate.touch()
    for each in (one, every, late):
        rig.end(each)
    assert b"gpus=3" in rig.output(every) and b"gpus=1" in rig.output(one)
    (kept,) = [json.loads(path.read_text()) for path in rig.folder.rglob("claim.json") if ".every." in str(path)]
    assert (kept["ask"]["gpus"], kept["ask"]["cpu_millis"]) == (3, 4500)


def test_gang_takes_every_gpu_of_the_machines_that_a_tick_chose(rig: Rig) -> None:
    for worker, gpus in (("w1", 2), ("w2", 3), ("w3", 1)):
        rig.worker(worker, *ROOM, "--gpus", str(gpus))
    with rig.coordinator():
        resources = {"gpu_requests": {"count": 4, "policy": "All"}}
        j = rig.submit("all", "echo gpus=$STADO_GPU_COUNT", start="Gang", task={"requested_resources": resources})
        ends = [rig.end(j, rank, within_s=40) for rank in range(2)]
    assert {one.worker for one in ends} == {"w1", "w2"}
    told = {one.worker: rig.output(j, rank) for rank, one in enumerate(ends)}
    assert told == {"w1": b"gpus=2\n", "w2": b"gpus=3\n"}
