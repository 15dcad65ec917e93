"""Ray on this machine, two CPUs. `jobs` in argv: its jobs, by `JobSubmissionClient`; else its tasks.

A Ray job is the counterpart of a queued command: it is kept, has a state and a log. A Ray task is a function call in a
process that is warm already, and here starts a program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from serving import CLOCK, SLOTS, TRUE, free_port, serve, until

WITHIN_S = 180.0


class Ray:
    def __init__(self, place: Path) -> None:
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
        import ray

        self._ray, self._jobs = ray, "jobs" in sys.argv
        self.versions = {"Ray": version("ray")}
        self._temporary = Path(f"/tmp/ray-bench-{os.getpid()}")  # its sockets need a short path
        self._run, self._read = ray.remote(num_cpus=1)(_run), ray.remote(num_cpus=1)(_read)
        try:
            self._start(free_port())
        except BaseException:
            self.stop()
            raise

    def _start(self, port: int) -> None:
        self._ray.init(
            num_cpus=SLOTS,
            include_dashboard=self._jobs,
            dashboard_port=port,
            object_store_memory=80 << 20,
            _temp_dir=str(self._temporary),
            logging_level="ERROR",
            log_to_driver=False,
        )
        if self._jobs:
            from ray.job_submission import JobSubmissionClient

            self._client = JobSubmissionClient(f"http://127.0.0.1:{port}")
        else:
            self._ray.get([self._run.remote() for _ in range(2 * SLOTS)], timeout=60.0)  # its workers are warm now

    def singles(self, n: int) -> None:
        if not self._jobs:
            raise RuntimeError("tasks are not jobs")
        for job in [self._submit([TRUE]) for _ in range(n)]:
            self._wait(job)

    def _submit(self, command: list[str]) -> str:
        return str(self._client.submit_job(entrypoint=" ".join(command), entrypoint_num_cpus=1))

    def _wait(self, job: str) -> None:
        until(lambda: self._client.get_job_status(job).is_terminal(), WITHIN_S, f"Ray's job {job}", 0.02)
        if self._client.get_job_status(job) != "SUCCEEDED":
            raise RuntimeError(f"Ray's job {job} is {self._client.get_job_status(job)}")

    def array(self, n: int) -> None:
        codes = self._ray.get([self._run.remote() for _ in range(n)], timeout=WITHIN_S)
        if any(codes):
            raise RuntimeError(f"{sum(map(bool, codes))} of {n} tasks failed")

    def clock(self, i: int) -> str:
        if not self._jobs:
            return str(self._ray.get(self._read.remote(), timeout=WITHIN_S))
        job = self._submit(CLOCK)
        self._wait(job)
        return str(self._client.get_job_logs(job)).strip().splitlines()[-1]

    def daemons(self) -> Mapping[str, Any]:
        """All that Ray started, its warm workers too; not this process."""
        import psutil

        return {"pids": [child.pid for child in psutil.Process().children()]}

    def stop(self) -> None:
        self._ray.shutdown()
        shutil.rmtree(self._temporary, ignore_errors=True)


def _run() -> int:
    return subprocess.run([TRUE], stdin=subprocess.DEVNULL).returncode


def _read() -> str:
    return subprocess.run(CLOCK, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


if __name__ == "__main__":
    serve(Ray)
