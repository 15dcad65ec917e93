"""How many tasks a template stands for, what a machine must have for it, and what only a placement may start."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.job.demands import why_held
from stado_like.job.hardware import GpuKind, PortAsk
from stado_like.job.shape import Shape, shape_of
from stado_like.job.terms import Terms, terms_of

JUST_ONE = "Waiting for workers to start"
UNDECIDED = "Waiting for workers to be created"


def resources(count: int = 0, /, **more: Any) -> dict[str, Any]:
    gpus = {"count": count, **more.pop("gpu_requests", {})}
    return {**({"gpu_requests": gpus} if count or len(gpus) > 1 else {}), **more}


def terms(asked: dict[str, Any], **spec: Any) -> Terms:
    template = {"command": "x", "requested_resources": asked, **spec.pop("template", {})}
    return terms_of({"metadata": {"name": "run"}, "spec": {"task_template": template, **spec}})


@pytest.mark.parametrize(
    ("asked", "shape"),
    [
        (resources(), Shape(1, 0)),
        (resources(1), Shape(1, 1)),
        (resources(8), Shape(1, 8)),
        (resources(16, machines=2), Shape(2, 8)),
        (resources(machines=3), Shape(3, 0)),
        (resources(8, node_selection={"count": 4}), Shape(4, 2)),
        (resources(8, node_selection={"count": "4"}), Shape(4, 2)),
        (resources(4, node_selection={"names": ["a", "b"]}), Shape(2, 2)),
        (resources(4, node_selection={"mode": "Any", "names": ["a", "b"]}), Shape(1, 4)),
        (resources(4, node_selection={"match_labels": {"pool": "h100"}}), Shape(1, 4)),
        (resources(8, topology={"min_nodes": 2, "max_nodes": 2}), Shape(2, 4)),
        (resources(8, topology={"min_nodes": 2}), Shape(1, 8, decided=False)),
        (resources(topology={"min_nodes": 2}), Shape(1, 0, decided=False)),
        (resources(8, topology={"max_nodes": 2}), Shape(1, 8)),
        (resources(node_selection={"mode": "All"}), Shape(1, 0, decided=False)),
        (resources(8, gpu_requests={"policy": "All"}), Shape(1, 8, decided=False)),
        (resources(gpu_requests={"policy": "All"}), Shape(1, 1)),
        (resources(1, gpu_requests={"policy": "All"}), Shape(1, 1)),
        (resources(gpu_requests={"policy": "All", "min_per_machine": 4}), Shape(1, 4)),
        (resources(9, machines=2, gpu_requests={"policy": "All"}), Shape(2, 5)),
        (resources(machines=3, gpu_requests={"policy": "All"}), Shape(3, 1)),
        (resources(gpu_requests={"policy": "All"}, topology={"min_nodes": 2}), Shape(1, 1, decided=False)),
        (resources(gpu_requests={"policy": "All"}, node_selection={"mode": "All"}), Shape(1, 1, decided=False)),
        (resources(8, gpu_requests={"policy": "PerNode"}), Shape(1, 8, decided=False)),
        (resources(16, machines=2, gpu_requests={"policy": "PerNode"}), Shape(2, 8)),
    ],
)
def test_shape(asked: dict[str, Any], shape: Shape) -> None:
    assert shape_of(asked) == shape


def test_a_gang_of_several_gpus_is_shaped_by_the_scheduler_unless_the_number_is_said() -> None:
    assert shape_of(resources(16), together=True) == Shape(1, 16, decided=False)
    assert shape_of(resources(16, machines=2), together=True) == Shape(2, 8)
    assert shape_of(resources(1), together=True) == Shape(1, 1)


@pytest.mark.parametrize(
    ("asked", "trouble"),
    [
        (
            resources(12, node_selection={"count": 5}),
            "cannot evenly distribute 12 gpus across 5 machines",
        ),
        (
            resources(12, machines=2, gpu_requests={"policy": "PerNode"}),
            "12 gpus across 2 machines is 6 per worker, not a power of 2",
        ),
    ],
)
def test_a_total_that_the_number_cannot_divide_waits_and_says_so(asked: dict[str, Any], trouble: str) -> None:
    assert shape_of(asked).trouble == trouble
    got = terms(asked)
    assert got.held == f"Cannot plan workers: {trouble}" and got.ask.gpus == 0


@pytest.mark.parametrize(
    ("asked", "spec", "held"),
    [
        (resources(), {}, ""),
        (resources(8), {}, ""),
        (resources(machines=2), {}, ""),
        (resources(), {"array": {"size": 8}}, ""),
        (resources(), {"array": {"size": 8}, "on_failure": "RestartJob"}, ""),
        (resources(machines=2), {"on_failure": "RestartJob"}, JUST_ONE),
        (resources(), {"on_failure": "RestartJob"}, ""),
        (resources(machines=2), {"start": "Gang"}, JUST_ONE),
        (resources(8), {"start": "Gang"}, UNDECIDED),
        (resources(), {"after": [{"job": "other", "state": "Completed"}]}, ""),
        (resources(machines=2, topology={"keep_within": "rack"}), {}, JUST_ONE),
        (resources(machines=2, topology={"keep_within": "node"}), {}, JUST_ONE),
        (resources(topology={"keep_within": "rack"}), {}, ""),
        (resources(machines=2, topology={"spread": "rack"}), {}, JUST_ONE),
        (resources(machines=2, topology={"spread": "node"}), {}, ""),
        (resources(machines=2, placement="SameRack"), {}, JUST_ONE),
        (resources(machines=2, placement="TightestNetwork"), {}, ""),
        (resources(8, machines=2, network={"interconnect": "nvlink"}), {}, JUST_ONE),
        (resources(8, topology={"min_nodes": 2}), {}, UNDECIDED),
        (resources(node_selection={"mode": "All"}), {}, UNDECIDED),
    ],
)
def test_what_only_a_placement_may_start(asked: dict[str, Any], spec: dict[str, Any], held: str) -> None:
    assert terms(asked, **spec).held == held


def test_the_wait_of_a_held_job_is_worded_from_its_shape_first() -> None:
    assert why_held({"start": "Gang"}, {}, Shape(2, 0, trouble="why"), 2) == "Cannot plan workers: why"


@pytest.mark.parametrize(
    ("asked", "spec", "apart"),
    [
        (resources(machines=2), {}, "default.run/"),
        (resources(node_selection={"count": 2, "mode": "Any"}), {}, ""),
        (resources(node_selection={"count": 2, "mode": "Any"}, topology={"spread": "node"}), {}, "default.run/"),
        (resources(), {}, ""),
        (resources(), {"array": {"size": 4}}, ""),
    ],
)
def test_workers_of_one_run_keep_apart_unless_they_may_share(
    asked: dict[str, Any], spec: dict[str, Any], apart: str
) -> None:
    assert terms(asked, **spec).ask.apart == apart


@pytest.mark.parametrize(
    ("asked", "template", "needs"),
    [
        (resources(), {}, {}),
        (resources(), {"image": "busybox"}, {"container": "machine runs no containers (image busybox)"}),
        (resources(), {"isolation": "sandbox"}, {"sandbox": "machine cannot run sandboxed workers (no gVisor)"}),
        (
            resources(),
            {"network": {"egress": {"default": "deny"}}},
            {"egress": "machine cannot enforce an outbound policy (no container runtime on the node network)"},
        ),
        (resources(), {"network": {"egress": {"default": "allow", "cluster": "all"}}}, {}),
        (resources(), {"datavolume_refs": [{"name": "d"}]}, {"drives": "drive d does not exist"}),
        (
            resources(),
            {"volumes": [{"mount_path": "/x"}]},
            {"volumes": "machine mounts no volumes for a process (give an image)"},
        ),
        (resources(), {"user": "1000"}, {"user": "machine starts no process as another user (1000)"}),
        (
            resources(),
            {"security_context": {"privileged": True}},
            {"security": "machine sets no security context for a process (give an image)"},
        ),
        (resources(), {"security_context": {"privileged": False, "ipc_mode": "private"}}, {}),
        (
            resources(),
            {"image": "b", "user": "1000", "security_context": {"privileged": True}},
            {"container": "machine runs no containers (image b)"},
        ),
    ],
)
def test_what_a_machine_must_have(asked: dict[str, Any], template: dict[str, Any], needs: dict[str, str]) -> None:
    got = terms(asked, template=template).ask
    assert got.needs == needs and got.is_picky == bool(needs)


@pytest.mark.parametrize(
    ("asked", "hardware"),
    [
        (resources(), {}),
        (resources(1), {}),
        (resources(1, gpu_requests={"models": ["H100"]}), {"gpu_kind": GpuKind(models=("H100",))}),
        (
            resources(1, gpu_requests={"models": ["H100", "H200"], "vendor": "nvidia", "min_memory_gb": 80}),
            {"gpu_kind": GpuKind(("H100", "H200"), "nvidia", 80)},
        ),
        (resources(1, gpu_requests={"healthy_only": True}), {"gpu_kind": GpuKind(healthy_only=True)}),
        (resources(1, gpu_requests={"ids": ["GPU-1"]}), {"gpu_kind": GpuKind(ids=("GPU-1",))}),
        (resources(1, gpu_requests={"memory_gb": 10}), {"gpu_kind": GpuKind(share_gb=10)}),
        (resources(8, gpu_requests={"policy": "All"}), {"gpu_kind": GpuKind(every=True)}),
        (resources(gpu_requests={"healthy_only": True}), {}),
        (resources(network={"interconnect": "rdma"}), {"ports": PortAsk("rdma")}),
        (resources(network={"interconnect": "infiniband", "min_gbps": 200}), {"ports": PortAsk("infiniband", 200)}),
        (resources(network={"min_gbps": 100}), {"ports": PortAsk("rdma", 100)}),
        (resources(network={"interconnect": "auto"}), {}),
        (resources(node_fraction=0.1), {"node_share": 1000}),
        (resources(node_fraction=1), {"node_share": 10_000}),
        (resources(node_fraction=0.00001), {"node_share": 1}),
    ],
)
def test_hardware_that_a_task_asks_for(asked: dict[str, Any], hardware: dict[str, Any]) -> None:
    got = terms(asked).ask
    found = {"gpu_kind": got.gpu_kind, "ports": got.ports, "node_share": got.node_share}
    assert found == {"gpu_kind": GpuKind(), "ports": PortAsk(), "node_share": 0, **hardware}
    assert got.is_picky == bool(hardware)


def test_cores_and_memory_for_each_gpu_follow_the_shape() -> None:
    per_gpu = {"cpu_cores": 12, "memory_bytes": 1 << 30}
    got = terms(resources(16, machines=2, per_gpu=per_gpu)).ask
    assert (got.cpu_millis, got.memory_bytes, got.gpus) == (96_000, 8 << 30, 8)
    assert terms(resources(node_fraction=0.5)).ask.cpu_millis == 0
