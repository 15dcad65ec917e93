"""A job as a person asks for it: only what was said, in the words of the command line, turned into a document.

`stado job submit`, `stado run` and `Client.submit` are three ways to fill in one `JobSpec`, so an option means the
same in all of them. What was not said is not written: the specification's own defaults hold, and a document from a
file keeps what the file says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stado_like.errors import UsageError
from stado_like.job.spec import limits, units

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What to run and how. Durations and sizes may be texts (`1h30m`, `16GiB`) or plain numbers of seconds and bytes.

    `cpus`, `memory` and `gpus`: `gpus` is the run's total, the others are per task. `document` is a specification to
    start from; what is said beside it wins.
    """

    command: Sequence[str] | str = ()
    name: str = ""
    workspace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory: str | int | None = None
    gpus: int | None = None
    array: str | int | None = None
    max_parallel: int | None = None
    time_limit: str | int | float | None = None
    restarts: int | None = None
    restart_policy: str | None = None
    max_task_failures: int | None = None
    stop_signal: str | None = None
    stop_grace: str | int | float | None = None
    heartbeat_ttl: str | int | float | None = None
    pinned_host: str | None = None
    exclusive: bool = False
    resident: bool = False
    terminates_agent: bool = False
    workdir: str | None = None
    gang: bool = False
    document: Mapping[str, Any] = field(default_factory=dict)

    def as_document(self) -> dict[str, Any]:
        """The document before validation. Raises `UsageError` for a duration, size or array that cannot be read."""
        return merged(self.document, {"metadata": self._metadata(), "spec": self._spec()})

    def _metadata(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self.name:
            said["name"] = self.name
        if self.workspace:
            said["workspace"] = self.workspace
        if self.labels:
            said["labels"] = dict(self.labels)
        return said

    def _spec(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        for key, value in (
            ("priority", self.priority),
            ("max_task_failures", self.max_task_failures),
            ("pinned_host", self.pinned_host),
            ("workdir", self.workdir),
        ):
            if value is not None:
                said[key] = value
        for key, asked in (
            ("exclusive", self.exclusive),
            ("resident", self.resident),
            ("terminates_agent", self.terminates_agent),
        ):
            if asked:
                said[key] = True
        if self.gang:
            said["start"] = "Gang"
        if self.array is not None:
            size, cap = units.array_shape(self.array)
            cap = self.max_parallel if self.max_parallel is not None else cap
            said["array"] = {"size": size, **({"max_parallel": cap} if cap else {})}
        template = self._template()
        if template:
            said["task_template"] = template
        return said

    def _template(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        words = [self.command] if isinstance(self.command, str) else list(self.command)
        if words and words[0]:
            said["command"], said["args"] = words[0], words[1:]
        if self.env:
            said["env"] = dict(self.env)
        for key, value in (
            ("time_limit_seconds", self.time_limit),
            ("stop_grace_seconds", self.stop_grace),
            ("heartbeat_ttl_seconds", self.heartbeat_ttl),
        ):
            if value is not None:
                said[key] = units.duration_s(value)
        resources = self._resources()
        if resources:
            said["requested_resources"] = resources
        resilience: dict[str, Any] = {}
        if self.stop_signal is not None:
            resilience["stop_signal"] = self.stop_signal
        if self.restarts is not None:
            resilience["max_restarts"] = self.restarts
            said["restart_policy"] = "OnFailure"
        if resilience:
            said["resilience"] = resilience
        if self.restart_policy is not None:
            said["restart_policy"] = self.restart_policy
        return said

    def _resources(self) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if self.cpus is not None:
            said["cpu_cores"] = self.cpus
        if self.memory is not None:
            said["memory_bytes"] = units.size_bytes(self.memory)
        if self.gpus is not None:
            said["gpu_requests"] = {"count": self.gpus}
        return said

    def understood(self) -> list[str]:
        """What durations and sizes were taken for, in words: said back before anything is written."""
        said = []
        for name, value in (
            ("time limit", self.time_limit),
            ("stop grace", self.stop_grace),
            ("heartbeat TTL", self.heartbeat_ttl),
        ):
            if isinstance(value, str):
                said.append(f"{name}: {units.duration_words(units.duration_s(value))}")
        if isinstance(self.memory, str):
            said.append(f"memory: {units.size_words(units.size_bytes(self.memory))} per task")
            hint = units.bare_size_hint(self.memory)
            if hint:
                said.append(hint)
        if isinstance(self.array, str):
            size, cap = units.array_shape(self.array)
            said.append(f"array: {size} tasks, indices 0 to {size - 1}" + (f", at most {cap} at once" if cap else ""))
        return said


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `under`, mapping by mapping; lists and values are replaced whole. Neither is changed."""
    out: dict[str, Any] = dict(under)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(value, Mapping) and not value and key in out:
            continue  # nothing was said: what the file holds is judged as it stands, also where it is no mapping
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            out[key] = merged(below, value)
        elif isinstance(value, Mapping):
            out[key] = merged({}, value)
        else:
            out[key] = value
    return out


def default_name(command: str, token: str) -> str:
    """A name for a job that was given none: what it runs, and six random digits."""
    stem = _NOT_A_NAME.sub("-", command.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]).strip("-")
    room = limits.NAME_MAX - 7
    return f"{stem[:room].strip('-') or 'job'}-{token[:6]}"


def next_name(name: str, taken: frozenset[str]) -> str:
    """`train` -> `train-2`, `train-2` -> `train-3`: the first that is not taken."""
    stem, dash, number = name.rpartition("-")
    if not (dash and stem and number.isascii() and number.isdigit() and len(number) < 5):
        stem, number = name, "1"
    n = int(number) + 1
    while (found := f"{stem[: limits.NAME_MAX - len(str(n)) - 1]}-{n}") in taken:
        n += 1
    return found


def variables(given: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """`K=V`, or `K` to copy it from the caller's environment. Raises `UsageError`, all wrong ones at once."""
    found: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name:
            wrong[one] = "has no name before ="
        elif equals:
            found[name] = value
        elif name in environment:
            found[name] = environment[name]
        else:
            wrong[name] = "is not set here, so it cannot be copied"
    if wrong:
        raise UsageError("some variables cannot be passed on", "Give them as NAME=VALUE.", detail=wrong)
    return found


def labels(given: Sequence[str]) -> dict[str, str]:
    """`k=v` pairs. Raises `UsageError`."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"{one[:120]!a} is not a label", "Accepted form: KEY=VALUE.")
        found[name] = value
    return found
