"""What a task of a Slurm script is told: the numbers that Slurm 22.05 set for the same options, and those of gangs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.job.keys import AttemptId
from stado_like.job.spec.validate import validate
from stado_like.job.terms import Terms, terms_of
from stado_like.sbatch import read_script
from stado_worker.shim.slurm import JOB_ID_BELOW, slurm_job_id, told_slurm

CREATED_MS = 1_790_000_000_000


def terms(directives: str, body: str = "echo") -> Terms:
    lines = "".join(f"#SBATCH {line}\n" for line in directives.split("\n"))
    document = read_script(f"#!/bin/bash\n{lines}{body}\n", "job.sh").document
    return terms_of(validate({**document, "metadata": {"name": "job", **document["metadata"]}}))


def told(asked: Terms, rank: int = 0, n: int = 1, **more: Any) -> dict[str, str]:
    """All that the task finds: the job's own variables first."""
    a = AttemptId.parse(f"default.{asked.name}.1.{rank:05}.{n:06}")
    where: dict[str, Any] = {"host": "vm", "submit_host": "vm", "submit_dir": "/tmp", **more}
    said = told_slurm(asked, a, created_ms=CREATED_MS, **where)
    return {**said, **asked.env}


ONE_NODE = {
    "SLURMD_NODENAME": "vm",
    "SLURM_JOB_NODELIST": "vm",
    "SLURM_NODELIST": "vm",
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_NNODES": "1",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_SUBMIT_DIR": "/tmp",
    "SLURM_SUBMIT_HOST": "vm",
}

AS_SLURM_SET_THEM = [
    (
        "-J one",
        {
            **ONE_NODE,
            "SLURM_JOB_NAME": "one",
            "SLURM_CPUS_ON_NODE": "1",
            "SLURM_JOB_CPUS_PER_NODE": "1",
            "SLURM_TASKS_PER_NODE": "1",
        },
    ),
    (
        "-n 2 --mem=500",
        {
            **ONE_NODE,
            "SLURM_NTASKS": "2",
            "SLURM_NPROCS": "2",
            "SLURM_TASKS_PER_NODE": "2",
            "SLURM_CPUS_ON_NODE": "2",
            "SLURM_JOB_CPUS_PER_NODE": "2",
            "SLURM_MEM_PER_NODE": "500",
        },
    ),
    (
        "-c 2 --mem-per-cpu=100 --export=NONE",
        {
            **ONE_NODE,
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_CPUS_ON_NODE": "2",
            "SLURM_JOB_CPUS_PER_NODE": "2",
            "SLURM_MEM_PER_CPU": "100",
            "SLURM_EXPORT_ENV": "NONE",
            "SLURM_TASKS_PER_NODE": "1",
        },
    ),
    (
        "-a 1-7:3",
        {
            **ONE_NODE,
            "SLURM_ARRAY_TASK_ID": "1",
            "SLURM_ARRAY_TASK_COUNT": "3",
            "SLURM_ARRAY_TASK_MIN": "1",
            "SLURM_ARRAY_TASK_MAX": "7",
            "SLURM_ARRAY_TASK_STEP": "3",
        },
    ),
    (
        "-a 4,5,9",
        {"SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_STEP": "1"},
    ),
]


@pytest.mark.parametrize(("directives", "expected"), AS_SLURM_SET_THEM, ids=[row[0] for row in AS_SLURM_SET_THEM])
def test_variables_are_those_that_slurm_sets(directives: str, expected: dict[str, str]) -> None:
    found = told(terms(directives))
    assert {name: found.get(name) for name in expected} == expected


def test_memory_is_told_in_one_way_only() -> None:
    """Programs of Slurm refuse two of them: mutually exclusive."""
    assert "SLURM_MEM_PER_NODE" not in told(terms("-c 2 --mem-per-cpu=100"))
    assert "SLURM_MEM_PER_NODE" not in told(terms("-G 1 --mem-per-gpu=100"))


def test_the_last_task_of_an_array() -> None:
    found = told(terms("-a 1-96:5"), rank=19)
    assert (found["SLURM_ARRAY_TASK_ID"], found["SLURM_ARRAY_TASK_MAX"]) == ("96", "96")
    assert int(found["SLURM_JOB_ID"]) == int(found["SLURM_ARRAY_JOB_ID"]) + 19
    assert (found["SLURM_PROCID"], found["SLURM_NTASKS"], found["SLURM_NNODES"]) == ("0", "1", "1")
    assert told(terms("-a 0-4"), rank=3)["SLURM_ARRAY_TASK_ID"] == "3"


def test_members_on_machines_of_their_own() -> None:
    asked = terms("-N 3 -c 4 --mem=8G --gpus-per-node=2")
    found = told(asked, rank=2, host="c", hosts=("a", "b", "c"))
    assert {
        "SLURM_NTASKS": "3",
        "SLURM_NNODES": "3",
        "SLURM_PROCID": "2",
        "SLURM_NODEID": "2",
        "SLURM_LOCALID": "0",
        "SLURM_JOB_NODELIST": "a,b,c",
        "SLURMD_NODENAME": "c",
        "SLURM_TASKS_PER_NODE": "1(x3)",
        "SLURM_JOB_CPUS_PER_NODE": "4(x3)",
        "SLURM_GPUS": "6",
        "SLURM_GPUS_ON_NODE": "2",
        "SLURM_MEM_PER_NODE": "8192",
    }.items() <= found.items()
    assert len({told(asked, rank=rank)["SLURM_JOB_ID"] for rank in range(3)}) == 1


def test_members_that_share_machines() -> None:
    asked = terms("-N 2 -n 8 -c 2 --mem=8G", "srun ./a")
    for hosts in (("a",) * 4 + ("b",) * 4, ()):
        found = told(asked, rank=6, host="b", hosts=hosts)
        assert {
            "SLURM_NTASKS": "8",
            "SLURM_NNODES": "2",
            "SLURM_NODEID": "1",
            "SLURM_LOCALID": "2",
            "SLURM_TASKS_PER_NODE": "4(x2)",
            "SLURM_CPUS_PER_TASK": "2",
            "SLURM_CPUS_ON_NODE": "8",
            "SLURM_MEM_PER_NODE": "8192",
        }.items() <= found.items()


def test_a_restart_counts_from_the_second_attempt() -> None:
    asked = terms("-J a")
    assert "SLURM_RESTART_COUNT" not in told(asked)
    assert told(asked, n=4)["SLURM_RESTART_COUNT"] == "3"


def test_the_jobs_own_word_wins() -> None:
    found = told(terms("-J 'my job' -p gpu --export=SLURM_SUBMIT_DIR=/data,SLURM_NNODES=junk"))
    assert found["SLURM_JOB_NAME"] == "my job"
    assert found["SLURM_JOB_PARTITION"] == "gpu"
    assert found["SLURM_SUBMIT_DIR"] == "/data"
    assert found["SLURM_NNODES"] == "junk"


@given(st.integers(0, 1 << 45), st.integers(0, 9_999))
def test_a_job_id_is_a_positive_number_below_two_to_the_31(created_ms: int, rank: int) -> None:
    assert 0 < slurm_job_id(created_ms, rank) < JOB_ID_BELOW
    assert slurm_job_id(created_ms, rank) != slurm_job_id(created_ms, rank + 1)
