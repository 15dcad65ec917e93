"""What a supervisor must know of its attempt, as its agent wrote it to `task.json` before asking for the launch.

A supervisor reads the store as little as it can: the job, the claim, what was spent before and the store's time at
the claim all come from here, so a short task needs no request before its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stado_like.job import codec, keys
from stado_like.job.gang_records import Barrier, Placement
from stado_like.job.keys import AttemptId
from stado_like.job.records import Budgets, Claim, End, Job
from stado_like.job.terms import Terms, command_of, display_name, terms_of
from stado_worker.shim.gang_told import told_gang
from stado_worker.shim.slurm import told_slurm

PROGRESS = "progress"
OUTPUTS = "outputs"
"""Files in the attempt's folder: what a task says of itself, as `key=value`."""
DEFAULT_GRACE_S = 30
MOST_GRACE_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One attempt to run. `claimed_boot_s` is this machine's boot clock when the claim was sent, `claimed_at` the
    store's time then. Of a gang's member: its generation's `placement`, and the `barrier` where that was open already.
    """

    attempt: str
    store: str
    worker: str
    claim: Claim
    job: Job
    previous: End | None = None
    claimed_boot_s: float = 0.0
    claimed_at: float = 0.0
    fsync: bool = True
    grace_s: int = DEFAULT_GRACE_S
    most_grace_s: int = MOST_GRACE_S
    address: str = ""
    placement: Placement | None = None
    barrier: Barrier | None = None
    requests: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Read:
    """A task with what follows from it. `terms`: as its own rank sees them, `{}` in the command filled in."""

    task: Task
    a: AttemptId
    terms: Terms
    whole: Terms
    """The job's, as all ranks share them."""

    @property
    def budgets(self) -> Budgets:
        return self.task.previous.budgets if self.task.previous is not None else Budgets()

    @property
    def waits_at_barrier(self) -> bool:
        """Whether it starts only together with others."""
        placement, barrier = self.task.placement, self.task.barrier
        return placement is not None and placement.barrier and not (barrier is not None and barrier.go)

    @property
    def stop_grace_s(self) -> int:
        """The run's own grace, at most the machine's ceiling; else the machine's."""
        own = self.terms.stop_grace_s
        return self.task.grace_s if own is None else min(own, self.task.most_grace_s)


def read_task(plain: Mapping[str, Any]) -> Read:
    """Raises `BadRecord`."""
    return read_of(codec.from_plain(Task, plain, "task.json"))


def read_of(task: Task) -> Read:
    """Raises `BadRecord`."""
    a = AttemptId.parse(task.attempt)
    whole = terms_of(task.job.document)
    terms = whole.for_rank(a.rank)
    if terms.array_entries:
        terms = replace(terms, command=command_of(terms, a.rank))
    return Read(task, a, terms, whole)


def carried(read: Read, rank: int) -> Read:
    """The first attempt of a rank, as the task of its block says it: nothing is read a second time."""
    a = AttemptId(read.a.job, rank, 1)
    terms = read.whole.for_rank(rank)
    if terms.array_entries:
        terms = replace(terms, command=command_of(terms, rank))
    return Read(replace(read.task, attempt=str(a)), a, terms, read.whole)


def told(read: Read, stop_file: str, folder: str, host: str = "") -> dict[str, str]:
    """What the process is told: STADO_*, the variables that distributed programs expect and, where the job asks for
    them, those of Slurm. `host`: this machine's name, where it is not its worker's id."""
    task, a, terms = read.task, read.a, read.terms
    said = {
        "STADO_ATTEMPT": str(a.n),
        "STADO_ATTEMPT_ID": task.attempt,
        "STADO_STOP_FILE": stop_file,
        "STADO_JOB": str(a.job),
        "STADO_TASK": display_name(terms, a.rank),
        "STADO_WORKSPACE": a.job.workspace,
        "STADO_STORE": task.store,
        "STADO_CHECKPOINT_URL": f"{task.store.partition('?')[0].rstrip('/')}/{keys.checkpoints_of(a).rstrip('/')}",
        "STADO_OUTPUTS": f"{folder}/{OUTPUTS}",
        "STADO_PROGRESS": f"{folder}/{PROGRESS}",
        "STADO_GPU_COUNT": str(terms.ask.on(task.claim.devices).gpus),
        "RANK": str(a.rank),
        "WORLD_SIZE": str(terms.tasks),
    }
    said |= told_gang(terms, a.rank, task.placement, task.barrier)
    if terms.array_size:
        said["STADO_ARRAY_TASK_ID"] = str(terms.array_indices[a.rank] if terms.array_indices else a.rank)
        said["STADO_ARRAY_SIZE"] = str(terms.array_size)
    if terms.array_entries:
        said["STADO_ENTRY"] = terms.array_entries[a.rank]
    if terms.slurm_variables:
        said |= slurm_of(read, folder, host)
    if task.previous is not None:
        said["STADO_RESTART_CAUSE"] = task.previous.cause.value
        said["STADO_RESTART_REASON"] = task.previous.reason
    return said


def slurm_of(read: Read, folder: str, host: str = "") -> dict[str, str]:
    """The variables of a Slurm job, whether or not the task is told them: the name of its output file is made of
    them."""
    job = read.task.job
    return told_slurm(
        read.terms,
        read.a,
        created_ms=job.created_ms,
        host=host or read.task.worker,
        submit_host=job.submitted_from,
        submit_dir=read.terms.cwd or read.terms.workdir or f"{folder}/scratch",
    )
