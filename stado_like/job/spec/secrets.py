"""`secret_refs`, `configs` and `registry_secret_ref`: what a task is given beside its arguments.

A document names credentials and never holds them: the machine looks the name up in a table of its own, and the task
waits in Preparing until the value is there. A config is the opposite, a literal file that everybody may read.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Text
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.paths import JobPath, MountPath, ResourceName, VariableName


def _only_dots(key: str) -> str:
    return "Must not be . or .., which are folders" if key in (".", "..") else ""


SecretKey = Annotated[
    str, Text(max_bytes=253, pattern=r"[A-Za-z0-9_.-]+", rule="letters, digits, _ . and -", also=_only_dots)
]
"""A key of a credential; its file has this name."""


class SecretRef(BaseModel):
    """A credential, as files, as variables or both."""

    model_config = PART

    external_secret_name: ResourceName = Field(
        description="The credential, by the name it has in the machine's table of secrets."
    )
    mount_path: MountPath | None = Field(
        default=None, description="A directory that gets one file per key of the credential, read-only."
    )
    env_vars: dict[SecretKey, VariableName] = Field(
        default_factory=dict,
        max_length=limits.SECRET_VARIABLES_MAX,
        description="Map of a key of the credential to the variable that gets its value; these override env.",
    )


class RegistrySecretRef(BaseModel):
    """The credential an image is pulled with."""

    model_config = PART

    external_secret_name: ResourceName = Field(
        description='A credential whose value is JSON: {"username": "…", "password": "…", "server": "…"}.',
    )


class Config(BaseModel):
    """A literal file."""

    model_config = PART

    mounts: list[JobPath] = Field(
        max_length=limits.MOUNTS_MAX,
        description="Every path that the value is written to, read-only.",
    )
    value: Annotated[str, Text(empty=True)] = Field(
        description="What the file holds. The values of a template together are at most 1 MiB."
    )
