"""`stado up`: a worker and the resident coordinator in one process; a one-machine cluster that others can join.

The first Ctrl-C stops its tasks with grace, as a person would stop each of them; the second leaves them running, and
the next worker of this id adopts them. The coordinator has a thread of its own: a tick over a slow store must not
keep the worker from its tasks.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import click

from stado_cli.context import Context
from stado_cli.opening import open_client
from stado_like.config import ticks_kept_in
from stado_like.errors import StadoError

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_worker.run import Worker

TURN_S = 1.0
STOP_REASON = "Stopped: `stado up` was ended"


@click.command()
@click.option("--id", "worker", default="", help="The worker's id. Default: the host name and a suffix kept here.")
@click.option("--cpus", type=float, help="Cores to offer, taken as given: load is ignored.")
@click.option("--memory", metavar="SIZE", help="Memory to offer, taken as given: 16GiB, 512MiB.")
@click.pass_obj
def command(context: Context, worker: str, cpus: float | None, memory: str | None) -> None:
    """Work on this machine and coordinate, until Ctrl-C.

    The first Ctrl-C stops the running tasks with grace and ends then; the second leaves them running.
    """
    from stado_like.job.spec.units import size_bytes
    from stado_worker.run import Worker, WorkerOptions

    settings = context.settings
    client = open_client(context)
    options = WorkerOptions(
        store_url=settings.store,
        worker=worker,
        cpus=cpus,
        memory_bytes=size_bytes(memory) if memory is not None else None,
        grace_s=settings.grace_s,
        most_grace_s=settings.most_grace_s,
    )
    running = Worker(options, state_dir=Path(settings.state_dir).expanduser(), log=_log)
    running.catch_signals()
    adopted = running.start()
    _log(f"worker {running.name} on {client.store.url}" + (f": adopted {adopted} attempts" if adopted else ""))
    _log(f"another machine joins with: {_joining(client.store.url)}")
    try:
        with _Coordinating(client, ticks_kept_in(settings)) as coordinating:
            while running.turn(TURN_S):
                coordinating.check()
            _stop_tasks(client, running)
    finally:
        held = running.stop()
        _log(f"worker {running.name} stopped" + (f"; {held} tasks go on" if held else ""))


def _joining(url: str) -> str:
    line = f"stado worker start --store {shlex.quote(url)}"
    return f"{line}  (where it sees the same directory)" if url.startswith("file:") else line


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class _Coordinating:
    """The resident coordinator in a thread; `check` raises here what ended it there."""

    def __init__(self, client: Client, cache: Path | None) -> None:
        from stado_coordinator.coordinator import Coordinator
        from stado_like.bucket.bucket import Bucket
        from stado_like.store.url import poll_s

        self._bucket = Bucket(client.store, ambient=client.ambient)
        pause_s = min(1.0, max(0.05, poll_s(client.store.url)))
        self._coordinator = Coordinator(self._bucket, poll_s=pause_s, log=_log, cache=cache)
        self._ended = False
        self._raised: Exception | None = None
        self._thread = Thread(target=self._run, name="coordinator", daemon=True)

    def _run(self) -> None:
        try:
            self._coordinator.run(lambda: self._ended)
        except Exception as raised:  # told by `check` to the thread that people watch
            self._raised = raised

    def check(self) -> None:
        if self._raised is not None:
            raise self._raised

    def __enter__(self) -> _Coordinating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join(10.0)


def _stop_tasks(client: Client, running: Worker) -> None:
    """After the first Ctrl-C: no new claims, every task of this worker stopped with grace; until they ended, or a
    second Ctrl-C.
    """
    running.agent.claiming = False
    running.stopping = False
    if not running.agent.held:
        return
    _log(f"stopping {running.agent.held} tasks; Ctrl-C again leaves them running")
    for a in client.held_by(running.name):
        try:
            client.task_stop(a.job, a.rank, STOP_REASON)
        except StadoError as error:
            _log(f"{a}: {error.message}")
    while running.agent.held and running.turn(TURN_S):
        pass
