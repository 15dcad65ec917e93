"""`volumes` and `datavolume_refs`: what appears in a task's file system beside its image.

A volume is scratch space or a path of the machine; a drive is data with a name, which has its own place and its own
mode: a reference can move it and narrow it, never widen it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Whole
from stado_like.job.spec.metadata import PART
from stado_like.job.spec.paths import HostPath, InnerPath, MountPath, ResourceName

Mode = Annotated[str, OneOf(limits.MOUNT_MODES)]


class Volume(BaseModel):
    """A scratch directory, or a path of the machine."""

    model_config = PART

    kind: Annotated[str, OneOf(limits.VOLUME_KINDS)] = Field(
        default="EmptyDir",
        description="EmptyDir: an empty, writable directory on the machine, removed with the task's container. Bind: "
        "a path of the machine.",
    )
    mount_path: MountPath = Field(description="Where it appears in the container.")
    host_path: HostPath | None = Field(
        default=None,
        description="The machine's path, required for Bind. Only paths that the workspace is granted.",
    )
    mode: Mode = Field(default="ReadOnly", description="Whether a Bind may be written to; Bind only.")


class DataVolumeRef(BaseModel):
    """A drive to mount."""

    model_config = PART

    name: ResourceName = Field(description="The drive.")
    mount_path: MountPath | None = Field(
        default=None,
        description="Where it appears in the container; left out, at the drive's own place.",
    )
    sub_path: InnerPath | None = Field(default=None, description="Mount only this directory of the drive.")
    mode: Mode | None = Field(
        default=None,
        description="Left out, the drive's own. It can only narrow: a read-only drive is never mounted read-write.",
    )
    source_index: Annotated[int, Whole(limits.SOURCE_INDEX)] | None = Field(
        default=None,
        description="One source of a drive with several; left out, every source.",
    )
