"""status/…/shape.json: how the scheduler split a job's total into tasks. Created once; the job's ranks follow from it.

A document that says the number of its tasks needs none. For one that leaves it open everything else (the ask of each
task, their names, the entries they have) follows from the document with that number written into it: `decided`. Ranks
are global across groups, so a job of several groups is split as a whole: one record says it of every group that leaves
its number open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job.shape import shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSplit:
    """How the total of one worker group is split. `gpus_each`: at least, where it takes every free one."""

    group: str
    tasks: int
    gpus_each: int
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """`why`: for people, `2 machines × 8 GPUs on InfiniBand fabric ib-0`. `groups`: of a job that names groups, each
    that left its number open; `tasks` and `gpus_each` are then those of the first."""

    nonce: str
    tasks: int
    gpus_each: int
    why: str = ""
    chosen_at: float = 0.0
    groups: tuple[GroupSplit, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def undecided(document: Mapping[str, Any]) -> tuple[str, ...]:
    """The groups that leave the number of their tasks to the scheduler; one without a name where there are none."""
    spec = document["spec"]
    together = spec.get("start", "Independent") != "Independent"
    if spec.get("array"):
        return ()
    named = spec.get("task_groups") or ()
    templates = {one["name"]: one["task_template"] for one in named} if named else {"": spec["task_template"]}
    asked = {name: template.get("requested_resources") or {} for name, template in templates.items()}
    return tuple(name for name, resources in asked.items() if not shape_of(resources, together=together).decided)


def decided(document: Mapping[str, Any], split: Split) -> Mapping[str, Any]:
    """The document as if its person had said the split. (The submitted one is never changed.)"""
    spec = document["spec"]
    named = spec.get("task_groups") or ()
    if not named:
        template = _said(spec["task_template"], split.tasks, split.gpus_each)
        return {**document, "spec": {**spec, "task_template": template}}
    splits = {one.group: (one.tasks, one.gpus_each) for one in split.groups}
    if not splits:  # from before a record said which
        splits = {named[0]["name"]: (split.tasks, split.gpus_each)}
    groups = [
        {**one, "task_template": _said(one["task_template"], *splits[one["name"]])} if one["name"] in splits else one
        for one in named
    ]
    return {**document, "spec": {**spec, "task_groups": groups}}


def _said(template: Mapping[str, Any], tasks: int, gpus_each: int) -> Mapping[str, Any]:
    resources = dict(template.get("requested_resources") or {})
    gpus = dict(resources.get("gpu_requests") or {})
    if (gpus_each or gpus) and gpus.get("policy") != "All":  # which takes what is free, whatever was chosen
        gpus["count"] = tasks * gpus_each
        resources["gpu_requests"] = gpus
    resources["machines"] = tasks
    chosen = dict(resources.get("node_selection") or {})
    if chosen.get("mode") == "All":
        chosen["mode"] = "Exact"  # one on each: they never share
        resources["node_selection"] = chosen
    return {**template, "requested_resources": resources}
