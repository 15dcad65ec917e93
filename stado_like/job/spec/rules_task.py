"""What no single field of a template can know: two fields that contradict each other, and sums over several.

These rules read the template as it was written, not the models, and pass over whatever has the wrong type: so a person
learns of a contradiction in the same answer as of a typing mistake elsewhere. Each returns sentences by path; `path`
is where the template stands, `task_template` or `task_groups[1].task_template`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stado_like.job.spec import limits, units

Complaints = dict[str, str]
_NOTHING: Final[Mapping[str, Any]] = {}


def contradictions(template: Mapping[str, Any], path: str) -> Complaints:
    """Every contradiction of a template in any state of disrepair; empty when there is none."""
    return {
        **_resources(_part(template, "requested_resources"), f"{path}.requested_resources"),
        **_resilience(_part(template, "resilience"), f"{path}.resilience"),
        **_strings(template, path),
    }


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = of.get(name)
    return part if isinstance(part, dict) else _NOTHING


def _whole(value: object, bounds: tuple[int, int]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and bounds[0] <= value <= bounds[1]


def _resources(asked: Mapping[str, Any], at: str) -> Complaints:
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


def _resilience(given: Mapping[str, Any], at: str) -> Complaints:
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


def bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _strings(template: Mapping[str, Any], path: str) -> Complaints:
    """The kernel's limits on what a program is started with."""
    found: Complaints = {}
    args, env = template.get("args"), _part(template, "env")
    sizes: list[tuple[str, int]] = []
    if isinstance(template.get("command"), str):
        sizes.append(("command", bytes_of(template["command"])))
    if isinstance(args, list):
        sizes += [(f"args[{index}]", bytes_of(each)) for index, each in enumerate(args) if isinstance(each, str)]
    variables = [
        (name, bytes_of(name) + 1 + bytes_of(value))
        for name, value in env.items()
        if isinstance(name, str) and isinstance(value, str)
    ]
    total = 0
    for where, size in sizes:
        total += size + limits.BYTES_PER_STRING
        if size > limits.ONE_STRING_MAX_BYTES:
            found[f"{path}.{where}"] = _too_long(size)
    for name, size in variables:
        total += size + limits.BYTES_PER_STRING
        if size > limits.ONE_STRING_MAX_BYTES:
            found[f"{path}.env.{name}"] = _too_long(size)
    if total > limits.ALL_STRINGS_MAX_BYTES:
        found[path] = (
            f"command, args and env together must be at most 1 MiB, got {units.size_words(total)}; "
            "put the data into a file"
        )
    return found


def _too_long(size: int) -> str:
    return f"Must be at most 120 KiB ({limits.ONE_STRING_MAX_BYTES} bytes), got {size} bytes; put the data into a file"
