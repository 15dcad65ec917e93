"""A bucket whose jobs end, and a resident tick that writes day files of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stado_coordinator.compaction import PENDING_S, QUIET_MOST_S
from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.job import day_keys, day_rows
from stado_like.job.keys import JobId
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.shapes import row_json
from stado_like.store.meter import Meter, MeteredStore
from stado_like.store.protocol import list_all
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, run, submit


class Yard:
    """A bucket, the clock that moves only when a test says so, and a resident tick that writes day files."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.bucket = build.make_bucket(self.clock)
        self.tick = Tick(self.bucket, resident=True)

    def compact(self, tick: Tick | None = None, times: int = 1) -> dict[str, int]:
        """Ticks until day files were due; what they did."""
        did: dict[str, int] = {}
        tick = tick or self.tick
        self.clock.now_s += 0 if tick is self.tick else 1
        tick.step()
        for _ in range(times):
            self.clock.now_s += max(QUIET_MOST_S, PENDING_S)
            report = tick.step()
            assert not report.deferred and not report.set_aside
            for what, n in report.passes.get("days", {}).items():
                did[what] = did.get(what, 0) + n
        return did

    def files(self) -> list[str]:
        return [row.key for row in list_all(self.bucket.store, day_keys.DAYS)]

    def rows(self) -> list[JobId]:
        """The jobs of which a file has a row."""
        found = [day_keys.parse_day_part(key) for key in self.files()]
        lines = [(one.workspace, line) for one in found for line in self._lines(one.key)]
        return sorted(day_rows.read(workspace, line).j for workspace, line in lines)

    def _lines(self, key: str) -> list[bytes]:
        body = self.bucket.store.get(key)
        assert body is not None
        return day_rows.lines(body.body, key)

    def listed(self, **wanted: Any) -> tuple[list[Mapping[str, Any]], dict[str, int]]:
        """What a new process tells, and what it asked."""
        meter = Meter()
        reader = Bucket(MeteredStore(self.bucket.store, meter), ambient=self.clock)
        found = list_jobs(reader, Wanted(**{"every": True, **wanted}))
        assert found.set_aside == {}
        return [row_json(row) for row in found.rows], dict(meter.snapshot().counts)

    def without_files(self) -> Yard:
        """The same bucket as it would be had no tick written day files."""
        bare = Yard()
        bare.clock = self.clock
        bare.bucket = Bucket(_Without(self.bucket.store, day_keys.DAYS), ambient=self.clock)
        return bare

    def check(self, **wanted: Any) -> list[Mapping[str, Any]]:
        """A list with the files says what one without them says."""
        told, _ = self.listed(**wanted)
        assert told == self.without_files().listed(**wanted)[0]
        return told


class _Without(MeteredStore):
    """A store in which nothing lies below a prefix."""

    def __init__(self, store: Any, prefix: str) -> None:
        super().__init__(store, Meter())
        self._prefix = prefix

    def list(self, prefix: str, *, start_after: str = "", limit: int = 1000) -> Any:
        return super().list("nothing/" if prefix.startswith(self._prefix) else prefix, start_after=start_after)


def over(yard: Yard, name: str, **spec: Any) -> JobId:
    j = submit(yard.bucket, name, **spec)
    run(yard.bucket, attempt(j))
    return j


def failed(yard: Yard, name: str) -> JobId:
    j = submit(yard.bucket, name, template={"resilience": {"max_restarts": 0}})
    run(yard.bucket, attempt(j), 3)
    return j


def many(yard: Yard, jobs: int) -> list[JobId]:
    return [over(yard, f"job-{at:04d}") for at in range(jobs)]
