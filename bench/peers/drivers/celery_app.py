"""The Celery application, imported by its worker and by the driver. Its task starts a program, as all peers do.

Acknowledged late, so that a worker that dies loses nothing; results kept, since an exit code is wanted. Prefetching by
the hundred is what Celery's guide on optimizing advises for many short tasks.
"""

from __future__ import annotations

import os
import subprocess

from celery import Celery

app = Celery("bench", broker=os.environ["BENCH_REDIS"], backend=os.environ["BENCH_REDIS"])
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=100,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    result_expires=3600,
)


@app.task
def run(command: list[str]) -> int:
    return subprocess.run(command, stdin=subprocess.DEVNULL).returncode


@app.task
def read(command: list[str]) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
