"""HyperQueue's LocalCluster: server and one worker of two cores, both in this process (it has no other form on PyPI).

`files` in argv: standard output and error of each task in files, its default. Without, no output is kept, which its
documentation advises for many small tasks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from serving import CLOCK, SLOTS, TRUE, serve


class HyperQueue:
    def __init__(self, place: Path) -> None:
        self._bare_mib = _own_mib()
        import hyperqueue.client
        from hyperqueue import LocalCluster
        from hyperqueue.cluster import WorkerConfig

        hyperqueue.client.create_progress_callback = lambda: (
            lambda jobs: None
        )  # its bar is drawn even without a terminal
        os.chdir(place)
        self.versions = {"HyperQueue": version("hyperqueue")}
        self._place = place
        self._kept: dict[str, Any] = {} if "files" in sys.argv else {"stdout": None, "stderr": None}
        self._cluster = LocalCluster(server_dir=str(place / "server"), worker_config=WorkerConfig(cores=SLOTS))
        self._client = self._cluster.client()

    def singles(self, n: int) -> None:
        self._client.wait_for_jobs([self._client.submit(self._job(1)) for _ in range(n)])

    def array(self, n: int) -> None:
        self._client.wait_for_jobs([self._client.submit(self._job(n))])

    def _job(self, tasks: int) -> Any:
        from hyperqueue import Job

        job = Job()
        for _ in range(tasks):
            job.program([TRUE], **self._kept)
        return job

    def clock(self, i: int) -> str:
        from hyperqueue import Job

        out = self._place / f"clock.{i}"
        job = Job()
        job.program(CLOCK, stdout=str(out), stderr=None)
        self._client.wait_for_jobs([self._client.submit(job)])
        return out.read_text()

    def daemons(self) -> Mapping[str, Any]:
        return {"pids": [os.getpid()], "minus_mib": self._bare_mib}

    def stop(self) -> None:
        self._cluster.stop()


def _own_mib() -> float:
    """What this Python takes before it has loaded HyperQueue."""
    return float(psutil.Process().memory_full_info().pss) / 2**20


if __name__ == "__main__":
    serve(HyperQueue)
