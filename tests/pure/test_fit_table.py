"""The published table of per-machine reasons, row by row: a small world in which a machine says exactly that. A row
without a world fails, and so does a world without a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stado_like.job.hardware import AT_RISK, FAULTED, GpuKind, Port, PortAsk
from stado_like.job.records import Capacity, Room
from stado_like.job.terms import Ask, terms_of
from stado_like.job.wanted import Wanted
from stado_like.planning.board import Spot, Unit
from stado_like.planning.fit import Machine, why_not
from stado_like.planning.machines import machine_of, silent
from stado_like.planning.topology import Unassigned, assign
from tests.pure.spots import EIGHT, GIB, SMALL, cards, here, machine, spot, unit

TABLE = yaml.safe_load((Path(__file__).parents[1] / "data" / "reasons" / "machine-reasons.yaml").read_text())["rows"]
ROWS = {row["says"]: row.get("reads", row["says"]) for row in TABLE if "excepted" not in row}
LATER = {row["says"] for row in TABLE if row.get("later") == "drives"}
NVIDIA = GpuKind(("H100", "H200"), "nvidia", 80)
ROOMY = Room(cpu_millis=64_000, memory_bytes=512 * GIB, gpus=8)
SPREAD_OUT = [spot("gpu-1", 8, rack="r7"), spot("gpu-2", 8, rack="r7"), spot("gpu-3", 8, rack="r8")]
APART = replace(SMALL, apart="default.train/")


def one(found: Machine, **ask: Any) -> Callable[[], tuple[str, ...]]:
    """What one machine says of one task of one core and 1 GiB."""
    return lambda: why_not(found, replace(SMALL, **ask))


def told(says: Capacity, **more: Any) -> Callable[[], tuple[str, ...]]:
    """What is said for a machine after its broadcast."""
    return lambda: why_not(machine_of(says, **more), SMALL)


def placed(asked: Unit, spots: list[Spot], worker: str) -> Callable[[], tuple[str, ...]]:
    """What a machine says of a unit that found no place."""

    def say() -> tuple[str, ...]:
        found = assign(asked, spots, 0.0)
        assert isinstance(found, Unassigned)
        return found.nodes[worker]

    return say


def template(**said: Any) -> Callable[[], tuple[str, ...]]:
    """What a machine without abilities says of a template."""
    plain = {"command": "x", "requested_resources": {}, **said}
    terms = terms_of({"metadata": {"name": "run"}, "spec": {"task_template": plain}})
    return lambda: why_not(machine(), terms.ask)


def capacity(**more: Any) -> Capacity:
    return Capacity(nonce="n", worker="gpu-1", host="gpu-1", total=ROOMY, free=ROOMY, **more)


WORLDS: dict[str, Callable[[], tuple[str, ...]]] = {
    "machine is not ready (<state>)": lambda: why_not(silent("gpu-1", "Down"), Ask(0, 0, 0)),
    "machine is not ready (no capacity reported)": lambda: why_not(silent("gpu-1"), Ask(0, 0, 0)),
    "under pressure: <condition>": told(capacity(accepting=False, why_not="disk", pressure="disk")),
    "machine does not accept runs: <why>": told(capacity(accepting=False)),
    "machine is cordoned: <why>": told(capacity(), wanted=Wanted(cordoned=True, reason="new disks")),
    "worker carries none of the labels this machine accepts": one(machine(labels={"pool": "b", "accepts": "pool"})),
    "machine is not among the selected names": one(machine("gpu-1"), names=("gpu-2",)),
    "machine lacks label <k>=<v>": one(machine(labels={"pool": "a"}), labels={"pool": "b"}),
    "no active RDMA port": one(machine(ports=(Port(kind="ethernet", gbps=400),)), ports=PortAsk("rdma")),
    "no active InfiniBand port at 200 Gb/s or faster (<found>)": one(
        machine(ports=(Port(kind="infiniband", gbps=100),)), ports=PortAsk("infiniband", 200)
    ),
    "another worker of this run is already on the machine": one(machine(apart=frozenset({"a/"})), apart="a/"),
    "insufficient cpu: need 32 cores, 16 free": one(machine(free_cpu_millis=16_000), cpu_millis=32_000),
    "insufficient memory: need <bytes> bytes, <free> free": one(machine(free_memory_bytes=1024), memory_bytes=2048),
    "insufficient gpus: need 8, 4 free and usable": one(machine(gpus=4), gpus=8),
    "needs 8 healthy GPUs, 6 free (2 more free but at risk)": one(
        machine(gpus=8, devices=cards(6) + tuple(replace(d, id=d.id + "x", health=AT_RISK) for d in cards(2))),
        gpus=8,
        gpu_kind=GpuKind(healthy_only=True),
    ),
    "no H100 GPU": one(machine(devices=cards(8, model="A100")), gpus=1, gpu_kind=GpuKind(("H100",))),
    "no nvidia H100 or H200 with at least 80 GB GPU": one(
        machine(devices=cards(8, model="H100", memory_bytes=64 * GIB)), gpus=1, gpu_kind=NVIDIA
    ),
    "gpu fault on the machine: GPU 3: Xid 79<more>": one(
        machine(
            devices=tuple(
                replace(d, health=FAULTED, trouble="Xid 79 (GPU has fallen off the bus)") if d.index == 3 else d
                for d in cards(4)
            )
        ),
        gpus=4,
    ),
    "the run is kept on one machine, <m>": placed(
        unit(3, replace(EIGHT, apart=""), keep_within="node"),
        [spot("gpu-1", 16), spot("gpu-2", 8)],
        "gpu-2",
    ),
    "the run is kept within rack <r>": placed(unit(3, EIGHT, keep_within="rack"), SPREAD_OUT, "gpu-3"),
    "no rack set on this machine (topology.astraeus.io/rack)": placed(
        unit(2, EIGHT, keep_within="rack"), [spot("gpu-1")], "gpu-1"
    ),
    "the run may use at most <n> machines": placed(unit(3, EIGHT, max_nodes=2), SPREAD_OUT, "gpu-3"),
    "rack <r> already has a worker of this run": placed(unit(3, APART, spread="rack"), SPREAD_OUT, "gpu-2"),
    "drive <d> does not exist": template(datavolume_refs=[{"name": "data"}]),
    "machine cannot enforce an outbound policy (<why>)": template(network={"egress": {"default": "deny"}}),
    "machine cannot run sandboxed workers (<why>)": template(isolation="sandbox"),
}


def test_every_row_of_the_table_has_a_world() -> None:
    assert set(WORLDS) == set(ROWS) - LATER


@pytest.mark.parametrize("says", WORLDS)
def test_machine_says_it_word_for_word(says: str) -> None:
    """The row's own sentence with its numbers, and beside it nothing that has no cause here."""
    found = WORLDS[says]()
    reads = ROWS[says]
    beside = {
        "gpu fault on the machine: GPU 3: Xid 79<more>": ("insufficient gpus: need 4, 3 free and usable",),
    }.get(says, ())
    assert set(found) == {reads, *beside}


def test_worker_that_fell_silent_says_for_how_long() -> None:
    assert told(capacity(), stale=True, age_s=300.0)() == ("machine is not ready (last heard 5m ago)",)


def test_what_waits_for_a_join_is_kept_where_its_run_is() -> None:
    spots = [spot("gpu-1", 8, rack="r7", running=[here(0, EIGHT)]), spot("gpu-2", 8, rack="r8")]
    spots[0] = replace(spots[0], machine=replace(spots[0].machine, free_gpus=0, apart=frozenset({EIGHT.apart})))
    found = assign(unit(1, EIGHT, keep_within="rack"), spots, 0.0)
    assert isinstance(found, Unassigned)
    assert found.nodes["gpu-2"] == ("the run is kept within rack r7",)
    assert found.nodes["gpu-1"] == (
        "another worker of this run is already on the machine",
        "insufficient gpus: need 8, 0 free and usable",
    )
