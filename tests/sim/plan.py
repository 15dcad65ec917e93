"""What one seed decides before anything runs: how many of what, which faults come at which rates, which disasters
strike.

Each seed leaves most kinds of faults out (swarm testing): a run in which everything fails at once hides what two faults
together would show.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stado_like.job.blocks import unkeepable
from tests.sim.faults import Kind

DISASTERS = (
    "agent killed",
    "supervisor killed",
    "machine lost",
    "machine re-imaged",
    "supervisor stopped",
    "agent stopped",
    "machine paused",
    "store's clock jumps",
    "machine's clock jumps",
    "machine cut off",
    "supervisor cut off",
    "credentials expired",
    "bucket away",
    "tick killed",
    "tick's lock removed",
    "nursery stopped",
    "nursery fails",
    "user killed",
)
HIGHEST: Mapping[Kind, float] = {
    Kind.CRASH_BEFORE: 0.004,
    Kind.CRASH_AFTER: 0.004,
    Kind.LOST: 0.05,
    Kind.CONFLICT: 0.1,
    Kind.OWN_REJECTED: 0.1,
    Kind.APPLIED_500: 0.05,
    Kind.BUSY: 0.08,
    Kind.TIMEOUT: 0.02,
    Kind.DELAYED: 0.03,
    Kind.DUPLICATED: 0.1,
    Kind.STALE_LIST: 0.2,
}


@dataclass(frozen=True)
class Plan:
    seed: int
    hosts: int
    cores: int
    users: int
    jobs: int
    ticks: int
    tick_every_s: float
    trouble_s: float
    disaster_every_s: float
    disasters: tuple[str, ...]
    rates: Mapping[Kind, float]
    operated: bool = False
    """Whether somebody requeues tasks, closes machines and pauses the queue."""
    placed: bool = False
    """Whether there are gangs, urgent work, totals to split and a workspace with a quota."""
    gpus: int = 0
    """On each machine."""
    blocks: bool = False
    """Whether some arrays are in blocks."""
    crowded: bool = False
    """Whether more is submitted than there is room for, so that the queue decides."""

    @classmethod
    def of(cls, seed: int) -> Plan:
        chance = random.Random(f"plan {seed}")
        kinds = [kind for kind in HIGHEST if chance.random() < 0.4]
        of_placement = random.Random(f"placed {seed}")
        of_blocks = random.Random(f"blocks {seed}")
        return cls(
            seed=seed,
            hosts=chance.randint(1, 4),
            cores=chance.choice((1, 1, 2, 3)),
            users=chance.randint(1, 3),
            jobs=chance.randint(3, 7),
            ticks=chance.choice((1, 1, 2)),
            tick_every_s=chance.choice((5.0, 15.0, 30.0)),
            trouble_s=chance.uniform(150.0, 500.0),
            disaster_every_s=chance.choice((15.0, 40.0, 90.0)),
            disasters=tuple(one for one in DISASTERS if chance.random() < 0.35),
            rates={kind: HIGHEST[kind] * chance.uniform(0.1, 1.0) for kind in kinds},
            operated=chance.random() < 0.5,
            placed=of_placement.random() < 0.6,
            gpus=of_placement.choice((0, 1, 2)),
            crowded=of_placement.random() < 0.25,
            blocks=of_blocks.random() < 0.6,
        )


NAMES = ("alpha", "beta", "gamma", "delta")


def some_job(chance: random.Random) -> dict[str, Any]:
    """A stored specification of a small job, under one of a few names that are used again and again."""
    spec: dict[str, Any] = {"priority": chance.choice((0, 0, 5)), "max_task_failures": chance.choice((0, 0, 2))}
    kind = chance.random()
    if kind < 0.12:
        spec["task_groups"] = _some_groups(chance)
    else:
        spec["task_template"] = _some_task(chance)
    if kind > 0.92:
        spec["start"] = "Gang"
    elif kind > 0.85:
        spec["lifetime"] = "Service"
    elif kind > 0.75:
        spec["task_template"] |= _some_wish(chance)
    elif kind > 0.25:
        spec["array"] = {"size": chance.randint(1, 6)}
        if chance.random() < 0.6:
            spec["array"]["max_parallel"] = chance.randint(1, 3)
    return {"metadata": {"name": chance.choice(NAMES), "workspace": "default"}, "spec": spec}


def in_blocks(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Most arrays that may be: some of more tasks, most of short ones, some of which every third outlasts its
    block."""
    spec = document["spec"]
    if "array" not in spec or unkeepable({**spec, "array": {}}) or chance.random() < 0.2:
        return document
    array = {"size": max(spec["array"]["size"], chance.randint(2, 9)), "block": chance.choice((2, 3, 4))}
    args = list(spec["task_template"]["args"])
    if chance.random() < 0.8:
        args[0] = f"{chance.choice((0.05, 0.1, 0.2)):.2f}"
    if chance.random() < 0.4:
        args.append(f"third={chance.choice((0.4, 2, 15, 40))}")
    template = {**spec["task_template"], "args": args}
    return {**document, "spec": {**spec, "array": array, "task_template": template}}


def in_company(document: dict[str, Any], chance: random.Random, known: Sequence[str]) -> dict[str, Any]:
    """Some jobs wait for others, belong to others, or wait only so long. `known`: the jobs there are."""
    kind = chance.random()
    if kind < 0.15 and known:
        states = ("Completed", "Ended", "Ended", "Failed")
        awaited = [chance.choice(known) for _ in range(chance.randint(1, 2))]
        document["spec"]["after"] = [{"job": job, "state": chance.choice(states)} for job in awaited]
    elif kind < 0.27 and known:
        document["metadata"]["parent"] = chance.choice(known)
    if chance.random() < 0.12:
        document["spec"]["scheduling_timeout_seconds"] = chance.randint(5, 90)
    return document


def _some_groups(chance: random.Random) -> list[dict[str, Any]]:
    """Two or three groups of one or two tasks; the later ones may wait for an earlier one."""
    groups: list[dict[str, Any]] = []
    for name in ("engine", "client", "probe")[: chance.randint(2, 3)]:
        many = {"requested_resources": {"node_selection": {"mode": "Any", "count": chance.randint(1, 2)}}}
        group: dict[str, Any] = {"name": name, "task_template": {**_some_task(chance), **many}}
        if groups and chance.random() < 0.7:
            group["depends_on"] = [{"group_name": chance.choice(groups)["name"]}]
        groups.append(group)
    return groups


def _some_wish(chance: random.Random) -> dict[str, Any]:
    """What its machine must be like. There is always an h1, and it is of pool a; nobody runs containers."""
    selections: tuple[dict[str, Any], ...] = (
        {"node_selection": {"count": 2}},
        {"node_selection": {"mode": "Any", "match_labels": {"pool": "a"}}},
        {"node_selection": {"mode": "Any", "names": ["h1", "h9"]}},
    )
    wish: dict[str, Any] = {"requested_resources": chance.choice(selections)}
    if chance.random() < 0.2:
        wish["image"] = "busybox"  # its owner cancels it in the end
    return wish


def _some_task(chance: random.Random) -> dict[str, Any]:
    words = ["sim", f"{chance.choice((1, 3, 8, 20, 60)) * chance.uniform(0.5, 1.5):.2f}"]
    if chance.random() < 0.35:
        words.append(f"fails={chance.randint(1, 3)}")
    elif chance.random() < 0.1:
        words.append("exit=7")
    if chance.random() < 0.1:
        words.append("deaf")
    return {
        "command": words[0],
        "args": words[1:],
        "heartbeat_ttl_seconds": chance.choice((10, 20, 30)),
        "stop_grace_seconds": chance.choice((2, 10)),
        "restart_policy": chance.choice(("OnFailure", "OnFailure", "Never")),
        "resilience": {
            "max_restarts": chance.randint(0, 4),
            "max_machine_restarts": chance.randint(1, 20),
            "backoff_seconds": chance.choice((1, 10)),
            "max_backoff_seconds": 20,
        },
    }
