"""`init_containers` and `context_bindings`: checked and stored, and never acted upon.

The published specification says so itself; they are here so that a document which has them is taken as it stands, and
one that has them wrong is told.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Text
from stado_like.job.spec.images import Image
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.paths import MountPath, ResourceName, VariableName


class InitContainer(BaseModel):
    """A container that would run before the task. It does not."""

    model_config = PART

    name: ResourceName | None = Field(default=None, description="What it is called.")
    image: Image = Field(description="Its image.")
    command: Annotated[str, Text()] | None = Field(default=None, description="One executable, instead of the image's.")
    args: list[Annotated[str, Text(empty=True)]] = Field(
        default_factory=list, max_length=limits.ARGS_MAX, description="Its arguments."
    )
    env: dict[VariableName, Annotated[str, Text(empty=True)]] = Field(
        default_factory=dict, max_length=limits.ENV_MAX, description="Its variables."
    )


class ContextBinding(BaseModel):
    """A context that would be mounted. It is not."""

    model_config = PART

    name: ResourceName = Field(description="The context.")
    mount_path: MountPath | None = Field(default=None, description="Where it would appear in the container.")
    mode: Annotated[str, OneOf(limits.MOUNT_MODES)] = Field(
        default="ReadOnly", description="Whether it could be written to."
    )
