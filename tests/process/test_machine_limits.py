"""Limits of control groups, read from trees made for the purpose: version 1, version 2, hybrid, containers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stado_worker.machine import cpu, memory
from stado_worker.machine.hierarchies import hierarchies
from stado_worker.machine.limits import Limits, MemoryGroup, oom_kills, read_limits

GIB = 1 << 30
V1_NO_LIMIT = "9223372036854771712"


def machine(tmp_path: Path, cgroup: str, mounts: list[tuple[str, str, str, str]]) -> Path:
    """A /proc with `mounts`: (root, folder below tmp_path, kind, superblock options)."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(cgroup)
    lines = [
        f"{30 + n} 23 0:{26 + n} {root} {tmp_path / folder} rw,relatime shared:9 - {kind} {kind} {options}"
        for n, (root, folder, kind, options) in enumerate(mounts)
    ]
    (proc / "self" / "mountinfo").write_text("\n".join(["22 1 8:1 / / rw - ext4 /dev/root rw", *lines]) + "\n")
    return proc


def group(path: Path, **files: object) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(f"{text}\n")
    return path


def test_version_2_takes_the_least_on_the_way_to_the_root(tmp_path: Path) -> None:
    """Case: a healthy job killed for the host's RAM: a limit of 4 GiB on a 64 GiB host offers 4 GiB."""
    proc = machine(tmp_path, "0::/a/b/c\n", [("/", "cg", "cgroup2", "rw")])
    root = group(tmp_path / "cg")
    group(
        root / "a", memory__max=8 * GIB, memory__current=GIB, memory__stat="inactive_file 0", cpu__max="400000 100000"
    )
    stat = f"anon 1\ninactive_file {GIB}\nactive_file {GIB}\nshmem 5"
    group(root / "a" / "b", memory__max=4 * GIB, memory__current=3 * GIB, memory__stat=stat, cpu__max="max 100000")
    group(root / "a" / "b" / "c", memory__max="max", cpu__max="150000 100000", memory__events="oom 3\noom_kill 2")
    found = read_limits(proc)
    assert (found.cpu_cores, found.memory_bytes) == (1.5, 4 * GIB)
    assert found.memory_left_bytes() == 3 * GIB, "page cache is given back on demand"
    assert oom_kills(proc) == 2
    assert cpu.total_millis(found) == min(1500, 1000 * len(cpu.allowed_cpus()))
    assert memory.total_bytes(found) <= 4 * GIB


def test_version_1_no_limit_is_a_huge_number(tmp_path: Path) -> None:
    proc = machine(
        tmp_path,
        "4:memory:/a/b\n2:cpu,cpuacct:/a\n1:name=systemd:/x\n0::/\n",
        [
            ("/", "memory", "cgroup", "rw,memory"),
            ("/", "cpu", "cgroup", "rw,cpu,cpuacct"),
            ("/", "unified", "cgroup2", "rw"),
        ],
    )
    none = {"memory__limit_in_bytes": V1_NO_LIMIT, "memory__usage_in_bytes": GIB}
    group(tmp_path / "unified")
    group(tmp_path / "memory", **none)
    group(tmp_path / "memory" / "a", **none)
    stat = f"cache 5\nhierarchical_memory_limit {V1_NO_LIMIT}\ntotal_inactive_file 1\ntotal_active_file 2"
    group(tmp_path / "memory" / "a" / "b", **none, memory__stat=stat, memory__oom_control="under_oom 0\noom_kill 4")
    group(tmp_path / "cpu" / "a", cpu__cfs_quota_us=-1, cpu__cfs_period_us=100000)
    assert read_limits(proc) == Limits(None, None)
    assert read_limits(proc).memory_left_bytes() is None
    assert oom_kills(proc) == 4
    group(tmp_path / "memory" / "a", memory__limit_in_bytes=4 * GIB, memory__stat=f"total_inactive_file {GIB // 2}")
    group(tmp_path / "cpu" / "a", cpu__cfs_quota_us=50000)
    found = read_limits(proc)
    assert (found.cpu_cores, found.memory_bytes) == (0.5, 4 * GIB)
    assert found.memory_groups == (MemoryGroup(tmp_path / "memory" / "a", 4 * GIB, GIB // 2),)
    assert found.memory_left_bytes() == 3 * GIB + GIB // 2


def test_version_1_container_sees_the_limit_above_its_mount(tmp_path: Path) -> None:
    """In a container the mount point is the group, whatever path /proc/self/cgroup shows; ancestors are folded in."""
    proc = machine(tmp_path, "4:memory:/docker/abc\n", [("/docker/abc", "memory", "cgroup", "rw,memory")])
    group(
        tmp_path / "memory",
        memory__limit_in_bytes=V1_NO_LIMIT,
        memory__usage_in_bytes=GIB,
        memory__stat=f"hierarchical_memory_limit {2 * GIB}",
    )
    found = read_limits(proc)
    assert (found.memory_bytes, found.memory_left_bytes()) == (2 * GIB, GIB)


@pytest.mark.parametrize("path", ["/../../elsewhere", "/docker/abc"])
def test_a_path_that_is_not_there_falls_back_to_the_mount(tmp_path: Path, path: str) -> None:
    proc = machine(tmp_path, f"0::{path}\n", [("/", "cg", "cgroup2", "rw")])
    group(tmp_path / "cg", memory__max=GIB, memory__current=0)
    assert [tree.group for tree in hierarchies(proc)] == [tmp_path / "cg"]
    assert read_limits(proc).memory_bytes == GIB


def test_mount_points_with_blanks_are_found(tmp_path: Path) -> None:
    proc = machine(tmp_path, "0::/\n", [("/", "c\\040g", "cgroup2", "rw")])
    group(tmp_path / "c g", memory__max=GIB, memory__current=0)
    assert read_limits(proc).memory_bytes == GIB


def test_no_proc_no_limits(tmp_path: Path) -> None:
    """macOS, or a machine without control groups."""
    assert read_limits(tmp_path) == Limits(None, None)
    assert oom_kills(tmp_path) is None


def test_over_the_limit_leaves_nothing_not_less() -> None:
    limits = Limits(None, GIB, (MemoryGroup(Path("/x"), GIB, 2 * GIB),))
    assert limits.memory_left_bytes() == 0


def test_this_machine_can_be_read() -> None:
    limits = read_limits()
    assert 0 < cpu.total_millis(limits) <= 1000 * (os.cpu_count() or 1)
    assert 0 < memory.available_bytes(limits) <= memory.total_bytes(limits)
    assert memory.resident_bytes([os.getpid()]) > 1 << 20
    if sys.platform == "linux":
        assert memory.resident_bytes([2**22 + 1]) == 0, "a process that ended holds nothing"
