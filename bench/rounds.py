"""The order of a run: what every round takes, what is taken once, and that one failure costs one figure."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import commands, contention, costs, memory, planning, rates, ticks
from bench.cluster import NotMeasured
from bench.figures import Results
from bench.peers import measuring
from bench.peers.contestant import KINDS, Kind
from stado_like.ambient import REAL
from stado_like.errors import StadoError
from tests import servers

ROOT = Path(__file__).resolve().parent.parent
S3_SINGLES, S3_ARRAY, S3_STARTS = 200, 400, 15


class Run:
    """One run into `results`. `environments`: where the peers' Pythons are; `only`: names of peers, or `none`."""

    def __init__(
        self,
        results: Results,
        on_disk: Path,
        in_memory: Path,
        environments: Path,
        *,
        rounds: int,
        quick: bool,
        only: str | None = None,
    ) -> None:
        self.results = results
        self._disk, self._memory, self._environments = on_disk, in_memory, environments
        self._rounds, self._quick = rounds, quick
        self._peers = _chosen(quick, only)

    def measure(self) -> None:
        for i in range(self._rounds):
            self._round(i)
        self._once()

    def _round(self, i: int) -> None:
        quick, results = self._quick, self.results
        memory_here, disk = self._memory / f"round-{i}", self._disk / f"round-{i}"
        memory_here.mkdir()
        disk.mkdir()
        self._try(i, "floors", partial(rates.floors, results, memory_here, 500 if quick else 2000, disk=False))
        sizes = {"singles": 150, "many": 0, "array": 150} if quick else {"singles": 500, "many": 5000, "array": 5000}
        samples = 10 if quick else 30
        in_memory = partial(rates.in_memory, results, memory_here, **sizes, samples=samples, quick=quick)
        self._try(i, "stado in memory", in_memory)
        first, rest = self._peers[: len(self._peers) // 2], self._peers[len(self._peers) // 2 :]
        for kind in first:
            self._peer(i, kind, disk if kind.on_disk else memory_here)
        self._try(i, "floors on disk", partial(rates.floors, results, disk, 500, disk=True))
        singles = 100 if quick else 500
        self._try(i, "stado on disk", partial(rates.on_disk, results, disk, singles=singles, array=singles))
        for kind in rest:
            self._peer(i, kind, disk if kind.on_disk else memory_here)
        if i == 0 or not quick:  # sizes hardly vary from round to round
            place = memory_here / "resident"
            self._try(i, "memory", partial(memory.resident, results, place, f"file://{place}/store?durable=0"))
        if not quick:
            self._try(i, "SeaweedFS", partial(self._on_seaweedfs, disk / "s3"))
        shutil.rmtree(memory_here, ignore_errors=True)  # tens of thousands of small files, in memory
        shutil.rmtree(disk, ignore_errors=True)

    def _peer(self, i: int, kind: Kind, place: Path) -> None:
        step = partial(
            measuring.measure,
            self.results,
            kind,
            place / f"peer-{kind.name}",
            self._environments,
            quick=self._quick,
            first=i == 0,
        )
        self._try(i, kind.title, step)

    def _on_seaweedfs(self, place: Path) -> None:
        with rates.seaweedfs(place) as server:
            sizes = {"singles": S3_SINGLES, "array": S3_ARRAY, "samples": S3_STARTS}
            rates.on_seaweedfs(self.results, place / "rates", server.url("bench", "rates"), **sizes)
            url = server.url("bench", "memory")
            memory.resident(self.results, place / "memory", url, name="s3_", env=servers.CREDENTIALS)

    def _once(self) -> None:
        quick, results, place = self._quick, self.results, self._memory
        jobs, times = (200, 7) if quick else (1000, 15)
        listing = partial(commands.measure, results, place / "commands", jobs=jobs, rounds=self._rounds, times=times)
        self._try(0, "commands", listing)
        self._try(0, "requests of a job", partial(costs.jobs, results, place / "jobs", 20))
        self._try(0, "requests of a rank", partial(costs.ranks, results, place / "ranks", 200 if quick else 1000))
        self._try(0, "requests of an idle worker", partial(costs.idle_worker, results, place / "idle"))
        for queued in ticks.SIZES[:1] if quick else ticks.SIZES:
            self._try(0, f"tick over {queued:,}", partial(self._tick, queued))
        for tasks, machines in planning.SIZES[:2] if quick else planning.SIZES:
            self._try(0, f"plan of {tasks:,}", partial(planning.measure, results, tasks, machines))
        if not quick:
            self._try(0, "many workers", partial(contention.wasted, results))

    def _tick(self, queued: int) -> None:
        place = self._memory / f"tick-{queued}"
        try:
            ticks.measure(self.results, place, queued)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _try(self, i: int, what: str, step: Callable[[], None]) -> None:
        """Whatever goes wrong in it costs its own figures only, and is told in the tables."""
        began_s = REAL.boot_s()
        trouble = ""
        try:
            step()
        except Exception as why:
            kind = "" if isinstance(why, NotMeasured | StadoError) else f"{type(why).__name__}: "
            trouble = f"{kind}{' '.join(str(why).split())[:400]}".replace(str(ROOT), ".")
            self.results.missing.setdefault(what, trouble)
        told = f": not taken: {trouble}" if trouble else ""
        sys.stderr.write(f"round {i + 1}, {REAL.boot_s() - began_s:5.1f} s: {what}{told}\n")
        sys.stderr.flush()


def _chosen(quick: bool, only: str | None) -> tuple[Kind, ...]:
    if only is None:
        return tuple(kind for kind in KINDS if kind.quick or not quick)
    if only == "none":
        return ()
    names = only.split(",")
    unknown = sorted(set(names) - {kind.name for kind in KINDS})
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(kind.name for kind in KINDS)}")
    return tuple(kind for kind in KINDS if kind.name in names)
