"""How much is free: our own tasks count once, other people's load counts, what a person says counts most."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_worker.machine.cpu import BusyReading
from stado_worker.machine.disk import disk_pressure, free_bytes
from stado_worker.machine.memory import growth_bytes
from stado_worker.machine.room import LiveRoom, Total, measure

GIB = 1 << 30
TWO_CORES = Total(2000, 8 * GIB)


class Machine:
    """A machine whose load a test sets. `run` lets time pass; the room samples it every tenth of a second."""

    def __init__(self, cores: int = 2, available_bytes: int = 8 * GIB) -> None:
        self.cores = cores
        self.available = available_bytes
        self.busy_core_s = 1000.0
        self.now_s = 0.0
        self.readings = 0

    def busy(self) -> BusyReading:
        self.readings += 1
        return BusyReading(self.busy_core_s, self.cores)

    def available_bytes(self) -> int:
        return self.available

    def run(self, room: LiveRoom, for_s: float, *, busy_cores: float, reserved_millis: int) -> None:
        for _ in range(round(for_s * 10)):
            self.now_s += 0.1
            self.busy_core_s += 0.1 * busy_cores
            room.sample(self.now_s, reserved_millis)


def test_two_default_tasks_run_at_once_on_an_idle_machine_of_two_cores() -> None:
    """Taking off both the load and the reservation refused the second task in three samples of four."""
    machine = Machine()
    room = LiveRoom(TWO_CORES, 0.0, sampler=machine)
    machine.run(room, 20, busy_cores=0.05, reserved_millis=0)
    assert room.free_cpu_millis(0) == 2000
    room.sample(machine.now_s, 1000)
    for _ in range(200):
        assert room.free_cpu_millis(1000) == 1000, "the second fits at every instant of the first's life"
        machine.run(room, 0.1, busy_cores=1.05, reserved_millis=1000)
    room.sample(machine.now_s, 2000)
    for _ in range(200):
        assert room.free_cpu_millis(2000) == 0
        machine.run(room, 0.1, busy_cores=2.0, reserved_millis=2000)
    room.sample(machine.now_s, 1000)
    for _ in range(200):
        assert room.free_cpu_millis(1000) == 1000, "and the third fits as soon as one of them ended"
        machine.run(room, 0.1, busy_cores=1.05, reserved_millis=1000)


def test_a_worker_that_just_started_offers_all_it_has() -> None:
    room = LiveRoom(TWO_CORES, 0.0, sampler=Machine())
    assert room.free_cpu_millis(0) == 2000


def test_foreign_load_is_taken_off() -> None:
    machine = Machine(cores=4)
    room = LiveRoom(Total(4000, GIB), 0.0, sampler=machine)
    machine.run(room, 10, busy_cores=2.25, reserved_millis=0)
    assert room.free_cpu_millis(0) == pytest.approx(2000, abs=1)
    machine.run(room, 11, busy_cores=3.25, reserved_millis=1000)
    assert room.free_cpu_millis(1000) == pytest.approx(1000, abs=1)
    machine.run(room, 11, busy_cores=1.0, reserved_millis=1000)
    assert room.free_cpu_millis(1000) == 3000, "ten seconds after it went it is forgotten"


def test_a_task_that_uses_more_than_it_asked_for_counts_as_load() -> None:
    machine = Machine(cores=4)
    room = LiveRoom(Total(4000, GIB), 0.0, sampler=machine)
    machine.run(room, 12, busy_cores=3.25, reserved_millis=1000)
    assert room.free_cpu_millis(1000) == pytest.approx(1000, abs=1)


def test_an_idle_task_keeps_what_it_reserved() -> None:
    machine = Machine(cores=4)
    room = LiveRoom(Total(4000, GIB), 0.0, sampler=machine)
    machine.run(room, 12, busy_cores=0.0, reserved_millis=3000)
    assert room.free_cpu_millis(3000) == 1000


def test_under_a_quota_the_neighbours_load_costs_only_what_reaches_us() -> None:
    machine = Machine(cores=64)
    room = LiveRoom(Total(2000, GIB), 0.0, sampler=machine)
    machine.run(room, 12, busy_cores=40.0, reserved_millis=0)
    assert room.free_cpu_millis(0) == 2000
    machine.run(room, 12, busy_cores=63.25, reserved_millis=0)
    assert room.free_cpu_millis(0) == pytest.approx(1000, abs=1)


def test_what_a_person_says_is_taken_as_given() -> None:
    machine = Machine(available_bytes=GIB)
    room = LiveRoom(Total(8000, 64 * GIB), 0.0, cpus_given=True, memory_given=True, sampler=machine)
    machine.run(room, 12, busy_cores=2.0, reserved_millis=0)
    assert room.free(3000, 60 * GIB, 60 * GIB).cpu_millis == 5000
    assert room.free(3000, 60 * GIB, 60 * GIB).memory_bytes == 4 * GIB
    assert measure(cpus=2.5, memory_bytes=GIB) == Total(2500, GIB)


def test_the_machine_is_read_at_most_twice_a_second() -> None:
    machine = Machine()
    room = LiveRoom(TWO_CORES, 0.0, sampler=machine)
    machine.run(room, 10, busy_cores=0, reserved_millis=0)
    assert 15 <= machine.readings <= 21


def test_memory_that_a_task_has_taken_is_not_taken_off_twice() -> None:
    machine = Machine(available_bytes=8 * GIB)
    room = LiveRoom(TWO_CORES, 0.0, sampler=machine)
    fresh = growth_bytes([(4 * GIB, 0)])
    assert room.free_memory_bytes(4 * GIB, fresh) == 4 * GIB
    machine.available = 5 * GIB
    machine.run(room, 0.2, busy_cores=0, reserved_millis=1000)
    assert room.free_memory_bytes(4 * GIB, growth_bytes([(4 * GIB, 3 * GIB)])) == 4 * GIB
    machine.available = 2 * GIB
    machine.run(room, 0.2, busy_cores=0, reserved_millis=1000)
    assert room.free_memory_bytes(4 * GIB, growth_bytes([(4 * GIB, 6 * GIB)])) == 2 * GIB, "excess credits nobody"
    assert growth_bytes([(GIB, 5 * GIB), (2 * GIB, 0)]) == 2 * GIB


@given(
    steps=st.lists(st.tuples(st.floats(0, 30), st.floats(0, 64), st.integers(0, 9000)), max_size=30),
    available=st.integers(0, 16 * GIB),
    reserved_bytes=st.integers(0, 32 * GIB),
)
def test_free_is_never_negative(steps: list[tuple[float, float, int]], available: int, reserved_bytes: int) -> None:
    """Case: negative free resources: free >= 0 after any sequence, and never more than is left unreserved."""
    machine = Machine(available_bytes=available)
    room = LiveRoom(TWO_CORES, 0.0, sampler=machine)
    for for_s, busy_cores, reserved in steps:
        machine.now_s += for_s
        machine.busy_core_s += for_s * busy_cores
        room.sample(machine.now_s, reserved)
        free = room.free(reserved, reserved_bytes, reserved_bytes)
        assert 0 <= free.cpu_millis <= max(0, 2000 - reserved)
        assert 0 <= free.memory_bytes <= max(0, 8 * GIB - reserved_bytes)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    there = tmp_path / "disk"
    there.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=65M", "tmpfs", there], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no file system of a chosen size can be mounted here")
    yield there
    subprocess.run(["umount", there], check=True)


def test_full_disk_is_a_reason(small_disk: Path) -> None:
    """Case: the disk is full and the agent keeps accepting jobs and failing them: it stops claiming, with reason
    `disk`.
    """
    assert disk_pressure(small_disk) is None
    (small_disk / "fill").write_bytes(b"x" * (2 << 20))
    reason = disk_pressure(small_disk)
    assert reason is not None
    assert reason.startswith(f"disk: {free_bytes(small_disk)} bytes free under {small_disk}, at least 67108864")
    with pytest.raises(OSError, match="No space left"), open(small_disk / "fill", "ab", buffering=0) as file:
        while True:
            file.write(b"x" * (1 << 20))
    assert str(disk_pressure(small_disk)).startswith("disk: 0 bytes free")


def test_a_disk_that_cannot_be_asked_is_a_reason(tmp_path: Path) -> None:
    assert str(disk_pressure(tmp_path / "nowhere")).startswith("disk: ")
