"""Names that differ where they must: containers of one image, copied disks, second workers."""

from __future__ import annotations

import re
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stado_like.ambient import RealAmbient
from stado_like.errors import Conflict, UsageError
from stado_worker.machine.identity import WorkerHome, default_worker_id, host_label, machine_id, state_home


class Host(RealAmbient):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def host(self) -> str:
        return self._name


def test_two_containers_of_one_host_name_differ(tmp_path: Path) -> None:
    """Case: replicas collide under one node name: same host name, same machine-id, and the ids differ."""
    ids = {default_worker_id(tmp_path / name, ambient=Host("box"), system_id="same") for name in "ab"}
    assert len(ids) == 2
    assert all(re.fullmatch(r"box-[0-9a-f]{6}", one) for one in ids)
    assert machine_id(tmp_path / "a", system_id="same") != machine_id(tmp_path / "b", system_id="same")


def test_a_restart_keeps_the_id_and_a_copied_state_directory_does_not(tmp_path: Path) -> None:
    first = default_worker_id(tmp_path, ambient=Host("box"), system_id="one")
    assert default_worker_id(tmp_path, ambient=Host("box"), system_id="one") == first
    assert default_worker_id(tmp_path, ambient=Host("box"), system_id="another") != first
    assert machine_id(tmp_path, system_id="one") == machine_id(tmp_path, system_id="one")
    assert machine_id(tmp_path, system_id="one") != machine_id(tmp_path, system_id="another")


def test_first_starts_at_once_agree(tmp_path: Path) -> None:
    together = threading.Barrier(8)
    found: list[str] = []

    def first_start() -> None:
        together.wait()
        found.append(default_worker_id(tmp_path / "new", ambient=Host("box"), system_id="x"))

    starts = [threading.Thread(target=first_start) for _ in range(8)]
    for one in starts:
        one.start()
    for one in starts:
        one.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_an_emptied_token_is_made_again(tmp_path: Path) -> None:
    (tmp_path / ".token").touch()
    assert machine_id(tmp_path, system_id="x") == machine_id(tmp_path, system_id="x")
    assert (tmp_path / ".token").read_text().strip()


@pytest.mark.parametrize(
    ("host", "label"),
    [
        ("Node-7.example.com", "node-7-example-com"),
        ("żółw_1", "w-1"),
        ("...", "worker"),
        ("", "worker"),
        ("a" * 80, "a" * 48),
    ],
)
def test_host_names_become_ids(host: str, label: str, tmp_path: Path) -> None:
    assert host_label(host) == label
    WorkerHome(tmp_path, default_worker_id(tmp_path, ambient=Host(host), system_id="x"))


def test_state_home() -> None:
    assert state_home({"HOME": "/home/a"}) == Path("/home/a/.local/state/stado")
    assert state_home({"HOME": "/home/a", "STADO_STATE": "/elsewhere"}) == Path("/elsewhere")


@pytest.mark.parametrize("bad", ["", ".", "../x", "a/b", "-x", "a.b", "x" * 64, "ż"])
def test_an_id_that_is_no_name_is_refused(bad: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be a worker id"):
        WorkerHome(tmp_path, bad)


def test_a_state_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for make in (lambda: default_worker_id(tmp_path / "file"), WorkerHome(tmp_path / "file" / "x", "w").make):
        with pytest.raises(UsageError, match=r"Not a directory|File exists") as told:
            make()
        assert "STADO_STATE" in told.value.next_step


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may grow: as on a full disk, every write fails and empty files can still be made. (No fixture, whose end
    comes after the test was told: pytest's own words may go to a file.)
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_worker_starts_again_on_a_full_disk(tmp_path: Path) -> None:
    """Tasks of the worker before may run there, and somebody has to adopt or end them."""
    home = WorkerHome(tmp_path, "w1")
    home.lock_worker_id().release()
    with full_disk():
        lock = home.lock_worker_id()
        with pytest.raises(Conflict, match="its pid is not written yet"):
            home.lock_worker_id()
        lock.release()
    assert [path.name for path in home.path.glob(".holder*")] == []


def test_first_start_on_a_full_disk_is_refused_in_words(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(UsageError, match="cannot be kept in") as told:
        machine_id(tmp_path)
    assert "make room" in told.value.next_step


def test_one_worker_per_id(tmp_path: Path) -> None:
    home = WorkerHome(tmp_path, "w1")
    lock = home.lock_worker_id()
    with pytest.raises(Conflict, match=rf"already runs on .* \(pid {RealAmbient().pid}, host ") as refused:
        home.lock_worker_id()
    assert "--id" in refused.value.next_step
    WorkerHome(tmp_path, "w2").lock_worker_id().release()
    lock.release()
    home.lock_worker_id().release()
    assert home.attempts.is_dir()
