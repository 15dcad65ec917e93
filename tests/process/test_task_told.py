"""What a task's supervisor knows of it: the terms of its own rank, and the variables that its process is told."""

from __future__ import annotations

from typing import Any

from stado_like.job import codec
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, Job
from stado_worker.shim.task import Read, Task, read_task, told
from tests.builders_jobs import document


def read(rank: int, **spec: Any) -> Read:
    job = Job(
        nonce="n", request_id="r", workspace="default", name="run", incarnation=1, created_ms=1,
        document=document("run", **spec),
    )  # fmt: skip
    a = AttemptId(JobId("default", "run", 1), rank, 1)
    claim = Claim(nonce="n", attempt=str(a), worker="w1")
    return read_task(codec.to_plain(Task(attempt=str(a), store="file:///s", worker="w1", claim=claim, job=job)))


def variables(rank: int, **spec: Any) -> dict[str, str]:
    return told(read(rank, **spec), "/stop", "/folder")


def test_rank_is_global_and_the_rest_is_of_its_group() -> None:
    gpus = {"requested_resources": {"gpu_requests": {"count": 2}}}
    many = {"requested_resources": {"machines": 2}}
    groups = [
        {"name": "ps", "task_template": {"command": "serve", "heartbeat_ttl_seconds": 10, **gpus}},
        {"name": "worker", "task_template": {"command": "work", "env": {"A": "1"}, **many}},
    ]
    seen = read(2, task_groups=groups)
    assert (seen.terms.command, seen.terms.env, seen.terms.ttl_s) == (("work",), {"A": "1"}, 60)
    said = told(seen, "/stop", "/folder")
    assert (said["RANK"], said["WORLD_SIZE"], said["STADO_TASK"]) == ("2", "3", "run-worker-1")
    assert said["STADO_GPU_COUNT"] == "0" and "STADO_ARRAY_TASK_ID" not in said
    first = variables(0, task_groups=groups)
    assert (first["STADO_TASK"], first["STADO_GPU_COUNT"]) == ("run-ps-0", "2")


def test_array_tells_the_index_that_was_asked_for_and_its_entry() -> None:
    array: Any = {"size": 2, "indices": [3, 9], "entries": ["a b", "c"]}
    template = {"command": "cp", "args": ["{}", "to"]}
    seen = read(1, array=array, template=template)
    assert seen.terms.command == ("cp", "c", "to")
    said = told(seen, "/stop", "/folder")
    assert (said["STADO_ARRAY_TASK_ID"], said["STADO_ARRAY_SIZE"], said["STADO_ENTRY"]) == ("9", "2", "c")
    plain = variables(1, array={"size": 2})
    assert plain["STADO_ARRAY_TASK_ID"] == "1" and "STADO_ENTRY" not in plain


def test_braces_without_entries_are_words_like_any_other() -> None:
    assert read(0, template={"command": "echo", "args": ["{}"]}).terms.command == ("echo", "{}")
