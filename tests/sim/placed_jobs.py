"""Jobs of which a tick decides where they run: gangs, urgent work, totals to split, machines close to each other, and a
workspace with a quota. They are dressed up from ordinary ones with dice of their own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stado_like.job.terms import Terms
from stado_like.job.workspace import Quota, Workspace

LAB = "lab"
"""The workspace with a quota."""
TOO_MANY = 40


@dataclass(frozen=True)
class Cluster:
    """What its people know of it. `gpus`: on each machine."""

    hosts: int
    cores: int
    gpus: int = 0

    @property
    def total(self) -> int:
        return self.hosts * self.cores

    @property
    def lab(self) -> Workspace:
        """Half of the cores, and two jobs at once."""
        quota = Quota(max_cpus=max(1, self.total // 2), max_running_jobs=2)
        return Workspace(name=LAB, nonce="lab", quota=quota, max_priority=100)

    def never_takes(self, terms: Terms) -> bool:
        """Whether a job's tasks, which only a placement may start, never fit here together."""
        most = self.lab.quota.max_cpus if terms.workspace == LAB else self.total
        together = (terms.least or terms.tasks) if terms.barrier else 1
        beyond = together * max(1, terms.ask.cpu_millis // 1000) > (most or 0)
        return beyond or not self._has_gpus(terms) or (bool(terms.ask.apart) and together > self.hosts)

    def _has_gpus(self, terms: Terms) -> bool:
        """A total is split evenly, over at most all machines; of what takes every GPU it is the fewest."""
        each, every = terms.ask.gpus, terms.ask.gpu_kind.every
        if terms.shaped:
            return each <= self.gpus
        return any((every or each % n == 0) and -(-each // n) <= self.gpus for n in range(1, self.hosts + 1))


def placed(
    document: dict[str, Any], chance: random.Random, cluster: Cluster, *, crowded: bool = False
) -> dict[str, Any]:
    """Some jobs as they are; others dressed up."""
    if "task_template" not in document["spec"]:
        return document
    kind = chance.random()
    for share, dress in _KINDS:
        kind -= share
        if kind < 0:
            dress(document, chance, cluster)
            break
    if chance.random() < (0.6 if crowded else 0.15):
        document["spec"]["task_template"]["args"][0] = f"{chance.uniform(60, 200):.2f}"
    if chance.random() < 0.3:
        runs_s = float(document["spec"]["task_template"]["args"][0])
        document["spec"]["task_template"]["time_limit_seconds"] = int(runs_s * chance.uniform(0.9, 3.0)) + 10
    return document


def _several(document: dict[str, Any], chance: random.Random, most: int) -> int:
    spec, many = document["spec"], chance.randint(2, max(2, most))
    spec.pop("array", None)
    spec.pop("lifetime", None)
    spec["task_template"]["requested_resources"] = {"node_selection": {"mode": "Any", "count": many}}
    spec["on_failure"] = chance.choice(("RestartTask", "RestartTask", "RestartJob", "FailJob"))
    return many


def _gang(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    many = _several(document, chance, min(4, cluster.total))
    document["spec"]["start"] = "Gang"
    if many <= cluster.hosts and chance.random() < 0.5:
        document["spec"]["task_template"]["requested_resources"] = {"machines": many}
    if chance.random() < 0.3:
        document["spec"]["priority"] = 10


def _with_its_least(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    many = _several(document, chance, min(4, cluster.total))
    document["spec"] |= {"start": "MinAvailable", "min_available": chance.randint(1, many)}


def _restarts_whole(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    """A gang whose members wait for nobody."""
    _several(document, chance, min(3, cluster.total))
    document["spec"]["on_failure"] = "RestartJob"


def _near(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    _several(document, chance, min(3, cluster.cores))
    resources = document["spec"]["task_template"]["requested_resources"]
    resources["topology"] = {"keep_within": chance.choice(("rack", "node")), "patience_seconds": 60}


def _total(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    if not cluster.gpus:
        return _urgent(document, chance, cluster)
    spec = document["spec"]
    spec.pop("array", None)
    spec.pop("lifetime", None)
    spec["start"] = "Gang"
    count = chance.randint(2, max(2, cluster.hosts * cluster.gpus))
    gpus = {"count": count, **({"policy": "All"} if count % 3 == 0 else {})}
    spec["task_template"]["requested_resources"] = {"gpu_requests": gpus, "cpu_cores": 1}
    return None


def _urgent(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    """A whole machine, at once."""
    spec = document["spec"]
    spec["priority"] = chance.choice((10, 20))
    spec["task_template"].setdefault("requested_resources", {})["cpu_cores"] = chance.randint(1, cluster.cores)


def _guarded(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    """Batch work that is not stopped for others at any time, or not again and again."""
    resilience = document["spec"]["task_template"]["resilience"]
    if chance.random() < 0.5:
        resilience["preemptible_after_seconds"] = chance.choice((20, 60))
    else:
        resilience["max_preemptions"] = chance.randint(0, 1)


def _of_the_lab(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    document["metadata"]["workspace"] = LAB
    if chance.random() < 0.3:
        _gang(document, chance, cluster)


def _beyond(document: dict[str, Any], chance: random.Random, cluster: Cluster) -> None:
    """Its owner cancels it in the end."""
    _several(document, chance, 2)
    resources = document["spec"]["task_template"]["requested_resources"]
    resources["node_selection"]["count"] = TOO_MANY
    document["spec"]["start"] = "Gang"


Dress = Callable[[dict[str, Any], random.Random, Cluster], None]
_KINDS: tuple[tuple[float, Dress], ...] = (
    (0.19, _gang),
    (0.08, _with_its_least),
    (0.06, _restarts_whole),
    (0.05, _near),
    (0.08, _total),
    (0.22, _urgent),
    (0.08, _guarded),
    (0.12, _of_the_lab),
    (0.03, _beyond),
)
