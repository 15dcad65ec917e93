"""What was said, laid over a document from a file: what is said wins, what is not said stays.

Mapping by mapping, except where two halves from two places would contradict each other: an array is replaced whole
(its size and its indices belong together), and of one thing that can be said in several ways only the way that was
said last is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stado_like.errors import UsageError


def laid_over(document: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `UsageError` where the two cannot be one document. Neither is changed."""
    spec, over = document.get("spec"), said.get("spec")
    if not isinstance(spec, Mapping) or not isinstance(over, Mapping):
        return merged(document, said)
    template = over.get("task_template")
    if spec.get("task_groups") and template:
        raise UsageError(
            f"the file has task_groups, and {_named(template)} would belong to a task_template beside them",
            "Write them into the groups they are for.",
        )
    return merged({**document, "spec": _without_other_ways(spec, over)}, said)


def _named(template: Mapping[str, Any]) -> str:
    names = list(template)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _without_other_ways(spec: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    left = dict(spec)
    if "array" in over:
        left.pop("array", None)
    if "start" in over:
        left.pop("policy", None)
    if "workdir" in over:
        left = {key: value for key, value in left.items() if key not in ("bundle", "cwd")}
    template, said = left.get("task_template"), over.get("task_template")
    if isinstance(template, Mapping) and isinstance(said, Mapping):
        left["task_template"] = _template_without(template, said)
    return left


def _template_without(template: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    left = dict(template)
    asked = said.get("requested_resources", {})
    below = left.get("requested_resources")
    if isinstance(below, Mapping) and ("cpu_cores" in asked or "memory_bytes" in asked):
        left["requested_resources"] = {k: v for k, v in below.items() if k not in ("per_gpu", "node_fraction")}
    resilience = left.get("resilience")
    if isinstance(resilience, Mapping) and "max_restarts" in said.get("resilience", {}):
        left["resilience"] = {k: v for k, v in resilience.items() if k != "max_retries_failure"}
    return left


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `under`, mapping by mapping; lists and values are replaced whole. Neither is changed.

    Where a mapping is laid over something that is none, what the file holds stays: it is wrong, and is judged as such.
    """
    out: dict[str, Any] = dict(under)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(value, Mapping) and key in out and (not value or not isinstance(below, Mapping | None)):
            continue
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            out[key] = merged(below, value)
        elif isinstance(value, Mapping):
            out[key] = merged({}, value)
        else:
            out[key] = value
    return out
