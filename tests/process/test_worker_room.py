"""What a worker takes on: its room, whole machines, pinned hosts, fractions; and when it takes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.records import Capacity
from stado_like.job.states import Outcome
from tests.process.rig import Rig, make_rig, until

pytestmark = pytest.mark.serial


def spans(log: Path) -> list[tuple[float, float]]:
    """When each task ran: a task writes `b <name> <time>` and `e <name> <time>`."""
    began: dict[str, float] = {}
    found = []
    for line in log.read_text().splitlines():
        what, name, at = line.split()
        if what == "b":
            began[name] = float(at)
        else:
            found.append((began.pop(name), float(at)))
    assert not began
    return found


def most_at_once(log: Path) -> int:
    edges = sorted([(b, 1) for b, _ in spans(log)] + [(e, -1) for _, e in spans(log)])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def timed(log: Path, seconds: float = 0.3) -> str:
    say = f"echo %s $STADO_ATTEMPT_ID $(date +%s.%N) >> {log}"
    return f"{say.replace('%s', 'b', 1)}; sleep {seconds}; {say.replace('%s', 'e', 1)}"


def all_end(rig: Rig, j: JobId, tasks: int) -> None:
    for rank in range(tasks):
        assert rig.end(j, rank, within_s=30).outcome is Outcome.COMPLETED


def broadcast(rig: Rig, worker: str) -> Capacity:
    found = rig.bucket.read(Capacity, keys.capacity(worker))
    assert found is not None
    return found.record


def test_never_more_than_the_room(rig: Rig) -> None:
    rig.worker("w1", "--cpus", "2", "--memory", "8GiB")
    log = rig.folder / "log"
    all_end(rig, rig.submit("eight", timed(log), cores=1, array={"size": 8}), 8)
    assert most_at_once(log) == 2


def test_fractions_of_a_core_share_it(rig: Rig) -> None:
    rig.worker("w1", "--cpus", "2", "--memory", "8GiB")
    log = rig.folder / "log"
    all_end(rig, rig.submit("halves", timed(log, 1.0), cores=0.5, array={"size": 8}), 8)
    assert most_at_once(log) == 4


def test_memory_bounds_too(rig: Rig) -> None:
    rig.worker("w1", "--cpus", "8", "--memory", "2GiB")
    log = rig.folder / "log"
    all_end(rig, rig.submit("fat", timed(log), memory_bytes=1 << 30, array={"size": 4}), 4)
    assert most_at_once(log) == 2


def test_exclusive_runs_alone(rig: Rig) -> None:
    rig.worker("w1", "--cpus", "4", "--memory", "8GiB")
    log, whole = rig.folder / "log", rig.folder / "whole"
    around = rig.submit("around", timed(log), array={"size": 6})
    alone = rig.submit("alone", timed(whole, 0.5), exclusive=True)
    after = rig.submit("after", timed(log), array={"size": 4})
    all_end(rig, alone, 1)
    all_end(rig, around, 6)
    all_end(rig, after, 4)
    ((began, ended),) = spans(whole)
    assert [one for one in spans(log) if one[0] < ended and one[1] > began] == []


def test_pinned_host_waits_for_its_worker(rig: Rig) -> None:
    rig.worker("w1", "--cpus", "4", "--memory", "8GiB")
    j = rig.submit("pinned", "true", pinned_host="w2")
    other = rig.submit("free", "true")
    assert rig.end(other).worker == "w1"
    assert rig.bucket.claim(keys.AttemptId(j, 0, 1)) is None
    rig.worker("w2", "--cpus", "4", "--memory", "8GiB", state=rig.folder / "state-2")
    assert rig.end(j).worker == "w2"


@pytest.mark.alone
def test_two_default_tasks_run_at_once_on_an_idle_machine(rig: Rig) -> None:
    """Load and reservations count our own tasks twice: the second default task of an idle machine was refused."""
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one core only")
    busy = psutil.cpu_percent(1.0)
    if busy > 15:
        pytest.skip(f"this machine is not idle: {busy:.0f} % of its cores are busy")
    rig.worker("w1")
    here, there = rig.folder / "0", rig.folder / "1"
    script = f"touch {rig.folder}/$RANK; while [ ! -e {here} ] || [ ! -e {there} ]; do sleep 0.02; done"
    j = rig.submit_document(default_document(script))
    assert [rig.end(j, rank, within_s=20).outcome for rank in (0, 1)] == [Outcome.COMPLETED] * 2


def default_document(script: str) -> dict[str, object]:
    from stado_like.job.spec.validate import validate

    template = {"command": "sh", "args": ["-c", script]}
    return validate({"metadata": {"name": "default"}, "spec": {"task_template": template, "array": {"size": 2}}})


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 80 MiB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small file system needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=80m", "tmpfs", str(place)], capture_output=True)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted: {done.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def test_full_disk_stops_the_claiming_and_not_the_beating(rig: Rig, tiny: Path) -> None:
    """Disk full: the agent keeps accepting jobs and failing them."""
    rig.worker("w1", "--cpus", "4", "--memory", "8GiB", state=tiny / "state")
    running = rig.submit("running", f"while [ ! -e {rig.folder}/gate ]; do sleep 0.05; done; echo said")
    rig.running(running)
    first = broadcast(rig, "w1")
    assert (first.accepting, first.why_not) == (True, "")
    filler = tiny / "filler"
    filler.write_bytes(b"x" * (50 << 20))
    until(lambda: not broadcast(rig, "w1").accepting, 10, "the worker says that it takes nothing")
    assert "disk" in broadcast(rig, "w1").why_not
    waiting = rig.submit("waiting", "true")
    with filler.open("ab") as file, pytest.raises(OSError, match="No space left"):
        while True:  # to the last byte, under a running task
            file.write(b"x" * (1 << 20))
            file.flush()
    with pytest.raises(OSError, match="No space left"):
        (tiny / "last").write_bytes(b"x" * (1 << 20))
    beat = rig.beat(running)
    assert beat is not None
    seq = beat.seq
    until(lambda: (rig.beat(running) or beat).seq >= seq + 2, 10, "heartbeats go on")
    (rig.folder / "gate").touch()
    end = rig.end(running)
    assert (end.outcome, end.exit_code) in ((Outcome.COMPLETED, 0), (Outcome.FAILED, 1))  # its echo had no room
    rig.settled(running)
    assert rig.bucket.claim(keys.AttemptId(waiting, 0, 1)) is None
    filler.unlink()
    (tiny / "last").unlink()
    assert rig.end(waiting, within_s=15).outcome is Outcome.COMPLETED
    assert broadcast(rig, "w1").accepting


PIDS = Path("/sys/fs/cgroup/pids")


@pytest.fixture
def few_processes() -> Iterator[Path]:
    """A control group that counts processes, for a worker to be started in."""
    group = PIDS / f"stado-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group that counts processes can be made: {error}")
    try:
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text().split(), 10, "the group is empty")
        group.rmdir()


def test_machine_that_cannot_start_processes_spends_nothing_of_the_job(few_processes: Path, tmp_path: Path) -> None:
    """Job loops for ever on one bad host: launch failures cost the job nothing, and the worker takes a rest."""
    with make_rig(tmp_path) as rig:
        enter = ["sh", "-c", f'echo $$ > {few_processes}/cgroup.procs; exec "$@"', "sh"]
        rig.worker("w1", "--cpus", "2", "--memory", "2GiB", wrap=enter)
        (few_processes / "pids.max").write_text("3")  # agent, nursery and supervisor; no command, no thread
        j = rig.submit("unlucky", "echo ran")
        first = rig.end(j)
        assert (first.outcome, first.cause.value, first.is_final) == (Outcome.DOWN, "undelivered", False)
        assert "No process could be started" in first.reason
        third = rig.end(j, n=3)  # the second may be claimed before the agent has seen how the first ended
        assert third.claimed_at - first.ended_at > 0.5  # it rests
        until(lambda: "no process could be started" in broadcast(rig, "w1").why_not, 5, "it says why")
        (few_processes / "pids.max").write_text("max")
        n, end = rig.last(j)
        assert end.outcome is Outcome.COMPLETED
        assert (end.budgets.failures, end.budgets.machine, n > 2) == (0, 0, True)
