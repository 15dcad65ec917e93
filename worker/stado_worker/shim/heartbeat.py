"""The I/O thread: looks whether the attempt still is ours, proves life, ships the log, and at the end reports until
the answer is definite.

    look: HEAD end, verdict, stop, tombstone    → fenced (kill, write nothing) | a stop | nothing
    beat: put heartbeat.<n>                     at 1 s, on every change of state, every TTL/4
    watch: progress, silence                    see `stall`

Every beat comes after a look, so a fenced supervisor writes nothing more. What cannot be asked now is asked again
later: an outage changes nothing about a running process. The pulse file tells the agent of this machine when the
store last accepted a request of ours, so that it vouches for a supervisor that gets through and not for one whose
connection alone is dead.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from stado_like.ambient import Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.settle import verdict_reason
from stado_like.errors import BadRecord, StoreError
from stado_like.job import keys, reasons
from stado_like.job.records import Heartbeat
from stado_like.job.states import Cause
from stado_like.planning.world import STALE_GRACE_S
from stado_worker.shim import report
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.barrier import GangBarrier
from stado_worker.shim.collecting import Collecting, Gathered
from stado_worker.shim.life import Gate, Life, Over
from stado_worker.shim.log_shipping import FOLLOWED_EVERY_S, GROWTH_EVERY_S, LogShipping
from stado_worker.shim.ordered import read_order
from stado_worker.shim.outputs import masked_values
from stado_worker.shim.stall import Watch
from stado_worker.shim.task import Read

FIRST_BEAT_S = 1.0
RETRY_FIRST_S = 0.25
RETRY_MOST_S = 15.0
FENCED_LOOK_S = 0.5
SHIP_FOR_S = 0.5
COLLECTING_LOOK_S = 2.0


class OfBlock(Protocol):
    """What is different where the attempt is a block: see `block`."""

    def hurry(self) -> None:
        """Some of its ranks were stopped."""
        ...

    def report(self, over: Over, notes: tuple[str, ...]) -> None:
        """End it, as often as it takes. Raises `StoreUnavailable`."""
        ...


class Io:
    """Driven by `step()`: does what is due, says how many seconds it may sleep; None: there is nothing left to do."""

    def __init__(
        self,
        read: Read,
        life: Life,
        bucket: Bucket,
        folder: AttemptDir,
        shipping: LogShipping,
        ambient: Ambient,
        close: Callable[[], tuple[str, ...]] = lambda: (),
        watch: Watch | None = None,
        collecting: Collecting | None = None,
        saved: Callable[[], bool] = lambda: True,
        barrier: GangBarrier | None = None,
        block: OfBlock | None = None,
    ) -> None:
        """`close` clears up after the tree is gone, before the end is reported; it returns notes for people. Then
        `collecting` gathers the files to keep, while heartbeats go on; before all of it they go on until `saved`."""
        self._read = read
        self._life = life
        self._bucket = bucket
        self._folder = folder
        self._shipping = shipping
        self._ambient = ambient
        self._close = close
        self._closed: tuple[str, ...] | None = None
        self._watch = watch
        self._watch_due_s = ambient.boot_s() + (watch.cadence_s if watch is not None else 0.0)
        self._collecting = collecting
        self._saved = saved
        self._barrier = barrier
        self._block = block
        self._seq = 0
        self._beat_due_s = ambient.boot_s() + FIRST_BEAT_S
        self._beaten_at = 0.0
        self._ship_due_s = ambient.boot_s() + GROWTH_EVERY_S
        self._retry_s = RETRY_FIRST_S
        self._followed_until = 0.0
        self.follow(folder.followed_until())
        self._facts: report.Facts | None = None
        self._composed: report.Composed | None = None
        self.complaint = ""
        self._obey()

    @property
    def due_s(self) -> float:
        """When it first has something to do by itself (boot clock)."""
        watch_s = self._watch_due_s if self._watch is not None else self._beat_due_s
        return min(self._beat_due_s, self._ship_due_s, watch_s)

    @property
    def ends_at_once(self) -> bool:
        """Nothing has to be uploaded before the end record."""
        later = self._collecting is not None or self._read.terms.checkpoint is not None
        return not later and not self._shipping.has_backlog()

    def step(self) -> float | None:
        if self._life.fenced:
            if not self._life.killed and self._life.over is None:
                return FENCED_LOOK_S  # control kills and wakes us: "done" must not stand beside a living process
            if self._collecting is not None:
                self._collecting.give_up()
            report.note_done(self._folder, ours=False, at=self._life.now())
            return None
        try:
            waiting_s = self._step()
        except (StoreError, BadRecord, OSError) as trouble:
            # Unreachable, refused, a record that cannot be read, a full disk: the process goes on, and so do we.
            self.complaint = str(trouble)
            return self._again()
        self._retry_s = RETRY_FIRST_S
        return waiting_s

    def _again(self) -> float:
        waiting_s = self._ambient.uniform(self._retry_s / 2, self._retry_s)
        self._retry_s = min(self._retry_s * 2, RETRY_MOST_S)
        return waiting_s

    def _step(self) -> float | None:
        life, now_s = self._life, self._ambient.boot_s()
        over = life.over
        if over is not None:
            if not self._shipping.has_backlog():
                gathered = self._gathered()
                if gathered is not None:
                    self._report(over, gathered)
                    return None
            else:
                self._ship_due_s = now_s  # what does not fit into the end record goes first, and heartbeats go on
        elif self._watch is not None and now_s >= min(self._watch_due_s, self._beat_due_s):
            self._watch_due_s = now_s + self._watch.cadence_s
            self._watch_it(self._watch)
        if life.gate is Gate.ASKED:
            self._ask_gate()
        looking, beating = self._take_wishes()
        if beating or now_s >= self._beat_due_s:
            if not self._look():
                return 0.0
            self._beat()
        elif looking and not self._look():
            return 0.0
        if now_s >= self._ship_due_s:
            self._ship(now_s)
        due_s = min(self._beat_due_s, self._ship_due_s)
        if self._barrier is not None and over is None:
            if looking:
                self._barrier.hurry()
            due_s = min(due_s, self._barrier.step())
        now_s = self._ambient.boot_s()
        if over is not None:
            due_s = min(due_s, now_s + COLLECTING_LOOK_S)
        elif self._watch is not None:
            due_s = min(due_s, self._watch_due_s)
        return max(0.0, due_s - now_s)

    def _watch_it(self, watch: Watch) -> None:
        """A store that would not be asked about checkpoints judges nothing, and keeps no heartbeat back."""
        try:
            watch.look()
        except StoreError as trouble:
            self.complaint = str(trouble)

    def _take_wishes(self) -> tuple[bool, bool]:
        with self._life.lock:
            wishes = self._life.look_now, self._life.beat_now
            self._life.look_now = self._life.beat_now = False
        return wishes

    # ---- look

    def _look(self) -> bool:
        """Whether the attempt still is ours. A stop found is asked of control. Raises `StoreUnavailable`."""
        a, life = self._read.a, self._life
        began_s = self._ambient.boot_s()
        self._obey()
        ended, judged, stopped = self._bucket.present(keys.end(a), keys.verdict(a.job), keys.stop(a.job, a.rank))
        (buried,) = self._bucket.present(keys.tombstone(a.job))  # last, as in the gate
        self._accepted()
        if ended or buried:  # guard: look before beat
            life.fence()
            return False
        if judged:
            life.ask_stop(Cause.REQUESTED, self._why_judged())
        elif stopped and self._block is not None:
            self._block.hurry()
        elif stopped:
            life.ask_stop(Cause.REQUESTED, self._why_stopped())
        life.looked(began_s)
        return True

    def _obey(self) -> None:
        """An order of the machinery lies in our folder: that asks no store."""
        order = read_order(self._folder)
        if order is not None:
            self._life.ask_stop(order.cause, order.reason)

    def _why_judged(self) -> str:
        """A verdict that cannot be read is a verdict all the same."""
        try:
            verdict = self._bucket.verdict(self._read.a.job)
        except BadRecord:
            verdict = None
        return verdict_reason(verdict) if verdict is not None else reasons.RUN_CANCELLED

    def _why_stopped(self) -> str:
        try:
            stop = self._bucket.stop(self._read.a.job, self._read.a.rank)
        except BadRecord:
            stop = None
        return stop.reason if stop is not None else reasons.STOPPED_ON_REQUEST

    def _ask_gate(self) -> None:
        """The gate again, for a claim that got old before its process started, or a loop that slept too long.

        A stop found is carried out with grace, since something may be running; a job that is gone makes us an orphan.
        """
        if not self._look():
            return
        if self._bucket.job(self._read.a.job) is None:
            self._life.fence()
            return
        with self._life.lock:
            self._life.gate = Gate.PASSED
        self._life.wake_control()

    # ---- beat

    def _beat(self) -> None:
        life = self._life
        late_at = self._beaten_at + self._read.terms.ttl_s + STALE_GRACE_S
        if self._beaten_at and life.now() > late_at:
            life.heard_again(late_at)
            self._beaten_at = 0.0  # told once, also where this beat is not accepted
        self._seq += 1
        masks = self._shipping.masks
        progress = self._watch.progress if self._watch is not None and masks is not None else None
        with life.lock:
            beat = Heartbeat(
                seq=self._seq,
                nonce=self._read.task.claim.nonce,
                worker=self._read.task.worker,
                state=life.state,
                reason=life.reason,
                started_at=life.started_at,
                running_at=life.running_at,
                at=life.now(),
                ttl_s=self._read.terms.ttl_s,
                log_bytes=self._shipping.size(),
                stop_cause=life.stop.cause.value if life.stop else "",
                progress=masked_values(progress.values, masks) if progress and masks is not None else {},
                progress_at=progress.at if progress else 0.0,
                steps=progress.steps if progress else (),
                stall=life.stalled or {},
                saved_at=life.saved_at,
                history=life.history,
            )
        self._bucket.put(keys.heartbeat(self._read.a), beat)
        self._beaten_at = beat.at
        self._accepted()
        self._beat_due_s = self._ambient.boot_s() + self._read.terms.ttl_s / 4

    def _accepted(self) -> None:
        self._life.accepted()
        with suppress(OSError):  # a full disk: the heartbeat itself is the better proof
            pulse = {"store_time": self._life.now(), "boot_s": self._ambient.boot_s(), "saved_at": self._life.saved_at}
            self._folder.write_pulse(pulse)

    # ---- log

    def follow(self, until: float) -> None:
        """Somebody watches the log until then (store time): upload more often."""
        if until > self._followed_until:
            self._followed_until = until
            self._ship_due_s = 0.0

    def _ship(self, now_s: float) -> None:
        """Not more at once than leaves time to look and beat: a task may write faster than we can send."""
        while self._shipping.ship():
            self._accepted()
            if self._ambient.boot_s() - now_s > SHIP_FOR_S:
                return  # still due
        followed = self._life.now() < self._followed_until
        self._ship_due_s = now_s + (FOLLOWED_EVERY_S if followed else GROWTH_EVERY_S)

    # ---- end

    def _gathered(self) -> Gathered | None:
        """The files to keep are in the store, or never will be. None: they are on their way."""
        if self._closed is None:
            if not self._saved():
                return None
            self._closed = self._close()
            if self._collecting is not None:
                self._life.tell(reasons.collecting(len(self._read.terms.collect)))
        return self._collecting.poll() if self._collecting is not None else Gathered()

    def _report(self, over: Over, gathered: Gathered) -> None:
        if self._block is not None:
            self._block.report(over, self._closed or ())
            return
        known = self._facts
        if known is None:
            known = report.facts_of(self._read, self._life, over)
            notes = (*known.notes, *(self._closed or ()), *gathered.notes)
            known = replace(known, notes=notes, collected=gathered.told)
            self._facts = known
        if self._composed is None:
            self._composed = report.composed(self._bucket, self._read, self._folder, known, self._shipping)
        report.send(self._bucket, self._read, self._folder, self._composed)
