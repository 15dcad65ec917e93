"""`worker start --gpus`: a machine whose GPUs and ports a person describes, and who gets which of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stado_like.errors import UsageError
from stado_like.job import codec
from stado_like.job.hardware import AT_RISK, Device, GpuKind, Port
from stado_like.job.records import Capacity
from stado_like.job.terms import Ask
from stado_like.planning.fit import settled, why_not
from stado_like.planning.machines import machine_of
from stado_worker.machine.described import NO_HARDWARE, Hardware, described, hardware_said
from stado_worker.machine.room import LiveRoom, Total
from stado_worker.offer import Offer
from stado_worker.shim.attempt_dir import AttemptDir
from tests.builders_jobs import Clock
from tests.sim.host import _Idle

GIB = 1 << 30


def test_a_number_of_gpus_is_so_many_of_which_nothing_else_is_known() -> None:
    assert hardware_said("none") == NO_HARDWARE == hardware_said("0")
    assert hardware_said("2") == Hardware((Device(id="0", index=0), Device(id="1", index=1)))


def test_file_describes_gpus_and_ports(tmp_path: Path) -> None:
    path = tmp_path / "gpus.json"
    gpu = {"id": "GPU-a", "model": "H100", "vendor": "nvidia", "memory_bytes": 80 * GIB, "nvlink_domain": "nv"}
    ports = [{"kind": "infiniband", "gbps": 400, "active": False, "name": "mlx5_0"}]
    path.write_text(json.dumps({"gpus": [gpu, {"health": "at-risk", "trouble": "row remaps"}], "ports": ports}))
    found = hardware_said(f"file:{path}")
    assert found.gpus[0] == Device(id="GPU-a", model="H100", vendor="nvidia", memory_bytes=80 * GIB, nvlink_domain="nv")
    assert found.gpus[1] == Device(id="1", index=1, health=AT_RISK, trouble="row remaps")
    assert found.ports == (Port(kind="infiniband", gbps=400, active=False, name="mlx5_0"),)


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ([], "gpus.json: should be an object, found []"),
        ({"gpu": []}, "gpus.json: no such field: gpu"),
        ({"gpus": {}}, "gpus.json: gpus should be a list, found {}"),
        ({"gpus": [7]}, "gpus.json: gpus[0]: should be an object, found 7"),
        ({"gpus": [{"memory": 1}]}, "gpus.json: gpus[0]: no such field: memory"),
        ({"gpus": [{"memory_bytes": 8.5}]}, "gpus.json: gpus[0]: memory_bytes should be a whole number from 0 on"),
        ({"gpus": [{"memory_bytes": -1}]}, "memory_bytes should be a whole number from 0 on, found -1"),
        ({"gpus": [{"memory_bytes": True}]}, "memory_bytes should be a whole number from 0 on, found True"),
        ({"gpus": [{"health": "poor"}]}, "health should be one of healthy, at-risk, faulted, found poor"),
        ({"gpus": [{"id": "a"}, {"id": "a"}]}, "gpus.json: two GPUs with the id a"),
        ({"ports": [{}]}, "gpus.json: ports[0]: it has no kind"),
        ({"ports": [{"kind": "wifi"}]}, "kind should be one of infiniband, roce, ethernet, found wifi"),
        ({"ports": [{"kind": "roce", "active": 1}]}, "active should be true or false, found 1"),
    ],
)
def test_what_is_misspelt_is_refused_with_its_place(plain: Any, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        described(plain, "gpus.json")
    assert says in refused.value.message


@pytest.mark.parametrize("said", ["-1", "all", "1.5", "99999", "", "file:/nowhere/at/all.json"])
def test_what_is_no_description_is_refused(said: str) -> None:
    with pytest.raises(UsageError):
        hardware_said(said)


def test_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{gpus")
    with pytest.raises(UsageError, match="it is not JSON"):
        hardware_said(f"file:{tmp_path / 'x'}")


def offer(tmp_path: Path, hardware: Hardware) -> Offer:
    room = LiveRoom(Total(8000, 64 * GIB), 0.0, cpus_given=True, memory_given=True, sampler=_Idle(8))
    return Offer("w1", "h1", room, Clock(), tmp_path, hardware=hardware)


def test_worker_knows_who_holds_which_gpu_and_tells_it(tmp_path: Path) -> None:
    """GPUs count, shares of one too, and the broadcast says what is free of each."""
    hardware = described({"gpus": [{"memory_bytes": 80 * GIB}] * 2 + [{"model": "T4"}]}, "here")
    here = offer(tmp_path, hardware)
    folders = [AttemptDir.make(tmp_path, f"default.run.1.0000{n}.000001") for n in range(3)]
    share = Ask(0, 0, 1, gpu_kind=GpuKind(share_gb=40))
    reserved: list[tuple[AttemptDir, Ask]] = []
    for folder, ask in zip(folders, (share, Ask(0, 0, 1), share), strict=True):
        reserved.append((folder, settled(here.machine(reserved), ask)))
    assert [ask.devices for _, ask in reserved] == [("0",), ("1",), ("0",)]
    said = here.capacity(0.0, reserved, (), accepting=True)
    assert [one.free_share for one in said.gpus] == [0, 0, 10_000]
    assert (said.total.gpus, said.free.gpus) == (3, 1)
    heard = machine_of(codec.decode(Capacity, codec.encode(said), "capacity/w1.json"))
    for ask in (share, Ask(0, 0, 2), Ask(0, 0, 1, gpu_kind=GpuKind(models=("H100",)))):
        assert why_not(heard, ask) == why_not(here.machine(reserved), ask) != ()
    assert here.machine([]).free_gpus == 3


def test_task_of_an_older_worker_holds_as_many_gpus_as_it_asked_for(tmp_path: Path) -> None:
    here = offer(tmp_path, hardware_said("4"))
    folder = AttemptDir.make(tmp_path, "default.run.1.00000.000001")
    assert here.machine([(folder, Ask(0, 0, 3))]).free_gpus == 1


def test_ten_tenths_of_a_machine_are_the_machine(tmp_path: Path) -> None:
    here = offer(tmp_path, NO_HARDWARE)
    tenth = Ask(0, 0, 0, node_share=1000)
    reserved: list[tuple[AttemptDir, Ask]] = []
    while not why_not(here.machine(reserved), tenth):
        folder = AttemptDir.make(tmp_path, f"default.run.1.{len(reserved):05}.000001")
        reserved.append((folder, tenth))
    assert len(reserved) == 10
    assert why_not(here.machine(reserved), Ask(1, 0, 0)) == ("insufficient cpu: need 0.001 cores, 0 free",)
