"""status/…/shape.json: how the scheduler split a job's total into tasks. Created once; the job's ranks follow from it.

A document that says the number of its tasks needs none. For one that leaves it open everything else (the ask of each
task, their names, the entries they have) follows from the document with that number written into it: `decided`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """`why`: for people, `2 machines × 8 GPUs on InfiniBand fabric ib-0`."""

    nonce: str
    tasks: int
    gpus_each: int
    why: str = ""
    chosen_at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


def decided(document: Mapping[str, Any], split: Split) -> Mapping[str, Any]:
    """The document as if its person had said the split. (The submitted one is never changed.)"""
    spec = document["spec"]
    named = spec.get("task_groups") or ()
    template = named[0]["task_template"] if named else spec["task_template"]
    resources = dict(template.get("requested_resources") or {})
    gpus = dict(resources.get("gpu_requests") or {})
    if split.gpus_each or gpus:
        gpus["count"] = split.tasks * split.gpus_each
        if gpus.get("policy") == "All":
            gpus["policy"] = "BestEffort"  # how many of each machine was decided with the number of machines
        resources["gpu_requests"] = gpus
    resources["machines"] = split.tasks
    chosen = dict(resources.get("node_selection") or {})
    if chosen.get("mode") == "All":
        chosen["mode"] = "Exact"  # one on each: they never share
        resources["node_selection"] = chosen
    template = {**template, "requested_resources": resources}
    if named:
        groups = [{**named[0], "task_template": template}, *named[1:]]
        return {**document, "spec": {**spec, "task_groups": groups}}
    return {**document, "spec": {**spec, "task_template": template}}
