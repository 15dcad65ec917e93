"""`task_template`: what every task of a job runs.

There is no shell: `command` is one executable, `args` are its arguments, and the environment is the job's own. Without
an `image` the command runs as a process of the worker's machine. What the kernel would refuse on the machine (a NUL,
one string of 128 KiB) is refused here, where the person still sits.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.checkpoint import Checkpoint, Outputs
from stado_like.job.spec.egress import TaskNetwork
from stado_like.job.spec.fields import MARKED, OneOf, Text, Whole, later, refused
from stado_like.job.spec.health import HealthCheck, MetricsEndpoint
from stado_like.job.spec.images import Image
from stado_like.job.spec.marked import ContextBinding, InitContainer
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.mounts import DataVolumeRef, Volume
from stado_like.job.spec.paths import VariableName, output_file_fault, user_fault
from stado_like.job.spec.resilience import Resilience
from stado_like.job.spec.resources import RequestedResources
from stado_like.job.spec.secrets import Config, RegistrySecretRef, SecretRef
from stado_like.job.spec.security import SecurityContext

NO_IDENTITY = "No certificates are issued to tasks here; give a credential by its name in secret_refs"
NO_EXTERNAL_ACCESS = (
    "Ports are not published to the outside here; reach the task at its machine's address, through a tunnel such as "
    "ssh -L, or let it connect out"
)
NO_TOOLS = "There is no tool gateway here; limit what the task reaches with network.egress and isolation: sandbox"
NO_AGENT_SANDBOX = "There is no agent sandbox here; use isolation: sandbox, and network.egress for what it reaches"
NO_CONSOLE = (
    "There is no console here that leads to a server; run it as a job and reach its port through a tunnel such as "
    "ssh -L"
)


def _blank(command: str) -> str:
    return "Must name an executable, got only white space" if command.isspace() else ""


class TaskTemplate(BaseModel):
    """What every task of a job runs."""

    model_config = PART

    image: Image | None = Field(
        default=None,
        json_schema_extra=later(),
        description="The container image; busybox means docker.io/library/busybox:latest. Left out, the command runs "
        "as a process.",
    )
    pull_policy: Annotated[str, OneOf(limits.PULL_POLICIES)] = Field(
        default="IfNotPresent",
        json_schema_extra=later(),
        description="When the machine pulls the image. None: never; the task fails if the image is not there already.",
    )
    registry_secret_ref: RegistrySecretRef | None = Field(
        default=None,
        json_schema_extra=later(),
        description="The credential that a private registry's image is pulled with.",
    )
    command: Annotated[str, Text(also=_blank)] | None = Field(
        default=None,
        description="One executable, a path or a name looked up in PATH; required without an image, and in place of "
        "the image's ENTRYPOINT and CMD with one. There is no shell: to expand variables use "
        '"command": "bash" with "args": ["-c", "…"].',
    )
    args: list[Annotated[str, Text(empty=True)]] = Field(
        default_factory=list,
        max_length=limits.ARGS_MAX,
        description="The command's arguments, each at most 120 KiB. Without a command they replace the image's CMD.",
    )
    env: dict[VariableName, Annotated[str, Text(empty=True)]] = Field(
        default_factory=dict,
        max_length=limits.ENV_MAX,
        description="Environment variables, each at most 120 KiB with its name; command, args and env together at most "
        "1 MiB. STADO_* and ASTRAEUS_* are refused.",
    )
    user: Annotated[str, Text(max_bytes=255, rule="a name, a uid or uid:gid", also=user_fault)] | None = Field(
        default=None,
        json_schema_extra=later(),
        description="Who runs it. Left out, the image's USER, or the worker's own user.",
    )
    requested_resources: RequestedResources = Field(
        default_factory=RequestedResources,
        description="CPU, memory and GPUs, and where the tasks may go. Left out, 1 core and 1 GiB.",
    )
    restart_policy: Annotated[str, OneOf(limits.RESTART_POLICIES)] = Field(
        default="OnFailure",
        description="Whether a task that ended is started again. lifetime: Service makes it Always, on_failure: "
        "FailJob Never.",
    )
    time_limit_seconds: Annotated[int, Whole(limits.TIME_LIMIT_S, "seconds")] | None = Field(
        default=None,
        description="Counted from when the task is Running. Past it the task is stopped and fails; it is never "
        "restarted.",
    )
    stop_grace_seconds: Annotated[int, Whole(limits.STOP_GRACE_S, "seconds")] | None = Field(
        default=None, description="From the stop signal to SIGKILL; left out, the machine's (30)."
    )
    volumes: list[Volume] = Field(
        default_factory=list,
        json_schema_extra=later(),
        max_length=limits.MOUNTS_MAX,
        description="Scratch directories and paths of the machine.",
    )
    datavolume_refs: list[DataVolumeRef] = Field(
        default_factory=list, json_schema_extra=later(), max_length=limits.MOUNTS_MAX, description="Drives to mount."
    )
    secret_refs: list[SecretRef] = Field(
        default_factory=list, max_length=limits.MOUNTS_MAX, description="Credentials, as files or variables."
    )
    configs: list[Config] = Field(default_factory=list, max_length=limits.MOUNTS_MAX, description="Literal files.")
    security_context: SecurityContext | None = Field(
        default=None, json_schema_extra=later(), description="Privileges, namespaces, capabilities, ulimits."
    )
    health_check: HealthCheck | None = Field(default=None, json_schema_extra=later(), description="A readiness probe.")
    metrics_endpoint: MetricsEndpoint | None = Field(
        default=None, json_schema_extra=later(), description="A Prometheus endpoint that the machine scrapes."
    )
    external_accesses: Annotated[list[Any], refused(NO_EXTERNAL_ACCESS, allowed=[])] = Field(
        default_factory=list, description="Ports reachable from outside the cluster."
    )
    heartbeat_ttl_seconds: Annotated[int, Whole(limits.HEARTBEAT_TTL_S, "seconds")] = Field(
        default=limits.DEFAULT_HEARTBEAT_TTL_S,
        description="How long a running task may go without a heartbeat before it turns Stale, then Down.",
    )
    network: TaskNetwork | None = Field(
        default=None, json_schema_extra=later(), description="What the tasks may reach outbound."
    )
    isolation: Annotated[str, OneOf(("standard", "sandbox"))] = Field(
        default="standard",
        json_schema_extra=later("sandbox"),
        description="sandbox runs each task under gVisor, on machines that have it. Not with GPUs, privileged, or the "
        "machine's PID or IPC namespace.",
    )
    identity: Annotated[bool, refused(NO_IDENTITY, allowed=False)] = Field(
        default=False, description="A certificate and a signed token for each task."
    )
    outputs: Outputs | None = Field(default=None, description="What a task reports when it ends.")
    tools: Annotated[Any, refused(NO_TOOLS)] = Field(default=None, description="An agent's tool policy.")
    agent_sandbox: Annotated[Any, refused(NO_AGENT_SANDBOX)] = Field(default=None, description="An agent's sandbox.")
    interactive: Annotated[Any, refused(NO_CONSOLE)] = Field(
        default=None, description="A server reached through a console, such as a notebook."
    )
    init_containers: list[InitContainer] = Field(
        default_factory=list,
        json_schema_extra=MARKED,
        max_length=limits.MOUNTS_MAX,
        description="Containers before the task; they do not run.",
    )
    context_bindings: list[ContextBinding] = Field(
        default_factory=list,
        json_schema_extra=MARKED,
        max_length=limits.MOUNTS_MAX,
        description="Contexts to mount; they are not mounted.",
    )
    checkpoint: Checkpoint | None = Field(
        default=None, description="A directory that is kept from one attempt to the next, on any machine."
    )
    output_file: (
        Annotated[
            str,
            Text(
                max_bytes=limits.PATH_MAX_BYTES,
                rule="a path, absolute or relative to the working directory",
                also=output_file_fault,
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="A copy of the task's log is written there. In it %x is the job's name, %j its id, %A the array's "
        "id, %a the array's index, %t the task's rank, %N the machine, and %% a percent sign; sbatch's other letters "
        "and widths (%4t) work too.",
    )
    resilience: Resilience = Field(default_factory=Resilience, description="How it is stopped and restarted.")
