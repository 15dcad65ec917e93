"""What no single field can know: two fields that contradict each other, and sums over several.

These rules read the document as it was written, not the models, and pass over whatever has the wrong type: so a person
learns of a contradiction in the same answer as of a typing mistake elsewhere. Each returns sentences by path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stado_like.job.spec import limits, units

Complaints = dict[str, str]
_NOTHING: Final[Mapping[str, Any]] = {}


def contradictions(document: Mapping[str, Any]) -> Complaints:
    """Every contradiction of a document in any state of disrepair; empty when there is none."""
    spec = _part(document, "spec")
    template = _part(spec, "task_template")
    return {
        **_array(_part(spec, "array")),
        **_resources(_part(template, "requested_resources")),
        **_resilience(_part(template, "resilience")),
        **_strings(template),
    }


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = of.get(name)
    return part if isinstance(part, dict) else _NOTHING


def _whole(value: object, bounds: tuple[int, int]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and bounds[0] <= value <= bounds[1]


def _array(array: Mapping[str, Any]) -> Complaints:
    size, cap = array.get("size"), array.get("max_parallel", 0)
    if not _whole(size, limits.ARRAY_SIZE) or not _whole(cap, (0, limits.ARRAY_SIZE[1])) or cap <= size:
        return {}
    return {"array.max_parallel": f"Must be between 0 and {size} (the array's size), got {cap}"}


def _resources(asked: Mapping[str, Any]) -> Complaints:
    at = "task_template.requested_resources"
    found: Complaints = {}
    cores, memory = "cpu_cores" in asked, "memory_bytes" in asked
    if cores and not memory:
        found[f"{at}.memory_bytes"] = "Must be given together with cpu_cores"
    if memory and not cores:
        found[f"{at}.cpu_cores"] = "Must be given together with memory_bytes"
    for name in ("cpu_cores", "memory_bytes"):
        value = asked.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == 0:
            found[f"{at}.{name}"] = "Must be greater than 0, got 0; leave out both for 1 core and 1 GiB"
    return found


def _resilience(given: Mapping[str, Any]) -> Complaints:
    at = "task_template.resilience"
    found: Complaints = {}
    first, longest = given.get("backoff_seconds", limits.DEFAULT_BACKOFF_S), given.get("max_backoff_seconds")
    if _whole(first, limits.BACKOFF_S) and _whole(longest, limits.BACKOFF_S) and longest < first:
        found[f"{at}.max_backoff_seconds"] = f"Must be at least backoff_seconds ({first}), got {longest}"
    ours, theirs = given.get("max_restarts"), given.get("max_retries_failure")
    if _whole(ours, limits.RESTARTS) and _whole(theirs, limits.RESTARTS) and ours != theirs:
        found[f"{at}.max_retries_failure"] = (
            f"Is another name of max_restarts, and they differ: {theirs} and {ours}; give one of them"
        )
    return found


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _strings(template: Mapping[str, Any]) -> Complaints:
    """The kernel's limits on what a program is started with."""
    found: Complaints = {}
    args, env = template.get("args"), _part(template, "env")
    sizes: list[tuple[str, int]] = [("command", _bytes(template["command"]))] if _is_text(template, "command") else []
    if isinstance(args, list):
        sizes += [(f"args[{index}]", _bytes(each)) for index, each in enumerate(args) if isinstance(each, str)]
    variables = [
        (name, _bytes(name) + 1 + _bytes(value))
        for name, value in env.items()
        if isinstance(name, str) and isinstance(value, str)
    ]
    total = 0
    for where, size in sizes:
        total += size + limits.BYTES_PER_STRING
        if size > limits.ONE_STRING_MAX_BYTES:
            found[f"task_template.{where}"] = _too_long(size)
    for name, size in variables:
        total += size + limits.BYTES_PER_STRING
        if size > limits.ONE_STRING_MAX_BYTES:
            found[f"task_template.env.{name}"] = _too_long(size)
    if total > limits.ALL_STRINGS_MAX_BYTES:
        found["task_template"] = (
            f"command, args and env together must be at most 1 MiB, got {units.size_words(total)}; "
            "put the data into a file"
        )
    return found


def _is_text(of: Mapping[str, Any], name: str) -> bool:
    return isinstance(of.get(name), str)


def _too_long(size: int) -> str:
    return f"Must be at most 120 KiB ({limits.ONE_STRING_MAX_BYTES} bytes), got {size} bytes; put the data into a file"
