"""`spec` and the whole document: how a job's tasks start, fail and end.

`start` and `on_failure` are what a job says; `policy` is their older form, in one word. `validate` settles the three: a
stored document has all of them, and they agree. A field that no machinery acts upon yet says so where it stands.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.array import Array
from stado_like.job.spec.fields import MARKED, Flag, Moment, OneOf, Text, Whole, absolute_path, refused
from stado_like.job.spec.groups import GroupName, TaskGroup
from stado_like.job.spec.kept import IdleAutoDelete, OutputVolume, SharedVolume
from stado_like.job.spec.metadata import INCARNATION_FORM, NAME_FORM, PART, WORKSPACE_FORM, Metadata
from stado_like.job.spec.task import TaskTemplate


def _leaves_its_folder(path: str) -> str:
    if not path.startswith("/") and ".." in path.split("/"):
        return "Must be an absolute path, or a relative one without .."
    return ""


FolderPath = Annotated[str, Text(max_bytes=limits.PATH_MAX_BYTES, also=_leaves_its_folder)]
WorkerId = Annotated[
    str,
    Text(
        max_bytes=255,
        pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
        rule="a worker's id: letters, digits, _ . and -, beginning with a letter, digit or _",
    ),
]
JobWords = Annotated[
    str,
    Text(
        max_bytes=4096,
        pattern=rf"({WORKSPACE_FORM}/)?{NAME_FORM}(\.{INCARNATION_FORM})?"
        rf"|{WORKSPACE_FORM}\.{NAME_FORM}\.{INCARNATION_FORM}",
        rule="a job: NAME, NAME.INCARNATION, WORKSPACE/NAME, WORKSPACE/NAME.INCARNATION or WORKSPACE.NAME.INCARNATION",
    ),
]
MODEL = refused(
    "No models are served here; leave it out, and let the command load the weights from a directory or a drive "
    "(datavolume_refs)",
    code="MODELS_NOT_SERVED",
)


class After(BaseModel):
    """One job that must be over first."""

    model_config = PART

    job: JobWords = Field(description="The job waited for; a name alone is one of the same workspace.")
    state: Annotated[str, OneOf(limits.JOB_STATES, limits.JOB_STATE_NAMES)] = Field(
        default="Completed",
        description="How it must have ended: Completed (afterok), Failed (afternotok; Unschedulable is a failure too), "
        "or Ended, however (afterany). Stored under the first names. Once it has ended otherwise, or was deleted, this "
        "one is cancelled.",
    )


class Spec(BaseModel):
    """How a job's tasks start, fail and end."""

    model_config = PART

    priority: Annotated[int, Whole(limits.PRIORITY)] = Field(
        default=0,
        description="Place in the queue: higher first, and may preempt lower. At most the workspace's maximum, which "
        "is 0 unless it was raised.",
    )
    array: Array | None = Field(default=None, description="Run the template `size` times as independent copies.")
    start: Annotated[str, OneOf(limits.STARTS)] = Field(
        default="Independent",
        description="Gang: every task placed and started together, or none. MinAvailable: starts once min_available "
        "tasks can be placed together; the rest join as room appears. Independent: each task when it fits. Left out, "
        "policy says it.",
    )
    min_available: Annotated[int, Whole((1, limits.TASKS_MAX))] | None = Field(
        default=None,
        description="How many tasks must start together. Required with start: MinAvailable, refused otherwise.",
    )
    on_failure: Annotated[str, OneOf(limits.ON_FAILURES)] = Field(
        default="RestartTask",
        description="RestartJob: restart every task (the default of a gang). RestartTask: restart the one that failed; "
        "in a gang, the leader's failure still restarts all. FailJob: no restart; the job fails and its other tasks "
        "are stopped.",
    )
    lifetime: Annotated[str, OneOf(("Batch", "Service"))] = Field(
        default="Batch",
        description="Batch runs to completion. Service runs until it is stopped: every task is restarted whenever it "
        "ends (restart_policy becomes Always), and the job never completes.",
    )
    policy: Annotated[str, OneOf(limits.POLICIES)] = Field(
        default="Independent",
        description="The older form of start and on_failure: Gang is Gang and RestartJob, GangIndependent is Gang and "
        "RestartTask. Where either of those is given, it is rewritten to match.",
    )
    max_task_failures: Annotated[int, Whole(limits.MAX_TASK_FAILURES)] = Field(
        default=0, description="How many tasks may fail for good before the job fails and the rest is stopped."
    )
    deadline: Annotated[str, Moment()] | None = Field(
        default=None,
        description="Tasks that have not started by then never do: one that still waits makes the job Unschedulable. "
        "What runs then runs on. Stored in UTC.",
    )
    scheduling_timeout_seconds: Annotated[int, Whole(limits.SCHEDULING_TIMEOUT_S, "seconds")] | None = Field(
        default=None,
        description="How long a task may wait for a machine, at first and before each restart. One that waited longer "
        "makes the job Unschedulable. Time that it waits for other jobs, groups or its lane does not count.",
    )
    after: list[After] = Field(
        default_factory=list, max_length=limits.AFTER_MAX, description="Jobs that must be over before this one starts."
    )
    checkpoint_from: (
        Annotated[
            str,
            Text(
                pattern=rf"{WORKSPACE_FORM}\.{NAME_FORM}\.{INCARNATION_FORM}",
                rule="a job as STADO_JOB says it: WORKSPACE.NAME.INCARNATION",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="A job whose newest checkpoints the tasks start from, each from that of its own rank; set by "
        "job rerun --from-checkpoint.",
    )
    cwd: Annotated[str, absolute_path()] | None = Field(
        default=None, description="The submitter's directory, on a store of the same machine: the command runs there."
    )
    bundle: (
        Annotated[
            str, Text(pattern="[0-9a-f]{64}", rule="64 hexadecimal digits in lower case, the SHA-256 of a bundle")
        ]
        | None
    ) = Field(default=None, description="What --workdir shipped with the job: the digest of the archive.")
    workdir: FolderPath | None = Field(
        default=None,
        description="Where the command runs: absolute on the worker, or inside what was shipped with the job.",
    )
    collect: list[FolderPath] = Field(
        default_factory=list,
        max_length=limits.COLLECT_MAX,
        description="Files and directories that are kept when a task ends, absolute or relative to where it ran; "
        "* ? [a-z] and ** (any depth) stand for names. `stado job fetch` brings them.",
    )
    slurm_variables: Annotated[bool, Flag()] = Field(
        default=False, description="Tasks also find the SLURM_* variables that a batch script reads."
    )
    exclusive: Annotated[bool, Flag()] = Field(
        default=False, description="Starts only on an idle machine, and alone on it."
    )
    pinned_host: WorkerId | None = Field(default=None, description="Only the worker of this id may claim the tasks.")
    resident: Annotated[bool, Flag()] = Field(
        default=False,
        description="A service that runs until it is stopped: a worker that hands over to a newer release puts it back "
        "into the queue.",
    )
    terminates_agent: Annotated[bool, Flag()] = Field(
        default=False,
        description="It ends by stopping the agent that runs it: the agent vanishing is its success.",
    )
    leader_group: GroupName | None = Field(
        default=None,
        description="With task_groups: the group whose first task leads (its machine is MASTER_ADDR). Left out: the "
        "first group.",
    )
    complete_with: GroupName | None = Field(
        default=None,
        description="With task_groups: the group whose completion completes the job. The other groups are then "
        "stopped, and one of them failing for good fails the job. Not with lifetime: Service.",
    )
    task_template: TaskTemplate | None = Field(
        default=None, description="What every task runs. Required unless task_groups is set; left out when it is."
    )
    task_groups: list[TaskGroup] = Field(
        default_factory=list,
        max_length=limits.GROUPS_MAX,
        description="Several kinds of task in one job, each with a template. Ranks count through all groups in the "
        "order they stand.",
    )
    model: Annotated[Any, MODEL] = Field(default=None, description="A model of the workspace, mounted in the tasks.")
    shared_volumes: list[SharedVolume] = Field(
        default_factory=list,
        max_length=limits.SHARED_VOLUMES_MAX,
        description="Checked and stored; no drive is created. Use a drive and datavolume_refs.",
    )
    output_volumes: list[OutputVolume] = Field(
        default_factory=list,
        max_length=limits.SHARED_VOLUMES_MAX,
        description="As shared_volumes, with retain: true by default.",
    )
    idle_auto_delete: IdleAutoDelete | None = Field(
        default=None, description="Checked and stored; nothing is deleted for being idle."
    )
    retry_on_heartbeat_expired: Annotated[bool, Flag()] = Field(
        default=False,
        json_schema_extra=MARKED,
        description="Not read: a task lost with its machine is restarted according to its restart_policy.",
    )
    max_heartbeat_retries: Annotated[int, Whole(limits.HEARTBEAT_RETRIES)] = Field(
        default=0, json_schema_extra=MARKED, description="Not read; see resilience.max_machine_restarts."
    )


class Document(BaseModel):
    """A job as it is submitted. In the API's words: a run."""

    model_config = PART

    metadata: Metadata = Field(description="What the job is called, and whose it is.")
    spec: Spec = Field(description="What it runs, and how its tasks start, fail and end.")
