"""The SLURM_* variables that a batch script reads, for a job that asks for them (`slurm_variables`).

Not obvious because scripts do arithmetic with them and call their absence a bug: `SLURM_JOB_ID` has to be a number,
distinct for the tasks of an array (they name scratch folders by it), and below 2^31 (programs read it into an int, or
seed a generator with it). There are no job numbers here, so it is made from the moment of the job's creation: its
milliseconds modulo 2^31, plus the rank in an array. Two jobs may share it only when they were made in the same
millisecond (or 24.8 days apart, to the millisecond), or as close as an array has tasks.

What a script said itself and the terms no longer tell (`-n 4` that became one task of four cores) its import wrote into
the job's own `env`, and a job's own word wins over everything here. Pure.

Source: OUTPUT ENVIRONMENT VARIABLES of sbatch(1), compared with what Slurm 22.05 sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from stado_like.job.keys import AttemptId
from stado_like.job.terms import Terms

JOB_ID_BELOW = 1 << 31


def slurm_job_id(created_ms: int, rank: int = 0) -> int:
    """1 to 2^31 - 1. `rank`: of an array's task; 0 for every member of another job."""
    return (created_ms + rank) % (JOB_ID_BELOW - 1) + 1


def told_slurm(
    terms: Terms,
    a: AttemptId,
    *,
    created_ms: int,
    host: str,
    submit_host: str,
    submit_dir: str,
    hosts: Sequence[str] = (),
) -> dict[str, str]:
    """The job's own `env` is laid over the result.

    `host`: where it runs. `hosts`: the host of each member of a gang, by rank; where they are not known the members
    count as spread evenly, in the order of their ranks. `submit_dir`: where the job was submitted, else where it runs.
    """
    array = terms.array_size > 0
    members, rank = (1, 0) if array else (terms.tasks, a.rank)
    place = _Place(members, rank, host, hosts if len(hosts) == members else (), terms.env)
    job_id = str(slurm_job_id(created_ms, a.rank if array else 0))
    said = {
        "SLURM_JOB_ID": job_id,
        "SLURM_JOBID": job_id,
        "SLURM_JOB_NAME": terms.name,
        "SLURM_JOB_PARTITION": terms.workspace,
        "SLURM_SUBMIT_DIR": submit_dir,
        "SLURM_SUBMIT_HOST": submit_host or host,
        "SLURM_PROCID": str(rank),
        "SLURM_NTASKS": str(members),
        "SLURM_NPROCS": str(members),
    }
    said |= place.told() | _resources(terms, members, place)
    if array:
        said |= _array(terms, created_ms, a.rank)
    if a.n > 1:
        said["SLURM_RESTART_COUNT"] = str(a.n - 1)
    return said | {name: value for name, value in terms.env.items() if name in said}


class _Place:
    """Which node of how many, and which of the node's tasks."""

    def __init__(self, members: int, rank: int, host: str, hosts: Sequence[str], env: Mapping[str, str]) -> None:
        self.host = host
        if hosts:
            self.names = list(dict.fromkeys(hosts))
            self.nodes = len(self.names)
            self.node = self.names.index(hosts[rank])
            self.local = list(hosts[:rank]).count(hosts[rank])
            self.each = max(list(hosts).count(name) for name in self.names)
            return
        asked = env.get("SLURM_NNODES", "")
        self.nodes = min(int(asked), members) if asked.isdecimal() and int(asked) else members
        self.each = -(-members // self.nodes)
        self.node, self.local = divmod(rank, self.each)
        self.names = [host]

    def told(self) -> dict[str, str]:
        named = ",".join(self.names)
        return {
            "SLURM_NNODES": str(self.nodes),
            "SLURM_JOB_NUM_NODES": str(self.nodes),
            "SLURM_NODEID": str(self.node),
            "SLURM_LOCALID": str(self.local),
            "SLURM_JOB_NODELIST": named,
            "SLURM_NODELIST": named,
            "SLURMD_NODENAME": self.host,
            "SLURM_NTASKS_PER_NODE": str(self.each),
            "SLURM_TASKS_PER_NODE": self.times(self.each),
        }

    def times(self, number: int) -> str:
        """`2(x3)`: the same number on each of three nodes."""
        return f"{number}(x{self.nodes})" if self.nodes > 1 else str(number)


def _resources(terms: Terms, members: int, place: _Place) -> dict[str, str]:
    cores = max(1, terms.ask.cpu_millis // 1000)
    said = {
        "SLURM_CPUS_PER_TASK": str(cores),
        "SLURM_CPUS_ON_NODE": str(cores * place.each),
        "SLURM_JOB_CPUS_PER_NODE": place.times(cores * place.each),
    }
    # Programs of Slurm refuse two of these three beside each other.
    if not {"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU"} & terms.env.keys() and terms.ask.memory_bytes:
        said["SLURM_MEM_PER_NODE"] = str((terms.ask.memory_bytes * place.each) >> 20)
    if terms.ask.gpus:
        said["SLURM_GPUS"] = str(terms.ask.gpus * members)
        said["SLURM_GPUS_ON_NODE"] = str(terms.ask.gpus * place.each)
    return said


def _array(terms: Terms, created_ms: int, rank: int) -> dict[str, str]:
    indices: Sequence[int] = terms.array_indices or range(terms.array_size)
    gaps = {after - before for before, after in pairwise(indices)}
    return {
        "SLURM_ARRAY_JOB_ID": str(slurm_job_id(created_ms)),
        "SLURM_ARRAY_TASK_ID": str(indices[rank]),
        "SLURM_ARRAY_TASK_COUNT": str(len(indices)),
        "SLURM_ARRAY_TASK_MIN": str(indices[0]),
        "SLURM_ARRAY_TASK_MAX": str(indices[-1]),
        "SLURM_ARRAY_TASK_STEP": str(gaps.pop() if len(gaps) == 1 else 1),
    }
