"""A store with one worker process on it, as a person would start it, and everything of it ended again.

The worker is `stado worker start` itself, with a state directory of its own. Ending it leaves running tasks going on
(that is its contract), so whatever attempt still has a supervisor then is killed through its folder, which holds the
pid and the control group that this run made, and nothing else is touched.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stado_like.ambient import REAL
from stado_like.client import Client
from stado_like.job import keys
from stado_worker.shim.attempt_dir import attempt_dirs
from stado_worker.shim.cgroup import group_name
from stado_worker.shim.process import kill_attempt

WORKER = "bench"
SLOTS = 2
READY_S = 20.0
END_S = 10.0
POLL_S = 0.005


class NotMeasured(Exception):
    """A figure could not be taken; the text says what was seen."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A store's URL, a client of it, and the worker's process."""

    url: str
    client: Client
    state: Path
    pid: int

    @property
    def attempts(self) -> Path:
        return self.state / WORKER / "attempts"


def until(holds: Callable[[], bool], within_s: float, what: str, *, poll_s: float = POLL_S) -> None:
    """Wait for `holds()`. Raises `NotMeasured`."""
    deadline_s = REAL.boot_s() + within_s
    while not holds():
        if REAL.boot_s() > deadline_s:
            raise NotMeasured(f"{what}: not within {within_s:g} s")
        REAL.sleep(poll_s)


def die_with_parent() -> None:
    """For `preexec_fn`: what this run starts does not outlive it, even killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def environment(place: Path, more: Mapping[str, str]) -> dict[str, str]:
    """No setting of the person who runs this: own home, own state, nothing of STADO_*."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STADO_", "ASTRAEUS_", "XDG_", "AWS_"))}
    return {**kept, "HOME": str(place), "STADO_STATE": str(place / "state"), **more}


def stado() -> str:
    return str(Path(sys.executable).with_name("stado"))


@contextmanager
def cluster(
    place: Path, url: str, *, program: list[str] | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A worker of two slots on `url`, its state and its log below `place`. `program`: what to start in its stead."""
    place.mkdir(parents=True, exist_ok=True)
    command = program or [
        stado(), "--store", url, "worker", "start", "--id", WORKER, "--cpus", str(SLOTS), "--memory", "64GiB",
    ]  # fmt: skip
    log = place / "worker.log"
    client = Client(url)
    client.ready_to_write()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment(place, env or {}),
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of prctl, no lock is taken
        )
    running = Cluster(url, client, place / "state", process.pid)
    try:
        until(lambda: _is_ready(running, process, log), READY_S, f"{' '.join(command)} did not broadcast")
        yield running
        if process.poll() is not None:
            raise NotMeasured(f"the worker ended with {process.returncode}: {log.read_text()[-500:]}")
    finally:
        _end(process)
        _kill_tasks(running)
        client.close()


def _is_ready(running: Cluster, process: subprocess.Popen[bytes], log: Path) -> bool:
    if process.poll() is not None:
        raise NotMeasured(f"the worker ended with {process.returncode}: {log.read_text()[-500:]}")
    return running.client.store.head(keys.capacity(WORKER)) is not None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kill_tasks(running: Cluster) -> None:
    if not running.attempts.is_dir():
        return
    for folder in attempt_dirs(running.attempts):
        pid = (folder.read_proc() or {}).get("pid")
        if folder.is_done() or not folder.is_alive() or not isinstance(pid, int):
            continue
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended between the look and the kill
        kill_attempt(folder.attempt_id, group_name(folder.path), marks={"STADO_STOP_FILE": str(folder.stop)})
