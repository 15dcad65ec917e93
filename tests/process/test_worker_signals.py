"""Signals and kills on a real worker: the warning before a time limit, its machine's own ceilings, want of memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stado_like.bucket import cancel
from stado_like.bucket.cluster import ClusterRecord
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.states import Cause, Outcome, TaskState
from tests.process.rig import Rig, document, make_rig, until
from tests.process.test_worker_crash import away

pytestmark = pytest.mark.serial
ROOM = ("--cpus", "4", "--memory", "4GiB")
MEMORY = Path("/sys/fs/cgroup/memory")


def warned(rig: Rig, name: str, script: str, *, seconds: int, limit_s: int) -> JobId:
    """A job that is warned sooner than a document may ask for."""
    made = document(name, script, time_limit_s=limit_s)
    made["spec"]["task_template"]["resilience"]["signal_before_limit"] = {"signal": "SIGUSR1", "seconds": seconds}
    return rig.submit_document(made)


def test_warning_reaches_the_whole_group_once_and_is_in_the_history(rig: Rig) -> None:
    rig.worker("w1", *ROOM)
    listen = "trap 'echo %s' USR1; while :; do sleep 0.02; done"
    child = (listen % "child").replace("'", "'\\''")
    script = f"exec 2>/dev/null; sh -c '{child}' & {listen % 'leader'}"
    end = rig.end(warned(rig, "warned", script, seconds=2, limit_s=3), within_s=10)
    assert (end.cause, end.state) == (Cause.TIME_LIMIT, TaskState.FAILED)
    assert end.log is not None and sorted((end.log.text or "").split()) == ["child", "leader"]
    told = [one for one in end.history.changes if one.reason.startswith("Sent SIGUSR1")]
    assert [(one.state, one.reason) for one in told] == [("Running", "Sent SIGUSR1 2s before its time limit of 3s")]


def test_warning_and_limit_come_with_a_new_agent_and_without_a_store(rig: Rig) -> None:
    """Both are the supervisor's own: neither an agent that died nor a store that is away delays them."""
    worker = rig.worker("w1", *ROOM)
    script = "exec 2>/dev/null; trap 'touch $STADO_STOP_FILE.warned' USR1; while :; do sleep 0.02; done"
    j = warned(rig, "alone", script, seconds=1, limit_s=4)
    a = keys.AttemptId(j, 0, 1)
    worker.supervisor(a)
    worker.kill()
    warning = worker.folder(a).path / "stop.warned"
    rig.worker("w1", *ROOM)
    until(lambda: rig.beat(j) is not None, 5, "it is seen running")
    away(rig, gone=True)
    try:
        until(warning.exists, 8, "the warning came")
        until((worker.folder(a).path / "exit.json").exists, 8, "and the limit")
    finally:
        away(rig, gone=False)
    end = rig.end(j, within_s=30)
    assert (end.cause, end.reason, end.is_final) == (Cause.TIME_LIMIT, "Exceeded its time limit of 4s", True)


@pytest.mark.parametrize("by", ["the machine's variables", "the cluster's record"])
def test_grace_of_a_job_is_cut_at_the_ceiling(tmp_path: Path, by: str) -> None:
    of_machine = by.startswith("the machine")
    env = {"STADO_STOP_GRACE": "1", "STADO_MAX_STOP_GRACE": "2"} if of_machine else {}
    with make_rig(tmp_path, env=env) as rig:
        said = {"stop_grace_seconds": 3600, "max_stop_grace_seconds": 3600} if of_machine else {}
        said = said or {"stop_grace_seconds": 1, "max_stop_grace_seconds": 2}
        ClusterRecord(rig.bucket, lambda: None, lambda: "operator").change(said)
        rig.worker("w1", *ROOM)
        for name, task, grace_s in (("own", {"stop_grace_seconds": 600}, 2), ("none", {}, 1)):
            j = rig.submit(name, "exec 2>/dev/null; trap '' TERM; while :; do sleep 0.05; done", task=task)
            rig.running(j)
            cancel.cancel_job(rig.bucket, j)
            assert f"killed after {grace_s} s of grace" in rig.end(j, within_s=10).notes


@pytest.fixture
def little_memory() -> Iterator[Path]:
    """A control group of version 1 with a limit, for a worker to be started in: its tree of version 2 has no
    controllers."""
    group = MEMORY / f"stado-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(400 << 20))
    except OSError as error:
        pytest.skip(f"no control group with a limit on memory can be made: {error}")
    try:
        yield group
    finally:
        until(lambda: not (group / "cgroup.procs").read_text().split(), 10, "the group is empty")
        group.rmdir()


def test_want_of_memory_is_told_from_the_counter_and_not_from_137(little_memory: Path, tmp_path: Path) -> None:
    """OOM-killed step recorded as success, or shown as a plain 137: also where only the worker's own group counts."""
    eats = 'exec python3 -c "x = [bytearray(1 << 20) for _ in range(2000)]"'
    with make_rig(tmp_path) as rig:
        enter = ["sh", "-c", f'echo $$ > {little_memory}/cgroup.procs; exec "$@"', "sh"]
        rig.worker("w1", "--cpus", "4", "--memory", "4GiB", wrap=enter)
        never = {"restart_policy": "Never"}
        end = rig.end(rig.submit("eats", eats, task=never), within_s=30)
        assert (end.outcome, end.exit_code, end.signal) == (Outcome.FAILED, 137, "SIGKILL")
        assert end.reason == "OOMKilled: the container exceeded its memory limit"
        after = rig.end(rig.submit("killed", "kill -9 $$", task=never), within_s=10)
        assert (after.exit_code, after.signal) == (137, "SIGKILL")
        assert after.reason == "Exited with code 137 (killed by SIGKILL)"


def test_supervisor_that_dies_while_it_stops_its_task_ends_it_as_the_stop_asked(rig: Rig) -> None:
    worker = rig.worker("w1", *ROOM)
    j = rig.submit("stopping", "exec 2>/dev/null; trap '' TERM; while :; do sleep 0.05; done", time_limit_s=2)
    pid = worker.supervisor(keys.AttemptId(j, 0, 1))

    def stopping() -> bool:
        beat = rig.beat(j)
        return beat is not None and beat.state is TaskState.STOPPING

    until(stopping, 8, "it is being stopped")
    os.kill(pid, signal.SIGKILL)
    end = rig.end(j)
    assert (end.cause, end.state, end.is_final) == (Cause.TIME_LIMIT, TaskState.FAILED, True)
    assert end.budgets.supervisor_deaths == ()
