"""One tick: lock, read, plan, carry out pass by pass, report. Stateless but for what saves requests; may be killed at
any instruction.

Each pass and each record stands for itself. A record that cannot be used is set aside with its reason, a store that
does not answer defers what was asked, and the rest goes on; either makes the exit code 6. Nothing is ever concluded
from an answer that did not come.
"""

from __future__ import annotations

import copy
import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stado_coordinator.compaction import Compaction, known_to_go_on
from stado_coordinator.lock import Lock
from stado_coordinator.purse import Purse
from stado_coordinator.report import Report
from stado_coordinator.waits import Waits
from stado_like.bucket.apply import Did, apply, describe
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.load_board import with_queue
from stado_like.bucket.load_world import Memory, load_world
from stado_like.bucket.sweeping import with_sweep
from stado_like.bucket.tick_report import write_report
from stado_like.errors import StadoError, StoreError
from stado_like.job import keys
from stado_like.planning.actions import Action, BrakePulled, Remember
from stado_like.planning.plan import Plan, plan
from stado_like.planning.world import SetAside, World
from stado_like.store.meter import Meter, MeteredStore

UNANSWERED_MOST = 3
RESIDENT_YOUNG_S = 5.0
RESIDENT_SLOW_S = 60.0
RESIDENT_REPORT_S = 60.0
RESIDENT_NOTES_S = 20.0

Log = Callable[[str], None]


def _silent(line: str) -> None:
    """Nobody asked for a log."""


@contextmanager
def _uncollected() -> Iterator[None]:
    """A look makes a million small objects that all live to its end, and none in circles: searching them for garbage,
    over and over, is a third of what a long queue costs."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Tick:
    """The tick of one store. `step()` runs it once; an object kept between steps remembers what saves requests.

    `resident`: ticks follow each other within seconds, so what others are just doing is left to them for five seconds,
    slow listings are made once a minute, and reports are written when they change. `reap_now`: a person overrides the
    brake. `cache`: a directory of this machine where one process keeps for the next what never changes.
    """

    def __init__(
        self,
        bucket: Bucket,
        *,
        resident: bool = False,
        reap_now: bool = False,
        log: Log = _silent,
        cache: Path | None = None,
    ) -> None:
        self.meter = Meter()
        self.bucket = Bucket(MeteredStore(bucket.store, self.meter), ambient=bucket.ambient, budget_s=bucket.budget_s)
        self.lock = Lock(self.bucket)
        self.memory = Memory.kept_in(cache, bucket.ambient.boot_id)
        self.bucket.kept_ends = self.memory.cache
        self._waits = Waits()
        self._compaction = Compaction()
        self._noted_s = -RESIDENT_NOTES_S
        self._resident = resident
        self._reap_now = reap_now
        self._log = log
        self._written: tuple[float, dict[str, Any]] | None = None
        self._saved: tuple[float, dict[str, Any]] | None = None

    def step(self) -> Report:
        """One tick. Raises `TickHeld` when another one runs, `StoreError` when the store does not give the lock."""
        before = self.meter.snapshot()
        self.lock.acquire()
        try:
            report = self._run()
            report.requests = (self.meter.snapshot() - before).as_json()
            if not report.superseded:
                self._leave(report)
            self.memory.cache.save()
        finally:
            why = self.lock.release()
            if why:
                self._log(f"[tick] the lock could not be released: {why}")
        return report

    def look(self) -> tuple[World, Plan]:
        """What the next tick would do, without doing it; takes no lock and writes nothing."""
        with _uncollected():
            return self._look()

    def _look(self) -> tuple[World, Plan]:
        self.memory.cache.open(self.bucket)
        young_s = RESIDENT_YOUNG_S if self._resident else 0.0
        slow_s = RESIDENT_SLOW_S if self._resident else 0.0
        world = load_world(self.bucket, self.memory, young_s=young_s)
        world = with_queue(self.bucket, self.memory, world)
        world = with_sweep(self.bucket, self.memory, world, young_s=young_s, slow_every_s=slow_s)
        return world, plan(world, reap_now=self._reap_now, settling_s=young_s)

    def _run(self) -> Report:
        report = Report(started_at=self.bucket.now())
        world, planned = self.look()
        report.set_aside.extend(world.set_aside)
        report.next_due_at = planned.next_due_at
        waits = world.queue is not None and world.queue.board.units
        jobs = world.open_jobs or world.young
        report.is_idle = not (world.looks or world.later or world.cancels or jobs or world.unread or waits)
        if "sweep" in world.unread:
            report.deferred.append(("sweep", world.unread["sweep"]))
        for name, actions in planned.passes:
            if not self._pass(name, actions, report):
                report.superseded = True
                report.deferred.append((name, "another tick has taken this store over; this one stopped"))
                break
        if not report.superseded:
            self._note_waits(world, planned, report)
            self._compact(world, report)
        report.at = self.bucket.now()
        return report

    def _note_waits(self, world: World, planned: Plan, report: Report) -> None:
        told, now_s = planned.placing.waiting, self.bucket.ambient.boot_s()
        noted = Counter[str]()
        try:
            if world.queue is not None and (not self._resident or now_s - self._noted_s >= RESIDENT_NOTES_S):
                noted, self._noted_s = self._waits.note_placing(self.bucket, world.queue, planned.placing), now_s
            report.passes["waits"] = noted + self._waits.note(self.bucket, world.waiting, told)
        except StoreError as failed:
            report.deferred.append(("waits", failed.message))

    def _compact(self, world: World, report: Report) -> None:
        """Day files, by which lists tell of what is over."""
        places = self.memory.cursors
        if places is None or not self._compaction.is_due(self.bucket, places, resident=self._resident):
            return
        try:
            if self.lock.still_ours():
                going = known_to_go_on(world)
                did = self._compaction.step(self.bucket, places, going, resident=self._resident)
                report.passes["days"] = did
                self._tell("days", did, report)
        except StoreError as failed:
            report.deferred.append(("days", failed.message))
        except Exception as raised:  # nothing depends on them, so whatever is wrong with them stops no tick
            report.deferred.append(("days", f"{type(raised).__name__}: {raised}"))

    def _pass(self, name: str, actions: tuple[Action, ...], report: Report) -> bool:
        """Carry out one pass. False: this tick was superseded."""
        counts: Counter[str] = Counter()
        report.passes[name] = counts
        unanswered = 0
        purse = Purse(self.meter)
        for number, action in enumerate(actions):
            if not purse.pays(action):
                continue
            if not self.lock.still_ours():
                return False
            if isinstance(action, BrakePulled):
                report.brake = action
            try:
                did = apply(self.bucket, action, self.memory)
                unanswered = 0
            except StoreError as failed:
                unanswered += 1
                did = Did(deferred=failed.message)
            except StadoError as bad:
                self._set_aside(report, action, bad.message)
                continue
            except Exception as raised:  # one record must never stop the loop, whatever is wrong with it
                self._set_aside(report, action, f"{type(raised).__name__}: {raised}")
                continue
            finally:
                purse.settle(action)
            counts.update(did.counts)
            report.notes.extend(did.notes)
            if did.deferred:
                report.deferred.append((describe(action), did.deferred))
            if unanswered >= UNANSWERED_MOST and number + 1 < len(actions):
                left = len(actions) - number - 1
                why = f"the store did not answer {unanswered} times in a row: {left} more left for later"
                report.deferred.append((name, why))
                break
        self._tell(name, counts, report)
        return True

    def _set_aside(self, report: Report, action: Action, why: str) -> None:
        if isinstance(action, Remember):
            report.deferred.append((describe(action), why))
        else:
            report.set_aside.append(SetAside(describe(action), why))

    def _tell(self, name: str, counts: Counter[str], report: Report) -> None:
        said = ", ".join(f"{what} {n}" for what, n in counts.items() if n)
        if said:
            self._log(f"[tick] {name}: {said}")

    def _leave(self, report: Report) -> None:
        """Write where the sweeps stopped, and the report; a resident only what changed, or once a minute."""
        now_s = self.bucket.ambient.boot_s()
        try:
            cursors = self.memory.cursors
            if cursors is not None and self._is_due(self._saved, now_s, cursors, lazily=True):
                self.bucket.put(keys.SWEEP_CURSOR, cursors)
                self._saved = (now_s, copy.deepcopy(cursors))
            shown = report.unchanged_part()
            if self._is_due(self._written, now_s, shown, lazily=False):
                write_report(self.bucket, report.as_json())
                self._written = (now_s, shown)
        except StoreError as failed:
            report.deferred.append(("report", failed.message))

    def _is_due(
        self, last: tuple[float, dict[str, Any]] | None, now_s: float, value: dict[str, Any], *, lazily: bool
    ) -> bool:
        """`lazily`: changes wait for the minute too, and what never changed is never written."""
        if last is None:
            return not lazily or any(value.values())
        if not self._resident:
            return not lazily or last[1] != value
        minute_over = now_s - last[0] >= RESIDENT_REPORT_S
        return (last[1] != value and minute_over) if lazily else (last[1] != value or minute_over)
