"""`spec` and the whole document: how a job's tasks start, fail and end.

This version runs independent tasks: one, or an array of copies. What gangs and groups need is named where it will
stand and refused with a sentence, so that a specification written for them never runs as something else.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Flag, OneOf, Text, Whole
from stado_like.job.spec.metadata import PART, Metadata
from stado_like.job.spec.task import TaskTemplate

_START = OneOf(("Independent",))
_ON_FAILURE = OneOf(("RestartTask", "FailJob"))


def _leaves_its_folder(path: str) -> str:
    if not path.startswith("/") and ".." in path.split("/"):
        return "Must be an absolute path, or a relative one without .."
    return ""


class Array(BaseModel):
    """Run the template `size` times as independent copies."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset()

    size: Annotated[int, Whole(limits.ARRAY_SIZE)] = Field(
        description="Integer, 1 to 10000, required. How many tasks; index i, from 0, is in STADO_ARRAY_TASK_ID."
    )
    max_parallel: Annotated[int, Whole((0, limits.ARRAY_SIZE[1]))] = Field(
        default=0, description="Integer, 0 to size, default 0. At most this many hold machines at once; 0 is no cap."
    )


class Spec(BaseModel):
    """How a job's tasks start, fail and end."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset(
        {
            "task_groups",
            "leader_group",
            "complete_with",
            "min_available",
            "lifetime",
            "policy",
            "model",
            "shared_volumes",
            "output_volumes",
            "idle_auto_delete",
            "retry_on_heartbeat_expired",
            "max_heartbeat_retries",
            "bundle",
            "deadline",
            "scheduling_timeout_seconds",
            "after",
            "collect",
        }
    )

    priority: Annotated[int, Whole(limits.PRIORITY)] = Field(
        default=0, description="Integer, -1000 to 1000, default 0. Place in the queue: higher first."
    )
    array: Array | None = Field(
        default=None, description="Default none. Run the template `size` times as independent copies."
    )
    start: Annotated[str, _START] = Field(
        default="Independent", description="Independent (the default): each task starts when it fits."
    )
    on_failure: Annotated[str, _ON_FAILURE] = Field(
        default="RestartTask",
        description="RestartTask (the default): restart the task that failed. FailJob: no restart; the job fails and "
        "its other tasks are stopped.",
    )
    max_task_failures: Annotated[int, Whole(limits.MAX_TASK_FAILURES)] = Field(
        default=0,
        description="Integer, 0 to 10000, default 0. How many tasks may fail for good before the job fails and the "
        "rest is stopped.",
    )
    cwd: Annotated[str, Text(max_bytes=limits.PATH_MAX_BYTES, pattern=r"/[\s\S]*", rule="an absolute path")] | None = (
        Field(
            default=None,
            description="Absolute path, default none. The submitter's directory, on a store of the same machine.",
        )
    )
    workdir: Annotated[str, Text(max_bytes=limits.PATH_MAX_BYTES, also=_leaves_its_folder)] | None = Field(
        default=None,
        description="Path, default none. Where the command runs: absolute on the worker, or inside what was shipped "
        "with the job.",
    )
    exclusive: Annotated[bool, Flag()] = Field(
        default=False, description="true or false, default false. Starts only on an idle machine, and alone on it."
    )
    pinned_host: (
        Annotated[
            str,
            Text(
                max_bytes=255,
                pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*",
                rule="a worker's id: letters, digits, _ . and -, beginning with a letter, digit or _",
            ),
        ]
        | None
    ) = Field(default=None, description="Text, default none. Only the worker of this id may claim the tasks.")
    resident: Annotated[bool, Flag()] = Field(
        default=False,
        description="true or false, default false. A service that runs until it is stopped: a worker that hands over "
        "to a newer release puts it back into the queue.",
    )
    terminates_agent: Annotated[bool, Flag()] = Field(
        default=False,
        description="true or false, default false. It ends by stopping the agent that runs it: the agent vanishing is "
        "its success.",
    )
    task_template: TaskTemplate = Field(description="Required. What every task runs.")


class Document(BaseModel):
    """A job as it is submitted. In the API's words: a run."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset()

    metadata: Metadata = Field(description="Required. What the job is called.")
    spec: Spec = Field(description="Required. What it runs, and how its tasks start, fail and end.")
