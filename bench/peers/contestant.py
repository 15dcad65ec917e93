"""Our end of the pipe to a peer's driver, and the list of peers with what each of them is.

A driver answers one question at a time; one that dies, hangs or cannot start costs its own figures and no others'.
"""

from __future__ import annotations

import os
import selectors
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import psutil

from bench.cluster import NotMeasured, die_with_parent
from bench.resident import pss_mib

DRIVERS = Path(__file__).parent / "drivers"
READY_S = 90.0
ANSWER_S = 330.0
END_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A peer. `singles`, `array`: how many at a time (0: it has no such thing), few for slow ones. `quick`: cheap
    enough for a quick run. `environment`: the folder of its Python below the peers' place; `note`: what it was asked to
    do, and with which flags."""

    name: str
    title: str
    driver: str
    note: str
    arguments: tuple[str, ...] = ()
    environment: str = "peers"
    install: str = "scripts/bench --install"
    singles: int = 500
    many: int = 0
    array: int = 5000
    starts: int = 20
    quick: bool = False
    on_disk: bool = False


KINDS = (
    Kind(
        name="hq",
        title="HyperQueue",
        driver="hyperqueue_peer",
        quick=True,
        many=5000,
        note="LocalCluster, one worker of 2 cores; no output kept, as its documentation advises for many small tasks; "
        "one job of one program each, or one job of many; nothing on disk (no journal)",
    ),
    Kind(
        name="hq_files",
        title="HyperQueue, output in files",
        driver="hyperqueue_peer",
        arguments=("files",),
        array=1000,
        note="the same with its default: standard output and error of each task in files; stado keeps a log of each",
    ),
    Kind(
        name="celery",
        title="Celery + Redis, AOF synced always",
        driver="celery_peer",
        quick=True,
        many=5000,
        on_disk=True,
        note="prefork pool of 2, late acknowledgement, results kept, prefetch 100 (its guide on optimizing, for "
        "short tasks), no gossip, mingle or heartbeat; a task starts the program; an array is a `group`",
    ),
    Kind(
        name="rq",
        title="RQ + Redis in memory",
        driver="rq_peer",
        quick=True,
        array=500,
        note="two default workers, which fork a process for each job, the function imported beforehand; a job starts "
        "the program; an array is `enqueue_many`",
    ),
    Kind(
        name="parallel",
        title="GNU parallel",
        driver="parallel_peer",
        install="apt install parallel",
        singles=10,
        array=500,
        starts=4,
        quick=True,
        note="-j2 with a job log; no queue, so a single job is one run of its `--semaphore`",
    ),
    Kind(
        name="slurm",
        title="Slurm",
        driver="slurm_peer",
        install="apt install slurm-wlm",
        singles=10,
        array=12,
        starts=3,
        note="one node on loopback, no accounting, output to /dev/null, batch_sched_delay=0 (three times as fast as "
        "its default here); one `sbatch` for each job",
    ),
    Kind(
        name="ray",
        title="Ray, tasks",
        driver="ray_peer",
        singles=0,
        array=2000,
        note="a function call in a warm process, which starts the program: nothing is queued that outlives its caller",
    ),
    Kind(
        name="ray_jobs",
        title="Ray, jobs",
        driver="ray_peer",
        arguments=("jobs",),
        singles=4,
        array=0,
        starts=3,
        note="`JobSubmissionClient`, one CPU each",
    ),
    Kind(
        name="jqueue",
        title="jqueue on a local file",
        driver="jqueue_peer",
        environment="peers-3.12",
        install="scripts/bench --install, with a Python >= 3.12 (PYTHON312=…)",
        array=0,
        quick=True,
        note="BrokerQueue (group commit), two consumers in the same process start the program; keeps no results",
    ),
)


class Driver:
    """A driver that has said it is ready. `versions`: of what it drives."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        self.versions: Mapping[str, str] = self._answer(READY_S)["ready"]

    def rate(self, what: str, n: int) -> float:
        """`n` `singles` or an `array` of `n`: per second."""
        return float(self._ask(what, n))

    def start_ms(self, i: int) -> float:
        return float(self._ask("start", i))

    def resident_mib(self) -> float:
        """PSS of all that stays resident, children too."""
        told = self._ask("daemons", 0)
        trees = [psutil.Process(pid) for pid in told["pids"]]
        pids = {one.pid for top in trees for one in (top, *top.children(recursive=True))}
        return sum(map(_pss_or_gone, pids)) - float(told.get("minus_mib", 0.0))

    def _ask(self, do: str, n: int) -> Any:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(orjson.dumps({"do": do, "n": n}) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise NotMeasured(f"its driver has ended: {self._tail()}") from None
        return self._answer(ANSWER_S)["value"]

    def _answer(self, within_s: float) -> dict[str, Any]:
        out = self._process.stdout
        assert out is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(out, selectors.EVENT_READ)
            if not waiting.select(within_s):
                raise NotMeasured(f"its driver did not answer within {within_s:g} s: {self._tail()}")
        line = out.readline()  # a driver writes whole lines
        if not line:
            raise NotMeasured(f"its driver has ended: {self._tail()}")
        told: dict[str, Any] = orjson.loads(line)
        trouble = told.get("unavailable") or told.get("failed")
        if trouble:
            raise NotMeasured(str(trouble))
        return told

    def _tail(self) -> str:
        return " ".join(self._log.read_text(errors="replace").split())[-300:]


def _pss_or_gone(pid: int) -> float:
    try:
        return pss_mib(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it ended between the look and the reading


def python_of(kind: Kind, environments: Path) -> Path:
    return environments / kind.environment / "bin" / "python"


@contextmanager
def started(kind: Kind, place: Path, environments: Path) -> Iterator[Driver]:
    """The peer, ready. Raises `NotMeasured` when it is not installed or does not start."""
    python = python_of(kind, environments)
    if not python.exists():
        raise NotMeasured(f"not installed: {kind.install}")
    place.mkdir(parents=True)
    log = place / "driver.log"
    command: Sequence[str] = [str(python), "-B", str(DRIVERS / f"{kind.driver}.py"), str(place / "work")]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *kind.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={name: value for name, value in os.environ.items() if not name.startswith("STADO_")},
            preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of prctl, no lock is taken
        )
    try:
        yield Driver(process, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End of input is a driver's sign to stop its peer; what it left running is its children, and goes with it."""
    assert process.stdin is not None and process.stdout is not None
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    try:
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended before reading all
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
    for child in children:
        try:
            child.kill()  # psutil compares start times: never another process with the same pid
        except psutil.NoSuchProcess:
            pass  # the peer's own stop ended it
