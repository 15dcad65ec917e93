"""RQ on a Redis without disk: two of its default workers, which fork a process for each job.

Jobs are enqueued through one `Queue`; `array` is its `enqueue_many`. The function is imported in each forked process
unless the worker has it already; RQ's documentation advises a worker script that imports it beforehand, as here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis_server
from serving import CLOCK, SLOTS, TRUE, end, serve, spawn, until

WORKER = (
    "import sys, redis, rq, rq_jobs; "
    "rq.Worker(['bench'], connection=redis.Redis.from_url(sys.argv[1])).work(logging_level='WARNING')"
)


class RQ:
    def __init__(self, place: Path) -> None:
        import redis
        import rq
        import rq_jobs

        self._rq, self._jobs = rq, rq_jobs
        self._redis = redis_server.start(place, synced=False)
        self.versions = {"RQ": version("rq"), "Redis": self._redis.version}
        self._connection = connection = redis.Redis.from_url(self._redis.url)
        self._queue = rq.Queue("bench", connection=connection)
        folder = str(Path(__file__).parent)
        command = [sys.executable, "-c", WORKER, self._redis.url]
        env = {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        self._workers = [spawn(command, place / f"rq.{i}.log", env) for i in range(SLOTS)]
        try:
            until(lambda: rq.Worker.count(connection=connection) == SLOTS, 30.0, "RQ's workers did not register", 0.05)
        except BaseException:
            self.stop()
            raise

    def singles(self, n: int) -> None:
        self._wait([self._queue.enqueue(self._jobs.run, [TRUE]) for _ in range(n)])

    def array(self, n: int) -> None:
        wanted = [self._rq.Queue.prepare_data(self._jobs.run, [[TRUE]]) for _ in range(n)]
        self._wait(self._queue.enqueue_many(wanted))

    def _wait(self, jobs: list[Any]) -> None:
        over, failed = self._queue.finished_job_registry, self._queue.failed_job_registry
        ended = (over.key, failed.key)
        until(
            lambda: sum(self._connection.zcard(key) for key in ended) >= len(jobs),
            300.0,
            f"the end of {len(jobs)} jobs of RQ",
            poll_s=0.01,
        )
        if self._connection.zcard(failed.key):
            raise RuntimeError(f"{self._connection.zcard(failed.key)} of RQ's jobs failed")
        for job in over.get_job_ids():
            over.remove(job, delete_job=True)

    def clock(self, i: int) -> str:
        job = self._queue.enqueue(self._jobs.read, CLOCK)
        until(lambda: job.get_status() in ("finished", "failed"), 30.0, "a job of RQ")
        said = str(job.return_value())
        job.delete()
        return said

    def daemons(self) -> Mapping[str, Any]:
        return {"pids": [self._redis.process.pid, *(worker.pid for worker in self._workers)]}

    def stop(self) -> None:
        end(*self._workers)
        self._redis.stop()


if __name__ == "__main__":
    serve(RQ)
