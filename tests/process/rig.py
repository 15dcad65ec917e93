"""Real workers on a store of their own: started as a person starts them, killed as the world kills them.

A rig is a folder with a store, one state directory per machine, and everything that was started on it. Jobs go in
through the library's own door. At the end every process that belongs to the rig is ended by its pid: agents, nurseries,
supervisors, and whatever their tasks left. Nothing here sleeps for a fixed time: `until` looks every few milliseconds
and says what it waited for when the time is up.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeVar

import psutil

from stado_like.bucket import submit
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, StoreError
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import End, Heartbeat
from stado_like.job.spec.validate import validate
from stado_like.job.states import TaskState
from stado_like.reading import logs
from stado_like.store.url import open_store
from stado_worker.shim.attempt_dir import AttemptDir, attempt_dirs
from stado_worker.shim.cgroup import group_name
from stado_worker.shim.process import kill_attempt

T = TypeVar("T")
SHM = Path("/dev/shm")
PYTHON = sys.executable
QUICK = {"backoff_seconds": 1}


def until(look: Callable[[], T | None], within_s: float, what: str) -> T:
    """The first truthy answer of `look`. Fails, naming `what`, when none came in time."""
    deadline_s = time.monotonic() + within_s
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {within_s:g} s: {what}")
        time.sleep(0.005)


def document(name: str, command: str | Sequence[str], **more: Any) -> dict[str, Any]:
    """A stored document. A string is a shell script. `task`: fields of the task template; `resilience` too."""
    argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
    task = dict(more.pop("task", {}))
    task.setdefault("heartbeat_ttl_seconds", 10)
    resources = {"cpu_cores": more.pop("cores", 0.1), "memory_bytes": more.pop("memory_bytes", 16 << 20)}
    task.setdefault("requested_resources", resources)
    task["resilience"] = {**QUICK, **more.pop("resilience", {})}
    template = {"command": argv[0], "args": argv[1:], **task}
    limit_s = more.pop("time_limit_s", None)
    made = validate({"metadata": {"name": name}, "spec": {"task_template": template, **more}})
    if limit_s is not None:
        made["spec"]["task_template"]["time_limit_seconds"] = limit_s  # shorter than a person may ask for
    return made


class WorkerProcess:
    """`stado worker start`, as its own process, with its standard error kept in a file."""

    def __init__(self, rig: Rig, worker: str, state: Path, arguments: Sequence[str], wrap: Sequence[str]) -> None:
        self.worker = worker
        self.home = state / worker
        self.errors = rig.folder / f"{worker}.{time.monotonic_ns()}.err"
        command = [
            *wrap,
            PYTHON,
            "-m",
            "stado_cli.main",
            "--store",
            rig.url,
            "worker",
            "start",
            "--id",
            worker,
            *arguments,
        ]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                env={**rig.env, "STADO_STATE": str(state)},
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                cwd=rig.folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.errors.read_text(errors="replace")

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"worker {self.worker} ended with {self.process.returncode}: {self.said()}")
        return f"worker {self.worker} on " in self.said()

    def nursery(self) -> int:
        """The pid of its nursery."""
        for child in psutil.Process(self.pid).children():
            with suppress(psutil.Error):
                if "stado_worker.nursery" in child.cmdline():
                    return child.pid
        raise AssertionError(f"worker {self.worker} has no nursery: {self.said()}")

    def supervisors(self) -> set[int]:
        """The pids of the supervisors that its nursery forked and that live."""
        with suppress(psutil.Error):
            return {child.pid for child in psutil.Process(self.nursery()).children() if child.status() != "zombie"}
        return set()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def terminate(self, within_s: float = 10.0) -> str:
        """SIGTERM, and what it said until it ended."""
        self.process.terminate()
        self.process.wait(within_s)
        return self.said()

    def folder(self, a: AttemptId) -> AttemptDir:
        return AttemptDir(self.home / "attempts" / str(a))

    def supervisor(self, a: AttemptId, within_s: float = 10.0) -> int:
        """The pid of the attempt's supervisor, once it has started the command."""
        proc = until(self.folder(a).read_proc, within_s, f"{a} starts; worker said: {self.said()}")
        return int(proc["pid"])


class Rig:
    def __init__(self, folder: Path, url: str = "", env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.url = url or f"file://{folder}/store?durable=0"
        self.state = folder / "state"
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
        self.env = {**kept, "HOME": str(folder), **(env or {})}
        self.bucket = Bucket(open_store(self.url))
        self.workers: list[WorkerProcess] = []
        self._states = {self.state}

    # ---- doing

    @contextmanager
    def coordinator(self) -> Iterator[None]:
        """A resident coordinator that ticks every second. What it says lies in coordinator.err."""
        command = [PYTHON, "-m", "stado_cli.main", "--store", self.url, "scheduler", "run", "--interval", "1s"]
        with (self.folder / "coordinator.err").open("wb") as errors:
            process = subprocess.Popen(
                command, env=self.env, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=self.folder
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(10)

    def worker(
        self,
        worker: str = "w1",
        *arguments: str,
        state: Path | None = None,
        wrap: Sequence[str] = (),
        ready: bool = True,
    ) -> WorkerProcess:
        home = state or self.state
        self._states.add(home)
        started = WorkerProcess(self, worker, home, arguments, wrap)
        self.workers.append(started)
        if ready:
            until(started.is_ready, 20, f"worker {worker} is ready; it said: {started.said()}")
        return started

    def submit(self, name: str, command: str | Sequence[str], **more: Any) -> JobId:
        return self.submit_document(document(name, command, **more))

    def submit_document(self, made: Mapping[str, Any]) -> JobId:
        done = submit.submit(self.bucket, made)
        assert isinstance(done, submit.Submitted), done
        return done.id

    # ---- seeing

    def worker_folder(self, j: JobId, rank: int = 0, n: int = 1) -> AttemptDir:
        """The folder of an attempt on the first worker."""
        return self.workers[0].folder(keys.AttemptId(j, rank, n))

    def end(self, j: JobId, rank: int = 0, n: int = 1, within_s: float = 20.0) -> End:
        a = keys.AttemptId(j, rank, n)
        return until(lambda: self.bucket.end(a), within_s, f"{a} ends; {self.told(a)}")

    def last(self, j: JobId, rank: int = 0, within_s: float = 20.0) -> tuple[int, End]:
        """The final end of a task, and which attempt it was."""
        n = 1
        while True:
            end = self.end(j, rank, n, within_s)
            if end.is_final:
                return n, end
            n += 1

    def settled(self, j: JobId, rank: int = 0, n: int = 1, within_s: float = 10.0) -> None:
        """Until nothing of the attempt is in any index."""
        a = keys.AttemptId(j, rank, n)
        until(lambda: not any(self.bucket.present(keys.running(a))), within_s, f"the claim of {a} goes")

    def output(self, j: JobId, rank: int = 0, n: int = 1) -> bytes:
        return b"".join(logs.read_raw(self.bucket, keys.AttemptId(j, rank, n)))

    def beat(self, j: JobId, rank: int = 0, n: int = 1) -> Heartbeat | None:
        found = self.bucket.heartbeat(keys.AttemptId(j, rank, n))
        return found.record if found is not None else None

    def running(self, j: JobId, rank: int = 0, n: int = 1, within_s: float = 15.0) -> Heartbeat:
        """Until a heartbeat says that the attempt runs."""

        def look() -> Heartbeat | None:
            beat = self.beat(j, rank, n)
            return beat if beat is not None and beat.state is TaskState.RUNNING else None

        return until(look, within_s, f"{j}.{rank}.{n} is seen running")

    def told(self, a: AttemptId) -> str:
        """What workers and supervisors said, for a test that failed."""
        said = [f"{one.worker}: {one.said()}" for one in self.workers]
        for home in self._states:
            for folder in home.glob(f"*/attempts/{a}"):
                files = sorted(path.name for path in folder.iterdir())
                words = (folder / "supervisor.log").read_text() if (folder / "supervisor.log").exists() else ""
                said.append(f"{folder}: {files} {words}")
        return "\n".join(said)

    # ---- the end

    def close(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                with suppress(psutil.Error):
                    for child in psutil.Process(worker.pid).children():
                        child.send_signal(signal.SIGCONT)
                worker.process.send_signal(signal.SIGCONT)
                worker.kill()
        for pid in carrying(self.url):  # nurseries too, also those that a test has stopped and left behind
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for home in self._states:
            for attempts in home.glob("*/attempts"):
                for folder in attempt_dirs(attempts):
                    self._end(folder)

    def _end(self, folder: AttemptDir) -> None:
        try:
            proc = folder.read_proc() or {}
            alive = folder.is_alive()
        except (BadRecord, OSError):
            return
        if alive and isinstance(proc.get("pid"), int):
            with suppress(ProcessLookupError):
                os.kill(proc["pid"], signal.SIGKILL)
            until(lambda: not folder.is_alive(), 5, f"the supervisor of {folder.attempt_id} ends")
        if not folder.is_done():
            marks = {"STADO_STOP_FILE": str(folder.stop)}
            kill_attempt(folder.attempt_id, group_name(folder.path), marks=marks)


@contextmanager
def make_rig(place: Path, url: str = "", env: Mapping[str, str] | None = None) -> Iterator[Rig]:
    """A rig below /dev/shm where there is one: nothing here is about disks."""
    on_memory = SHM.is_dir() and os.access(SHM, os.W_OK)
    folder = Path(mkdtemp(prefix="stado-rig-", dir=SHM)) if on_memory else place
    made = Rig(folder, url, env)
    try:
        yield made
    finally:
        made.close()
        with suppress(StoreError):
            made.bucket.store.close()
        if on_memory:
            shutil.rmtree(folder, ignore_errors=True)


def carrying(mark: str) -> set[int]:
    """Living processes whose command line holds `mark`."""
    found = set()
    for process in psutil.process_iter(["pid", "cmdline", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE and mark in " ".join(process.info["cmdline"] or ()):
            found.add(int(process.info["pid"]))
    return found - {os.getpid()}
