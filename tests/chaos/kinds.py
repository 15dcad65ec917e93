"""The jobs of a campaign: plain ones, arrays, and those that stand in company: groups that wait for groups, jobs that
wait for jobs, children, and tasks that save what they reached."""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stado_like.job.spec.validate import validate
from stado_like.job.states import JobState
from tests.chaos.history import History, Sent
from tests.process.rig import document

EFFECT = Path(__file__).with_name("effect.py")
GOOD = frozenset({JobState.COMPLETED})
BAD = frozenset({JobState.FAILED})
GIVEN_UP = frozenset({JobState.CANCELLED})
TTL_S = 10
KINDS = {
    "plain": 24,
    "long": 16,
    "flaky": 10,
    "array": 12,
    "flaky-array": 10,
    "hopeless": 6,
    "never": 8,
    "groups": 10,
    "waiter": 10,
    "child": 8,
    "saving": 10,
}
FAILING = {"flaky": 2, "flaky-array": 2, "hopeless": 99, "saving": 2}


@dataclass
class Kinds:
    """Makes jobs. `free_names`: of deleted jobs, used again."""

    history: History
    log: Path
    chance: random.Random
    free_names: list[str] = field(default_factory=list)

    def make(self) -> tuple[Sent, dict[str, Any]]:
        kind = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        company = self._company() if kind in ("waiter", "child") else None
        if kind in ("waiter", "child") and company is None:
            kind = "plain"
        sent = self._sent(kind)
        more: dict[str, Any] = {
            "cores": self.chance.choice((0.5, 0.5, 1.0)),
            "task": {"heartbeat_ttl_seconds": TTL_S},
            "resilience": {"backoff_seconds": 1, "max_backoff_seconds": 4, "max_restarts": 25},
        }
        if "array" in kind:
            sent.tasks = 3 if kind in FAILING else self.chance.randint(3, 6)
            sent.max_parallel = self.chance.randint(1, 3)
            more["array"] = {"size": sent.tasks, "max_parallel": sent.max_parallel}
        if kind == "hopeless":
            more["resilience"]["max_restarts"] = 2
        if kind == "never":
            more["task"]["restart_policy"] = "Never"
        if kind == "saving":
            more["task"]["checkpoint"] = {"dir": "state", "interval_seconds": 30}
        if kind == "groups":
            sent.tasks, sent.needs = 3, {1: (0,)}
        if kind == "waiter" and company is not None:
            sent.after = company.id
            more["after"] = [{"job": str(company.id), "state": self.chance.choice(("Ended", "Ended", "Completed"))}]
        made = document(sent.name, self._command(kind), **more)
        if kind == "groups":
            made = _in_groups(made)
        if kind == "child" and company is not None:
            sent.parent = company.id
            made["metadata"]["parent"] = str(company.id)
        return sent, made

    def _sent(self, kind: str) -> Sent:
        number = len(self.history.sent)
        reused = bool(self.free_names) and self.chance.random() < 0.5
        # A killed process or machine is not run again under `Never`.
        may_end = {"hopeless": BAD, "never": GOOD | BAD, "waiter": GOOD | GIVEN_UP, "child": GOOD | GIVEN_UP}
        sent = Sent(
            name=self.free_names.pop() if reused else f"job-{number}",
            kind=kind,
            request_id=f"request-{number}",
            tasks=1,
            may_end=may_end.get(kind, GOOD),
            submitted_at=time.time(),
            several="array" in kind or kind == "groups",
        )
        self.history.sent.append(sent)
        return sent

    def _company(self) -> Sent | None:
        """A job to wait for, or to belong to: of one task, so that its end says when it was over."""
        known = [one for one in self.history.acknowledged[-12:] if not one.delete_asked_at and not one.several]
        return self.chance.choice(known) if known else None

    def _command(self, kind: str) -> list[str]:
        seconds = self.chance.uniform(4.0, 12.0) if kind in ("long", "child") else self.chance.uniform(0.2, 2.5)
        failing = FAILING.get(kind, 0)
        return [sys.executable, "-I", "-S", str(EFFECT), str(self.log), f"{seconds:.2f}", str(failing), "3"]


def _in_groups(made: dict[str, Any]) -> dict[str, Any]:
    """A server, a client that waits for it, and one that waits for nobody."""
    template = made["spec"].pop("task_template")
    groups: list[dict[str, Any]] = [{"name": name, "task_template": template} for name in ("server", "client", "other")]
    groups[1]["depends_on"] = [{"group_name": "server"}]
    return dict(validate({"metadata": made["metadata"], "spec": {**made["spec"], "task_groups": groups}}))
