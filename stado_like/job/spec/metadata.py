"""`metadata`: what a job is called, and by whom it is found again.

The name becomes part of keys and, with the rank, of a DNS label; labels are free, but not under the prefixes that the
machinery writes itself.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import Text

NAME_FORM = "[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
WORKSPACE_FORM = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
NAME_PATTERN = rf"(?=.{{1,{limits.NAME_MAX}}}$){NAME_FORM}"
WORKSPACE_PATTERN = rf"(?=.{{1,{limits.NAME_MAX}}}$){WORKSPACE_FORM}"
INCARNATION_FORM = "[1-9][0-9]{0,8}"

PART = ConfigDict(extra="forbid", strict=True, frozen=True)
"""Every part of the document: unknown fields are refused, nothing is coerced."""


def _reserved_label(key: str) -> str:
    for prefix in limits.RESERVED_LABEL_PREFIXES:
        if key.startswith(prefix):
            return f"Keys under {prefix} are reserved"
    return ""


def _control_in(value: str) -> str:
    return "" if value.isprintable() else "Must not contain control characters"


Name = Annotated[
    str,
    Text(
        max_bytes=4096,
        pattern=NAME_PATTERN,
        rule=f"letters, digits, - and _, at most {limits.NAME_MAX}, without - at either end",
    ),
]
Workspace = Annotated[
    str,
    Text(
        max_bytes=4096,
        pattern=WORKSPACE_PATTERN,
        rule=f"lower-case letters, digits and -, at most {limits.NAME_MAX}, without - at either end",
    ),
]
LabelKey = Annotated[
    str,
    Text(
        max_bytes=limits.LABEL_KEY_MAX,
        pattern=r"[A-Za-z0-9_][A-Za-z0-9_./-]*",
        rule="letters, digits, _ . / and -, beginning with a letter, digit or _",
        also=_reserved_label,
    ),
]
LabelValue = Annotated[str, Text(max_bytes=limits.LABEL_VALUE_MAX, also=_control_in, empty=True)]

Parent = Annotated[
    str,
    Text(
        max_bytes=4096,
        pattern=rf"{WORKSPACE_FORM}\.{NAME_FORM}\.{INCARNATION_FORM}",
        rule="a job's id, workspace.name.incarnation",
    ),
]


class Metadata(BaseModel):
    """What a job is called, and by whom it is found again."""

    model_config = PART

    name: Name = Field(
        description="The job's name, unique in its workspace. With task_groups it may have 57 characters minus the "
        "longest group's name minus 1, so that every task's name stays a DNS label. Its tasks are called <name>-<rank>."
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict,
        max_length=limits.LABELS_MAX,
        description="Labels of your own, at most 64; every task carries them. Keys under astraeus.io/, "
        "job.astraeus.io/ and stado.io/ are reserved.",
    )
    workspace: Workspace = Field(default=limits.DEFAULT_WORKSPACE, description="Whose job it is.")
    parent: Parent | None = Field(
        default=None,
        description="The job whose task submitted this one, as STADO_JOB names it there; it ends with its parent.",
    )
