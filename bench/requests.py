"""Requests per one-task job, and per rank of an array, by who sends them, kind, and family of keys.

A worker polls while it works, so counts by kind alone mix the polls with the job. Counting by the first segment of
the key tells them apart: `get state` is the doorbell. The counts come from inside the processes: the worker below is
the real one with a counting store put in, and its nursery is started with an entry that does the same for
supervisors. Requests are what an S3 server would be asked; a directory store is asked the same.

Run as `python -m bench.requests URL STATE OUT` it is that worker: until SIGTERM, counts kept in OUT.
"""

from __future__ import annotations

import os
import socket
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import orjson

from bench.cluster import SLOTS, WORKER, Cluster, NotMeasured, cluster, until
from bench.work import TOGETHER_S, TRUE, ended
from stado_like.ambient import REAL
from stado_like.bucket.bucket import Bucket
from stado_like.client import Client
from stado_like.store.protocol import Applied, Object, ObjectStore, Page, Stat, Unchanged, Unknown, Write
from stado_like.store.url import open_store
from stado_worker.run import Worker, WorkerOptions
from stado_worker.shim import supervise

COUNTS = "BENCH_COUNTS"
"""The environment variable that tells a counting supervisor where to put its counts."""
WAITING = "304 state/doorbell.json"
ALIVE = "alive."


class CountingStore:
    """Counts what passes through to `inner`, as `kind family`."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self.counts: Counter[str] = Counter()

    def _count(self, kind: str, key: str, n: int = 1) -> None:
        family = "/".join(key.split("/")[:2]) if key.startswith(("state/", "queued/")) else key.split("/")[0]
        self.counts[f"{kind} {family}"] += n

    @property
    def url(self) -> str:
        return self.inner.url

    @property
    def can_replace(self) -> bool:
        return self.inner.can_replace

    def create(self, key: str, body: bytes) -> Write:
        self._count("create", key)
        return self.inner.create(key, body)

    def put(self, key: str, body: bytes) -> Write:
        self._count("put", key)
        return self.inner.put(key, body)

    def put_file(self, key: str, file: BinaryIO) -> Write:
        self._count("put", key)
        return self.inner.put_file(key, file)

    def replace(self, key: str, body: bytes, etag: str) -> Write:
        self._count("replace", key)
        return self.inner.replace(key, body, etag)

    def get(self, key: str) -> Object | None:
        self._count("get", key)
        return self.inner.get(key)

    def get_if_changed(self, key: str, etag: str) -> Object | Unchanged | None:
        found = self.inner.get_if_changed(key, etag)
        self._count("304" if isinstance(found, Unchanged) else "get", key)
        return found

    def get_range(self, key: str, start: int, size_bytes: int) -> bytes | None:
        self._count("get", key)
        return self.inner.get_range(key, start, size_bytes)

    def head(self, key: str) -> Stat | None:
        self._count("head", key)
        return self.inner.head(key)

    def heads(self, keys: Sequence[str]) -> list[Stat | None]:
        for key in keys:
            self._count("head", key)
        return self.inner.heads(keys)

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Page:
        self._count("list", prefix)
        return self.inner.list(prefix, start_after=start_after, limit=limit)

    def delete(self, key: str) -> Applied | Unknown:
        self._count("delete", key)
        return self.inner.delete(key)

    def now(self) -> float:
        return self.inner.now()

    def close(self) -> None:
        self.inner.close()


def prepare(url: str) -> None:
    """What the nursery calls before any fork: as a supervisor prepares itself, then the counter in between."""
    supervise.prepare(url)
    supervise._prepared[url] = CountingStore(supervise._prepared[url])


def run(attempt_dir: str, channel: socket.socket | None = None) -> None:
    """The life of a supervisor; at its end it leaves its counts in place of a mark that says it lives."""
    out = Path(os.environ[COUNTS])
    mark = out / f"{ALIVE}{REAL.pid}"
    mark.touch()
    try:
        supervise.run(attempt_dir, channel)
    finally:
        counts: Counter[str] = Counter()
        for store in supervise._prepared.values():
            if isinstance(store, CountingStore):
                counts += store.counts
        _tell(out, f"supervisor.{REAL.pid}", counts)
        mark.unlink()


def _tell(out: Path, name: str, counts: Counter[str]) -> None:
    part = out.with_name(f"{out.name}.{name}.part")
    part.write_bytes(orjson.dumps(counts))
    part.rename(out / name)


class _CountingWorker(Worker):
    def __init__(self, url: str, state: Path) -> None:
        super().__init__(
            WorkerOptions(store_url=url, worker=WORKER, cpus=SLOTS, memory_bytes=64 << 30), state_dir=state
        )
        self.counted = CountingStore(open_store(url))
        self._bucket = Bucket(self.counted)

    def start(self) -> int:
        adopted = super().start()
        assert self._nursery is not None
        self._nursery._entry = "bench.requests:run"
        self._nursery.start()
        return adopted


def main(url: str, state: Path, out: Path) -> None:
    worker = _CountingWorker(url, state)
    worker.catch_signals()
    worker.start()
    try:
        worker.run()
    finally:
        worker.stop()
        _tell(out, "worker", worker.counted.counts)


def per_job(place: Path, url: str, jobs: int, env: Mapping[str, str] | None = None) -> dict[str, dict[str, float]]:
    """Requests per job of `submitter`, `worker`, `supervisor`: `jobs` jobs, one after the other on an idle worker.

    Looks at a doorbell that had not been rung are left out: they are the price of waiting, not of a job.
    """

    def submit(on: Cluster, client: Client) -> None:
        for i in range(jobs):
            ended(on, client.submit(command=TRUE, name=f"counted-{i}"))

    return _each(_counted(place, url, submit, env), jobs)


def per_rank(place: Path, url: str, ranks: int, env: Mapping[str, str] | None = None) -> dict[str, dict[str, float]]:
    """The same per rank of one array of so many, all of which must complete."""

    def submit(on: Cluster, client: Client) -> None:
        job = client.submit(command=TRUE, name="counted", array=ranks)
        state = Client(on.url).wait([job.id], TOGETHER_S)[0].state.value  # its looks are not the job's
        if state != "Completed":
            raise NotMeasured(f"the array is {state}: {job.view().reason}")

    return _each(_counted(place, url, submit, env), ranks)


def _counted(
    place: Path, url: str, submit: Callable[[Cluster, Client], None], env: Mapping[str, str] | None
) -> dict[str, Counter[str]]:
    out = place / "counts"
    out.mkdir(parents=True)
    program = [sys.executable, "-m", "bench.requests", url, str(place / "state"), str(out)]
    with cluster(place, url, program=program, env={COUNTS: str(out), **(env or {})}) as on:
        counted = CountingStore(on.client.store)
        client = Client(on.url, opened=counted)
        client.ready_to_write()
        counted.counts.clear()  # the probe is paid once per process, not per job
        submit(on, client)
    # Idle supervisors end at their agent's end, and only then tell.
    until(lambda: not list(out.glob(f"{ALIVE}*")), 10.0, "the supervisors did not tell their counts")
    return {"submitter": counted.counts, **_told(out)}


def _each(counted: Mapping[str, Counter[str]], n: int) -> dict[str, dict[str, float]]:
    return {role: {kind: round(many / n, 3) for kind, many in counts.items()} for role, counts in counted.items()}


def _told(out: Path) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {"worker": Counter(), "supervisor": Counter()}
    for path in out.iterdir():
        told: dict[str, int] = orjson.loads(path.read_bytes())
        told.pop(WAITING, None)
        found[path.name.partition(".")[0]].update(told)
    return found


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
