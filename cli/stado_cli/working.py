"""`stado run` on the embedded store: this process works its own job while it shows its output.

One loop, no threads: where a follower would sleep, the worker takes a turn and a tick is made when one is due. The
worker has an id of its own, so it waits for no worker that died a moment ago, and claims nothing but this job;
another worker may win the job as well, and nothing is different then.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from stado_cli.context import Context
from stado_coordinator.coordinator import Coordinator
from stado_worker.machine.identity import host_label
from stado_worker.run import Worker, WorkerOptions

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.job.keys import JobId

LET_GO_S = 10.0


class OwnWorker:
    """A worker and ticks for one job, in this process. Leaving it lets running tasks go on by themselves."""

    def __init__(self, context: Context, client: Client, j: JobId) -> None:
        settings = context.settings
        self._ambient = client.ambient
        self._state_dir = Path(settings.state_dir).expanduser()
        options = WorkerOptions(
            store_url=settings.store,
            worker=f"{host_label(client.ambient.host)[:40]}-run-{client.ambient.token()[:8]}",
            only_job=str(j),
            grace_s=settings.grace_s,
            most_grace_s=settings.most_grace_s,
        )
        self._worker = Worker(options, state_dir=self._state_dir, log=_unsaid)
        self._coordinator = Coordinator(client.bucket)
        self._tick_due_s = 0.0

    def __enter__(self) -> OwnWorker:
        self._worker.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        try:
            if kind is None:
                until = self._ambient.boot_s() + LET_GO_S
                while self._worker.agent.held and self._ambient.boot_s() < until:
                    self._worker.turn(0.05)
        finally:
            if not self._worker.stop():
                shutil.rmtree(self._state_dir / self._worker.name, ignore_errors=True)

    def rest(self, seconds: float) -> None:
        """Work for so long."""
        until = self._ambient.boot_s() + seconds
        while True:
            self._worker.turn(max(0.0, until - self._ambient.boot_s()))
            now_s = self._ambient.boot_s()
            if now_s >= self._tick_due_s:
                self._coordinator.step()
                self._tick_due_s = now_s + self._coordinator.next_in_s()
            if now_s >= until:
                return


def _unsaid(line: str) -> None:
    """What the worker logs is not part of the job's output."""
