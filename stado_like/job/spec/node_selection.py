"""`node_selection`: which machines, by name or label, and how many tasks.

What other systems call replicas is `count` here. It is often written as a text (`"4"`), because it comes from a
template; it is stored as the integer.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from stado_like.job.spec import limits
from stado_like.job.spec.fields import OneOf, Text, WholeOrText
from stado_like.job.spec.metadata import PART, LabelValue
from stado_like.job.spec.paths import ResourceName

MachineLabel = Annotated[
    str,
    Text(
        max_bytes=limits.LABEL_KEY_MAX,
        pattern=r"[A-Za-z0-9_][A-Za-z0-9_./-]*",
        rule="letters, digits, _ . / and -, beginning with a letter, digit or _",
    ),
]
"""A label that a machine carries; unlike a job's, also under the prefixes that the machinery writes itself."""


class NodeSelection(BaseModel):
    """Which machines, by name or label, and how many tasks."""

    model_config = PART

    mode: Annotated[str, OneOf(limits.SELECTION_MODES)] = Field(
        default="Exact",
        description="Exact: tasks never share a machine; with names and no count, one task per named machine. Any: any "
        "of names, or any machine; tasks may share one. All: one task on every machine that could take it when the job "
        "is created.",
    )
    names: list[ResourceName] = Field(
        default_factory=list,
        max_length=limits.MACHINES[1],
        description="Candidate machines.",
    )
    count: Annotated[int, WholeOrText(limits.MACHINES, "tasks")] = Field(
        default=0,
        description="How many tasks (what other systems call replicas), with Exact on distinct machines; 0 leaves it "
        "to the rest of the document. Not with machines.",
    )
    match_labels: dict[MachineLabel, LabelValue] = Field(
        default_factory=dict,
        max_length=limits.LABELS_MAX,
        description="Only machines that carry every one of these labels. The workspace's pools are added to it.",
    )
