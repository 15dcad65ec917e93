"""What a workspace may have, and which jobs therefore do not belong in it.

A workspace that nobody ever set has the defaults: no quota, maximum priority 0, nothing granted. So a job that asks for
nothing more needs no look at the record, and an ordinary submit costs no request for it: `needs_record`.

`objections` is what a submitter is told, in the shape of any validation. It is a courtesy with teeth only where the
store's own policy keeps people from writing jobs by hand: whoever may write `jobs/` may write anything there. Paths are
compared as texts, by whole names; what a link on a machine leads to is the machine's affair.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from stado_like.errors import UsageError
from stado_like.job.spec import limits

DEFAULT_MAX_PRIORITY: Final = 0
LIMITS: Final = ("max_gpus", "max_cpus", "max_memory_bytes", "max_running_jobs")
MOST: Final = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What all running jobs of a workspace may hold together; None is no limit."""

    max_gpus: int | None = None
    max_cpus: int | None = None
    max_memory_bytes: int | None = None
    max_running_jobs: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> bool:
        """Whether it limits anything: then only a tick starts the workspace's work."""
        return any(getattr(self, name) is not None for name in LIMITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """What a workspace may do beyond the ordinary. `bind_paths` are absolute and in their shortest spelling."""

    privileged: bool = False
    bind_paths: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """config/workspaces/<w>.json: what an administrator set; absent, every default holds."""

    name: str
    nonce: str = ""
    quota: Quota = field(default_factory=Quota)
    max_priority: int = DEFAULT_MAX_PRIORITY
    pools: Mapping[str, str] = field(default_factory=dict)
    grants: Grants = field(default_factory=Grants)
    by: str = ""
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def was_set(self) -> bool:
        return bool(self.nonce)


# ---- changing it


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What one command changes; the rest stays as it is found. In `quota` None takes a limit away. Within one edit what
    is taken away goes first, so that a path may be exchanged for another.
    """

    quota: Mapping[str, int | None] = field(default_factory=dict)
    max_priority: int | None = None
    pools: Mapping[str, str] = field(default_factory=dict)
    no_pools: tuple[str, ...] = ()
    privileged: bool | None = None
    bind_paths: tuple[str, ...] = ()
    no_bind_paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises `UsageError` for a number out of its bounds or a path that is not absolute."""
        for name, limit in self.quota.items():
            if name not in LIMITS:
                raise UsageError(f"{name!a} is no limit of a workspace", f"Limits: {', '.join(LIMITS)}.")
            if limit is not None and not 0 <= limit <= MOST:
                raise UsageError(f"{name} {limit} is out of bounds", f"It is 0 to {MOST}, or none for no limit.")
        if self.max_priority is not None and not 0 <= self.max_priority <= limits.PRIORITY[1]:
            raise UsageError(
                f"a maximum priority of {self.max_priority} is out of bounds",
                f"It is 0 to {limits.PRIORITY[1]}; 0 is what a workspace has that was never set.",
            )
        for path in (*self.bind_paths, *self.no_bind_paths):
            if plain_path(path) is None:
                raise UsageError(
                    f"{path[:120]!a} cannot be granted", "Give an absolute path without .. and control characters."
                )

    @property
    def is_empty(self) -> bool:
        return self == Edit()

    def of(self, found: Workspace) -> Workspace:
        """The workspace after the edit."""
        pools = {key: value for key, value in found.pools.items() if key not in self.no_pools}
        gone = {plain_path(path) for path in self.no_bind_paths}
        kept = [path for path in found.grants.bind_paths if path not in gone]
        paths = dict.fromkeys((*kept, *(plain_path(path) or path for path in self.bind_paths)))
        return replace(
            found,
            quota=replace(found.quota, **dict[str, Any](self.quota)),
            max_priority=found.max_priority if self.max_priority is None else self.max_priority,
            pools={**pools, **self.pools},
            grants=replace(
                found.grants,
                privileged=found.grants.privileged if self.privileged is None else self.privileged,
                bind_paths=tuple(paths),
            ),
        )


def plain_path(path: str) -> str | None:
    """An absolute path in its shortest spelling, or None: relative, with `..`, or not printable."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    if not path.startswith("/") or ".." in steps or not path.isprintable():
        return None
    return "/" + "/".join(steps)


def _lies_under(path: str, granted: str) -> bool:
    return granted == "/" or path == granted or path.startswith(granted + "/")


# ---- judging a job


def needs_record(document: Mapping[str, Any]) -> bool:
    """Whether the workspace's record could decide over this job: one without any would refuse it."""
    return bool(objections(document, Workspace(name=_name_of(document))))


def _name_of(document: Mapping[str, Any]) -> str:
    return str(document.get("metadata", {}).get("workspace", limits.DEFAULT_WORKSPACE))


def objections(document: Mapping[str, Any], workspace: Workspace) -> dict[str, str]:
    """Why this job, in its stored form, may not be submitted to the workspace: sentences by path; empty when it may."""
    spec = _part(document, "spec")
    found: dict[str, str] = {}
    priority = spec.get("priority", 0)
    if priority > max(workspace.max_priority, DEFAULT_MAX_PRIORITY):
        found["priority"] = (
            f"Must be at most {workspace.max_priority}, the maximum priority of workspace {workspace.name}, "
            f"got {priority}; an administrator raises it with "
            f"stado workspace set {workspace.name} --max-priority {priority}"
        )
    for at, template in _templates(spec):
        found.update(_privileges(at, _part(template, "security_context"), workspace))
        found.update(_binds(at, template.get("volumes") or (), workspace))
        egress = _part(_part(template, "network"), "egress")
        if egress.get("default") == "deny" and egress.get("cluster") == "all":  # under allow nobody asked for anything
            found[f"{at}.network.egress.cluster"] = "all is refused in a workspace; use none or namespace"
    return found


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = of.get(name)
    return part if isinstance(part, Mapping) else {}


def _templates(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every template of the job with its path."""
    if isinstance(spec.get("task_template"), Mapping):
        yield "task_template", spec["task_template"]
    for index, group in enumerate(spec.get("task_groups") or ()):
        yield f"task_groups[{index}].task_template", _part(group, "task_template")


def _privileges(at: str, security: Mapping[str, Any], workspace: Workspace) -> Iterator[tuple[str, str]]:
    if workspace.grants.privileged:
        return
    asked = {
        "privileged": ("true", security.get("privileged") is True),
        "pid_mode": ("host", security.get("pid_mode") == "host"),
        "ipc_mode": ("host", security.get("ipc_mode") == "host"),
        "cap_add": ("a non-empty list", bool(security.get("cap_add"))),
        "security_opt": ("a non-empty list", bool(security.get("security_opt"))),
    }
    for name, (got, is_asked) in asked.items():
        if is_asked:
            yield (
                f"{at}.security_context.{name}",
                f"Needs privileged work, which workspace {workspace.name} is not granted, got {got}; an administrator "
                f"grants it with stado workspace set {workspace.name} --grant privileged",
            )


def _binds(at: str, volumes: Any, workspace: Workspace) -> Iterator[tuple[str, str]]:
    granted = workspace.grants.bind_paths
    for index, volume in enumerate(volumes):
        path = volume.get("host_path") if isinstance(volume, Mapping) else None
        if not isinstance(path, str) or volume.get("kind") != "Bind":
            continue
        where, plain = f"{at}.volumes[{index}].host_path", plain_path(path)
        if plain is None:
            yield where, f"Must be an absolute path without .. and control characters, got {_quoted(path)}"
        elif not any(_lies_under(plain, one) for one in granted):
            has = ", ".join(granted[:3]) + (f" and {len(granted) - 3} more" if len(granted) > 3 else "")
            word = shlex.quote(plain) if len(plain) <= 200 else "PATH"
            yield (
                where,
                f"Must lie in a path that workspace {workspace.name} is granted ({has or 'it has none'}), "
                f"got {_quoted(path)}; an administrator grants it with "
                f"stado workspace set {workspace.name} --bind-path {word}",
            )


def _quoted(text: str) -> str:
    cut = text if len(text) <= 60 else text[:60] + "…"
    return f"the text {json.dumps(cut, ensure_ascii=not cut.isprintable())}"
