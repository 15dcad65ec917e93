"""What the operators of a cluster chose for everybody: `config/cluster.json`.

Defaults and ceilings of their own stand in each process's environment and file too, and win there: a machine may be
told otherwise than the cluster. What neither says is what the specification says. `None`: not chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job.spec import limits

DEFAULT_STOP_GRACE_S = 30
DEFAULT_MAX_STOP_GRACE_S = 3_600
BOUNDS = {
    "max_restarts": limits.RESTARTS,
    "max_machine_restarts": limits.RESTARTS,
    "stop_grace_seconds": limits.STOP_GRACE_S,
    "max_stop_grace_seconds": (1, 86_400),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """config/cluster.json: `max_restarts` and `max_machine_restarts` for documents that say nothing of them;
    `stop_grace_seconds` for those that say no grace, at most `max_stop_grace_seconds` for those that do."""

    nonce: str = ""
    max_restarts: int | None = None
    max_machine_restarts: int | None = None
    stop_grace_seconds: int | None = None
    max_stop_grace_seconds: int | None = None
    by: str = ""
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def wrong(self) -> dict[str, str]:
        """A sentence for each value that is out of bounds; empty: it can be used."""
        found = {}
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                found[name] = f"must be between {low} and {high}, got {value}"
        grace_s, most_s = self.stop_grace_seconds, self.max_stop_grace_seconds
        if not found and grace_s is not None and most_s is not None and grace_s > most_s:
            found["stop_grace_seconds"] = f"is above its ceiling, max_stop_grace_seconds {most_s}, got {grace_s}"
        return found

    def graces(self, given_s: int | None, most_given_s: int | None) -> tuple[int, int]:
        """The grace of a task that says none, and the most that one may say, on a machine that was itself told these
        (None: nothing). The first is never above the second."""
        most_s = _first(most_given_s, self.max_stop_grace_seconds, DEFAULT_MAX_STOP_GRACE_S)
        return min(_first(given_s, self.stop_grace_seconds, DEFAULT_STOP_GRACE_S), most_s), most_s


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def leaves_restarts_open(document: Mapping[str, Any]) -> bool:
    """Whether what the cluster says may matter for this document, as a person wrote it: only then is it asked."""
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        return False
    groups = spec.get("task_groups")
    holders = groups if isinstance(groups, (list, tuple)) and groups else (spec,)
    return any(_leaves_open(one.get("task_template")) for one in holders if isinstance(one, Mapping))


def _leaves_open(template: object) -> bool:
    said = template.get("resilience") if isinstance(template, Mapping) else None
    if not isinstance(said, Mapping):
        return True
    own = said.get("max_restarts") is not None or said.get("max_retries_failure") is not None
    return not own or said.get("max_machine_restarts") is None
