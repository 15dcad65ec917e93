"""`task_template`: what every task of a job runs.

There is no shell: `command` is one executable, `args` are its arguments, and the environment is the job's own. What the
kernel would refuse on the machine (a NUL, one string of 128 KiB) is refused here, where the person still sits.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Text, Whole
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.resilience import Resilience
from stado_like.job.spec.resources import RequestedResources


def _reserved_variable(name: str) -> str:
    for prefix in limits.RESERVED_ENV_PREFIXES:
        if name.startswith(prefix):
            return f"Variables beginning with {prefix} are set by the worker and cannot be given"
    return ""


def _blank(command: str) -> str:
    return "Must name an executable, got only white space" if command.isspace() else ""


VariableName = Annotated[
    str,
    Text(
        pattern=r"[A-Za-z_][A-Za-z0-9_]*",
        rule="a variable's name: letters, digits and _, not beginning with a digit",
        also=_reserved_variable,
    ),
]


class TaskTemplate(BaseModel):
    """What every task of a job runs."""

    model_config = PART
    later: ClassVar[frozenset[str]] = frozenset(
        {
            "image",
            "pull_policy",
            "registry_secret_ref",
            "user",
            "volumes",
            "datavolume_refs",
            "secret_refs",
            "configs",
            "security_context",
            "health_check",
            "metrics_endpoint",
            "external_accesses",
            "network",
            "isolation",
            "identity",
            "outputs",
            "tools",
            "agent_sandbox",
            "interactive",
            "init_containers",
            "context_bindings",
            "checkpoint",
        }
    )

    command: Annotated[str, Text(also=_blank)] = Field(
        description="Text, required. One executable, a path or a name looked up in PATH. There is no shell: to expand "
        'variables use "command": "bash" with "args": ["-c", "…"].'
    )
    args: list[Annotated[str, Text(empty=True)]] = Field(
        default_factory=list,
        max_length=limits.ARGS_MAX,
        description="List of texts, default []. The command's arguments, each at most 120 KiB.",
    )
    env: dict[VariableName, Annotated[str, Text(empty=True)]] = Field(
        default_factory=dict,
        max_length=limits.ENV_MAX,
        description="Map of text to text, default {}. Environment variables, each at most 120 KiB with its name; "
        "command, args and env together at most 1 MiB. STADO_* and ASTRAEUS_* are refused.",
    )
    restart_policy: Annotated[str, OneOf(limits.RESTART_POLICIES)] = Field(
        default="OnFailure",
        description="OnFailure, Always or Never; default OnFailure. Whether a task that ended is started again. "
        "on_failure: FailJob makes it Never.",
    )
    time_limit_seconds: Annotated[int, Whole(limits.TIME_LIMIT_S, "seconds")] | None = Field(
        default=None,
        description="Integer, seconds, 60 to 31622400, default none. Counted from when the task is Running. Past it "
        "the task is stopped and fails; it is never restarted.",
    )
    stop_grace_seconds: Annotated[int, Whole(limits.STOP_GRACE_S, "seconds")] | None = Field(
        default=None,
        description="Integer, seconds, 1 to 3600, default the machine's (30). From the stop signal to SIGKILL.",
    )
    heartbeat_ttl_seconds: Annotated[int, Whole(limits.HEARTBEAT_TTL_S, "seconds")] = Field(
        default=limits.DEFAULT_HEARTBEAT_TTL_S,
        description="Integer, seconds, 10 to 86400, default 60. How long a running task may go without a heartbeat "
        "before it turns Stale, then Down.",
    )
    requested_resources: RequestedResources = Field(
        default_factory=RequestedResources, description="CPU, memory and GPUs. Default: 1 core and 1 GiB."
    )
    resilience: Resilience = Field(default_factory=Resilience, description="How it is stopped and restarted.")
