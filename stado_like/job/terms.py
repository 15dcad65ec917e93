"""What the machinery needs of a stored document, resolved once.

A worker looks at thousands of jobs and starts some of them: it must not load the models of the specification for that,
nor must six places each know that an array without `max_parallel` has 64 lanes or that `FailJob` means "never again".
The document was validated when it was submitted. It may come from an older version (a field is missing: its default
holds) or from a newer minor one (a field more: it is passed over); it is never judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from stado_like.job.spec import limits

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ask:
    """What one task needs of one machine."""

    cpu_millis: int
    memory_bytes: int
    gpus: int
    exclusive: bool = False
    pinned_host: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """One job's terms. Times are seconds, sizes bytes; None is "none was asked for"."""

    workspace: str
    name: str
    labels: Mapping[str, str]
    priority: int
    several: bool
    """A several-task job by its specification; an array of size 1 counts as several."""
    tasks: int
    array_size: int
    """0 when it is not an array."""
    lane_width: int
    """K: ranks r, r+K, r+2K, … are one lane. `max_parallel`, or 64 without one."""
    release_by_end: bool
    """True with `max_parallel`: a lane's next rank waits for a final end. False: for a claim."""
    ask: Ask
    command: tuple[str, ...]
    """The command and its arguments."""
    env: Mapping[str, str]
    cwd: str
    workdir: str
    restart_policy: str
    """OnFailure, Always or Never; `on_failure: FailJob` makes it Never."""
    on_failure: str
    max_task_failures: int
    max_restarts: int
    max_machine_restarts: int
    max_preemptions: int | None
    max_retries_preemption: int
    backoff_s: int
    max_backoff_s: int
    time_limit_s: int | None
    ttl_s: int
    stop_signal: str
    stop_grace_s: int | None
    stop_after_disconnect_s: int | None
    resident: bool
    terminates_agent: bool


def terms_of(document: Mapping[str, Any]) -> Terms:
    """The terms of a document in its stored form, `{"metadata": …, "spec": …}`.

    KeyError when what no version may leave out is missing: the name, the command.
    """
    metadata = document["metadata"].get
    spec = document["spec"].get
    template = document["spec"]["task_template"]
    task = template.get
    resilience = task("resilience", _NOTHING).get
    array = spec("array") or _NOTHING
    size = array.get("size", 0)
    cap = array.get("max_parallel", 0)
    on_failure = spec("on_failure", "RestartTask")
    backoff_s = resilience("backoff_seconds", limits.DEFAULT_BACKOFF_S)
    return Terms(
        workspace=metadata("workspace", limits.DEFAULT_WORKSPACE),
        name=document["metadata"]["name"],
        labels=metadata("labels", _NOTHING),
        priority=spec("priority", 0),
        several=size > 0,
        tasks=size or 1,
        array_size=size,
        lane_width=cap or limits.LANES_WITHOUT_A_CAP,
        release_by_end=cap > 0,
        ask=_ask_of(document["spec"], task("requested_resources", _NOTHING)),
        command=(template["command"], *task("args", ())),
        env=task("env", _NOTHING),
        cwd=spec("cwd") or "",
        workdir=spec("workdir") or "",
        restart_policy="Never" if on_failure == "FailJob" else task("restart_policy", "OnFailure"),
        on_failure=on_failure,
        max_task_failures=spec("max_task_failures", 0),
        max_restarts=resilience("max_restarts", limits.DEFAULT_MAX_RESTARTS),
        max_machine_restarts=resilience("max_machine_restarts", limits.DEFAULT_MAX_MACHINE_RESTARTS),
        max_preemptions=resilience("max_preemptions"),
        max_retries_preemption=resilience("max_retries_preemption", limits.DEFAULT_MAX_RETRIES_PREEMPTION),
        backoff_s=backoff_s,
        max_backoff_s=resilience("max_backoff_seconds", max(limits.DEFAULT_MAX_BACKOFF_S, backoff_s)),
        time_limit_s=task("time_limit_seconds"),
        ttl_s=task("heartbeat_ttl_seconds", limits.DEFAULT_HEARTBEAT_TTL_S),
        stop_signal=resilience("stop_signal", "SIGTERM"),
        stop_grace_s=task("stop_grace_seconds"),
        stop_after_disconnect_s=resilience("stop_after_disconnect_seconds"),
        resident=spec("resident", False),
        terminates_agent=spec("terminates_agent", False),
    )


def _ask_of(spec: Mapping[str, Any], resources: Mapping[str, Any]) -> Ask:
    return Ask(
        cpu_millis=round(resources.get("cpu_cores", limits.DEFAULT_CORES) * 1000),
        memory_bytes=resources.get("memory_bytes", limits.DEFAULT_MEMORY_BYTES),
        gpus=resources.get("gpu_requests", _NOTHING).get("count", 0),
        exclusive=spec.get("exclusive", False),
        pinned_host=spec.get("pinned_host") or "",
    )


def display_name(terms: Terms, rank: int) -> str:
    """`train-3`: what a person calls the task. A one-task job's task is `train-0`."""
    return f"{terms.name}-{rank}"
