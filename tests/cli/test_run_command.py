"""`stado run` and `stado up` as real processes on a directory store: jobs are submitted, worked, and told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stado_like.client import Client

pytestmark = pytest.mark.serial


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setenv("STADO_STORE", f"file://{tmp_path}/store?durable=0")
    monkeypatch.chdir(tmp_path)
    with Client() as made:
        yield made


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "stado_cli.main", *words]


def finished(*words: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=timeout_s, check=False)


def until(seen: Callable[[], object], what: str, *, within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not seen():
        assert time.monotonic() < deadline, f"{what} did not happen within {within_s} s"
        time.sleep(0.02)


def test_run_streams_output_and_exits_as_the_job_did(client: Client, tmp_path: Path) -> None:
    done = finished("run", "-J", "a", "--", "sh", "-c", "pwd; echo out; echo err >&2; exit 3")
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"{tmp_path}\nout\nerr\n"
    view = client.view("a")
    assert (view.state, view.tasks[0].attempt, view.tasks[0].exit_code) == ("Failed", 1, 3)
    assert view.terms.restart_policy == "Never"
    assert client.workers()[0] == []
    assert list((Path(os.environ["HOME"]) / ".local/state/stado").glob("*-run-*")) == []


def test_run_of_an_array_prefixes_lines(client: Client) -> None:
    done = finished("run", "-a", "3", "--", "sh", "-c", "echo task $STADO_ARRAY_TASK_ID")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] task 0", "[1] task 1", "[2] task 2"]


def test_run_of_a_command_that_is_not_there(client: Client) -> None:
    done = finished("run", "--", "no-such-command-here")
    assert done.returncode == 127, done.stderr
    assert "no-such-command-here" in done.stderr


def test_interrupted_run_exits_130_and_the_job_goes_on(client: Client, tmp_path: Path) -> None:
    words = command(
        "run", "-J", "slow", "--", "sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended"
    )
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    try:
        assert process.returncode == 130
        assert "the job slow goes on" in err
        until(lambda: client.job("slow").state == "Running", "a heartbeat of the task that goes on")
    finally:
        (tmp_path / "go").touch()
    assert client.job("slow").wait(timeout_s=30) == "Completed"
    assert client.logs("slow") == "begun\nended\n"


def test_watch_on_a_terminal_shows_a_live_picture(client: Client) -> None:
    job = client.submit(command=["true"], name="shown")
    job.cancel("enough")
    shell, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    watching = subprocess.Popen(command("watch", "shown", "-F"), stdout=terminal, stderr=terminal, env=environment)
    try:
        assert watching.wait(timeout=30) == 1
        shown = os.read(shell, 1 << 16).decode()
    finally:
        watching.kill()
        os.close(terminal)
        os.close(shell)
    assert "Cancelled" in shown and "enough" in shown and "shown-0" in shown


def test_up_works_jobs_and_stops_its_tasks_on_the_first_ctrl_c(client: Client) -> None:
    up = subprocess.Popen(command("up", "--cpus", "2", "--memory", "4GiB"), stderr=subprocess.PIPE, text=True)
    try:
        quick = client.submit(command=["sh", "-c", "echo quick"], name="quick")
        assert quick.wait(timeout_s=30) == "Completed"
        array = client.submit(command=["true"], name="array", array="4%2", cpus=0.5, memory="10MiB")
        assert array.wait(timeout_s=30) == "Completed"
        slow = client.submit(
            command=["sh", "-c", "trap 'echo saved; exit 0' TERM; while :; do sleep 0.05; done"], name="slow"
        )
        until(lambda: slow.state == "Running", "running")
        watching = subprocess.Popen(command("watch", "slow", "-F", "--json"), stdout=subprocess.PIPE, text=True)
        up.send_signal(signal.SIGINT)
        _, err = up.communicate(timeout=60)
        told, _ = watching.communicate(timeout=30)
    finally:
        up.kill()
    assert up.returncode == 0, err
    assert "another machine joins with: stado worker start --store" in err
    assert slow.wait(timeout_s=5) == "Cancelled"
    assert slow.logs().endswith("saved\n")
    assert watching.returncode == 1
    assert json.loads(told.splitlines()[-1])["state"] == "Cancelled"
    assert client.workers()[0] == []
