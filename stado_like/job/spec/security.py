"""`security_context` and `isolation`: what a container may do to its machine, and what the machine keeps from it.

Privileged work needs a grant of the workspace (`privileged`, a host namespace, `cap_add`, `security_opt`); that is
judged when a job is submitted, against the workspace, not here.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Flag, OneOf, Text, Whole
from stado_like.job.spec.metadata import PART


def _unknown_capability(name: str) -> str:
    bare = name.removeprefix("CAP_")
    if bare == "ALL" or bare in limits.CAPABILITIES:
        return ""
    near = get_close_matches(bare.upper(), limits.CAPABILITIES, n=1)
    return f"Must be a Linux capability such as NET_ADMIN, or ALL{f'; did you mean {near[0]}?' if near else ''}"


Capability = Annotated[str, Text(max_bytes=64, rule="as NET_ADMIN or CAP_NET_ADMIN, or ALL", also=_unknown_capability)]
Namespace = Annotated[str, OneOf(("host", "private"))]
UlimitValue = Annotated[int, Whole(limits.ULIMIT)]


class Ulimit(BaseModel):
    """One resource limit of the task's processes."""

    model_config = PART

    name: Annotated[str, OneOf(limits.ULIMITS)] = Field(description="The limit, without RLIMIT_ and in lower case.")
    soft: UlimitValue = Field(description="Where it begins; -1 is unlimited.")
    hard: UlimitValue = Field(description="How far a process may raise it; -1 is unlimited.")


class SecurityContext(BaseModel):
    """Privileges, namespaces, capabilities, ulimits."""

    model_config = PART

    privileged: Annotated[bool, Flag()] = Field(
        default=False,
        description="Every capability, every device of the machine, a writable /sys.",
    )
    ipc_mode: Namespace = Field(default="private", description="host also gives the machine's /dev/shm.")
    pid_mode: Namespace = Field(default="private", description="host: the task sees the machine's processes.")
    cap_add: list[Capability] = Field(
        default_factory=list,
        max_length=64,
        description="Linux capabilities to add; the CAP_ prefix is optional.",
    )
    cap_drop: list[Capability] = Field(
        default_factory=list,
        max_length=64,
        description="Linux capabilities to take away; the CAP_ prefix is optional.",
    )
    security_opt: list[Annotated[str, Text(max_bytes=4096)]] = Field(
        default_factory=list,
        max_length=64,
        description="Passed to the container runtime as given.",
    )
    ulimits: list[Ulimit] = Field(
        default_factory=list,
        max_length=len(limits.ULIMITS),
        description="Resource limits; those not named keep the machine's.",
    )
