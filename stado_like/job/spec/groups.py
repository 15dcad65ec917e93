"""`spec.task_groups`: several kinds of task in one job, a launcher and its workers, a server and its clients.

A group has the whole template of a job. Ranks count through all groups in the order they stand; `depends_on` holds a
group back until another one is up.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Text, later
from stado_like.job.spec.metadata import NAME_FORM, PART
from stado_like.job.spec.task import TaskTemplate

GroupName = Annotated[
    str,
    Text(
        max_bytes=4096,
        pattern=rf"(?=.{{1,{limits.GROUP_NAME_MAX}}}$){NAME_FORM}",
        rule=f"letters, digits, - and _, at most {limits.GROUP_NAME_MAX}, without - at either end",
    ),
]


class Dependency(BaseModel):
    """One group that must be up first."""

    model_config = PART

    group_name: GroupName = Field(description="The group waited for.")
    condition: Annotated[str, OneOf(("Running", "Healthy"))] = Field(
        default="Running",
        description="Running: every task of the group runs. Healthy: and passes its health_check.",
        json_schema_extra=later("Healthy"),
    )


class TaskGroup(BaseModel):
    """One kind of task of a job with several."""

    model_config = PART

    name: GroupName = Field(
        description="The group's name, unique in the job. Its tasks are called <job>-<name>-<index>; the job's name "
        "may have 57 characters minus the longest group's name minus 1."
    )
    task_template: TaskTemplate = Field(
        description="What the group's tasks run: all fields of the job's task_template."
    )
    depends_on: list[Dependency] = Field(
        default_factory=list,
        max_length=limits.GROUPS_MAX,
        description="Groups that must be up before this one is placed. Not with start: Gang.",
    )
