"""Celery on a Redis that syncs its append-only file at every write: a prefork pool of two processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis_server
from serving import CLOCK, SLOTS, TRUE, end, serve, spawn

WITHIN_S = 120.0


class CeleryPeer:
    def __init__(self, place: Path) -> None:
        self._redis = redis_server.start(place, synced="memory" not in sys.argv)
        os.environ["BENCH_REDIS"] = self._redis.url
        import celery_app

        self._app = celery_app
        self.versions = {"Celery": version("celery"), "Redis": self._redis.version}
        command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "--pool=prefork"]
        command += [f"--concurrency={SLOTS}", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        folder = Path(__file__).parent
        self._worker = spawn(
            [*command, "--loglevel=WARNING"],
            place / "celery.log",
            {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "C_FORCE_ROOT": "1"},
        )
        try:
            celery_app.run.delay([TRUE]).get(timeout=30.0)
        except BaseException:
            self.stop()
            raise

    def singles(self, n: int) -> None:
        waited = [self._app.run.delay([TRUE]) for _ in range(n)]
        for one in waited:
            _is_zero(one.get(timeout=WITHIN_S))

    def array(self, n: int) -> None:
        """A group, its form of many tasks in one call."""
        from celery import group

        for code in group(self._app.run.s([TRUE]) for _ in range(n)).apply_async().get(timeout=WITHIN_S):
            _is_zero(code)

    def clock(self, i: int) -> str:
        return str(self._app.read.delay(CLOCK).get(timeout=30.0))

    def daemons(self) -> Mapping[str, Any]:
        return {"pids": [self._redis.process.pid, self._worker.pid]}

    def stop(self) -> None:
        end(self._worker)
        self._redis.stop()


def _is_zero(code: int) -> None:
    if code != 0:
        raise RuntimeError(f"a task ended with {code}")


if __name__ == "__main__":
    serve(CeleryPeer)
