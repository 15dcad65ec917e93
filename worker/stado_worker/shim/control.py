"""The control thread: starts the command, keeps its time limit, stops it with grace, kills its whole tree. It never
asks the store.

    NEW ──▶ (prepared) ──▶ (its gang's barrier is open) ──▶ (gate asked again after a long while)
        ──▶ started ──▶ RUNNING ──▶ STOPPING ──▶ over
                                       └──────────▲

One `step()` looks at everything once and says how long it may sleep. The time limit counts from Running on the boot
clock and needs no store. A fenced attempt is killed at once and leaves no record. A loop that slept longer than the
heartbeat's TTL may have been ended by others meanwhile: the tree is frozen while I/O asks the gate again, for at
most ten seconds; it goes on also when the store does not answer, because an outage is no evidence.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stado_like.ambient import Ambient
from stado_like.job import reasons
from stado_like.job.budget import Ended, decide
from stado_like.job.states import Cause, Decision, Event
from stado_worker.shim.barrier import GangBarrier
from stado_worker.shim.could_not_start import StartFault
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.how_it_ended import how_it_ended, notes_of
from stado_worker.shim.life import Gate, Life, Over, StopAsked
from stado_worker.shim.preparing import Preparation, Unprepared
from stado_worker.shim.process import CouldNotStart
from stado_worker.shim.runner import Runner
from stado_worker.shim.stop_file import StopNotice, write_stop_file
from stado_worker.shim.task import Read

KILL_WITHIN_S = 10.0
REGATE_WITHIN_S = 10.0
POLL_STOPPING_S = 0.05
POLL_RUNNING_S = 2.0
TOLD_AS = {Cause.MACHINE_LOST: Cause.MOVED}
"""A stop file's causes are a closed list: a task that is cut off from the store is taken off its machine."""


class Control:
    def __init__(
        self,
        read: Read,
        life: Life,
        runner: Runner,
        stop_file: Path | Callable[[], Path],
        ambient: Ambient,
        keep_exit: Callable[[Over], None] = lambda over: None,
        preparing: Preparation | None = None,
        barrier: GangBarrier | None = None,
    ) -> None:
        """`stop_file`: of a block, asked for when it is written: its ranks have one each. `keep_exit` puts an end on
        the local disk: here and not in the other thread, which may hang in a request.
        `preparing`: what must be there before the command starts, where that is more than a folder; `barrier`: where
        a gang's member waits for the others."""
        self._read = read
        self._life = life
        self._runner = runner
        self._stop_file = stop_file
        self._ambient = ambient
        self._keep_exit = keep_exit
        self._stepped_boot_s = ambient.boot_s()
        self._running_boot_s = 0.0
        self._warned = False
        self._begun: StopAsked | None = None
        self._kill_boot_s = 0.0
        self._frozen_until_s = 0.0
        self._preparing = preparing
        self._barrier = barrier
        self.complaint = ""
        self.preparing = False
        self.at_barrier = False
        self.started = False
        self.is_over = False

    def take_over(self, running_boot_s: float) -> None:
        """Its command runs already, since then: it was begun with its block."""
        self.started = True
        self._running_boot_s = running_boot_s

    def step(self) -> float:
        """Look once; returns how many seconds may pass before the next look, if nothing wakes us."""
        now_s = self._ambient.boot_s()
        slept_s, self._stepped_boot_s = now_s - self._stepped_boot_s, now_s
        if self._life.fenced:
            return self._fenced()
        if not self.started:
            return self._start(now_s)
        if self._frozen_until_s or slept_s > self._read.terms.ttl_s:
            waiting_s = self._asked_again(now_s)
            if waiting_s:
                return waiting_s
        self._keep_limits(now_s)
        if self._begun is None and self._runner.leader_exit() is not None:
            return self._ended_by_itself()  # also when a stop came a moment later: nobody had told it anything
        if self._life.stop is not None:
            return self._stopping(self._life.stop, now_s)
        return self._sleep_s(now_s)

    # ---- starting

    def _start(self, now_s: float) -> float:
        life = self._life
        if life.stop is not None:
            if self._preparing is not None:
                self._preparing.give_up()
            self._finish(Over(life.stop.cause, life.stop.reason, None, life.now()))
            return 0.0
        if self._preparing is not None and not self._prepared():
            return POLL_RUNNING_S
        if self._barrier is not None and not self._may_pass(self._barrier):
            return POLL_RUNNING_S
        looked_long_ago = now_s - life.looked_boot_s > self._read.terms.ttl_s / 2  # guard: gate repeated before exec
        if looked_long_ago or life.gate is Gate.ASKED:
            if life.gate is not Gate.ASKED:
                with life.lock:
                    life.gate = Gate.ASKED
                life.wake_io()
            return POLL_RUNNING_S
        with life.lock:
            life.started_at = life.now()
        life.move(Event.START, reasons.STARTED, beat=False)
        self.started = True
        try:
            self._runner.start()
        except CouldNotStart as fault:
            gone = self._runner.finish(KILL_WITHIN_S)
            if fault.fault is StartFault.MACHINE:  # no process could be made: nothing the command did, nothing spent
                self._finish(Over(Cause.UNDELIVERED, fault.message, None, life.now()))
                return 0.0
            code = fault.command_exit
            seen = Exit(code) if code is not None else gone.exit
            self._finish(Over(Cause.FAILURE, reasons.could_not_start(fault.message), seen, life.now()))
            return 0.0
        self._running_boot_s = self._ambient.boot_s()
        with life.lock:
            life.running_at = life.now()
        life.move(Event.RUN, reasons.RUNNING, beat=self.at_barrier)  # whoever beat before it ran tells at once
        return 0.0

    def _prepared(self) -> bool:
        """Whether what the command needs is there; False also when that can never be, and the attempt is over."""
        assert self._preparing is not None
        self.preparing = True
        outcome = self._preparing.poll()
        if outcome is None:
            return False
        if isinstance(outcome, Unprepared):
            self._finish(Over(outcome.cause, outcome.reason, None, self._life.now()))
            return False
        self._runner.prepared(outcome)
        self._preparing = None
        return True

    def _may_pass(self, barrier: GangBarrier) -> bool:
        """Whether its gang starts. The first call says that this member is set up."""
        if not self.at_barrier:
            self.at_barrier = True
            self._life.move(Event.REACH_BARRIER, reasons.AT_BARRIER)
            barrier.reached()
            self._life.wake_io()
        if barrier.opened is None:
            return False
        self._runner.tell(barrier.variables())
        self._barrier = None
        return True

    # ---- running

    def _keep_limits(self, now_s: float) -> None:
        terms, life = self._read.terms, self._life
        limit_s, ran_s = terms.time_limit_s, now_s - self._running_boot_s
        if limit_s is not None and ran_s >= limit_s:
            life.ask_stop(Cause.TIME_LIMIT, reasons.time_limit(limit_s))
        elif limit_s is not None and self._warning_in_s(ran_s) == 0:
            self._warn(limit_s)
        alone_s = terms.stop_after_disconnect_s
        if alone_s is not None and now_s - life.accepted_boot_s >= alone_s:
            life.ask_stop(Cause.MACHINE_LOST, reasons.disconnected(alone_s))

    def _warning_in_s(self, ran_s: float) -> float:
        """Seconds until the task is warned of its time limit; 0: now. A task that is being stopped is not."""
        limit_s, warning = self._read.terms.time_limit_s, self._read.terms.signal_before_limit
        if warning is None or limit_s is None or self._warned or self._life.stop is not None:
            return POLL_RUNNING_S
        return max(0.0, limit_s - warning.seconds - ran_s)

    def _warn(self, limit_s: int) -> None:
        warning = self._read.terms.signal_before_limit
        assert warning is not None
        self._warned = True
        if self._runner.leader_exit() is not None:
            return
        self._runner.signal(warning.signal)
        why = reasons.signalled_before_limit(warning.signal, warning.seconds, limit_s)
        self._life.note(why, cause=Cause.TIME_LIMIT)

    def _sleep_s(self, now_s: float) -> float:
        limit_s, ran_s = self._read.terms.time_limit_s, now_s - self._running_boot_s
        if limit_s is None:
            return POLL_RUNNING_S
        return max(0.0, min(POLL_RUNNING_S, limit_s - ran_s, self._warning_in_s(ran_s)))

    def _ended_by_itself(self) -> float:
        """The leader is gone: what is left of its tree is killed, and the attempt is over within two seconds."""
        gone = self._runner.finish(KILL_WITHIN_S)
        cause, reason, exited, notes = how_it_ended(gone)
        self._finish(Over(cause, reason, exited, self._life.now(), notes, gone.stuck))
        return 0.0

    # ---- stopping

    def _stopping(self, stop: StopAsked, now_s: float) -> float:
        """Stop file, then the signal, then grace, then SIGKILL. A graver stop during grace is told, and keeps the
        deadline."""
        if self._begun is None:
            self._kill_boot_s = now_s + self._read.stop_grace_s
            self._tell(stop, now_s)
            self._life.move(Event.ASK_STOP, stop.reason, cause=stop.cause.value)
            self._runner.signal(self._read.terms.stop_signal)
            self._runner.thaw()
        elif self._begun is not stop:
            self._tell(stop, now_s)
        self._begun = stop
        quiet = self._runner.leader_exit() is not None and not self._runner.others_alive()
        if quiet or now_s >= self._kill_boot_s:
            if not quiet:
                self._life.kill_follows(reasons.killed_after_grace(self._read.stop_grace_s), stop.cause)
            gone = self._runner.finish(KILL_WITHIN_S)
            notes = notes_of(gone) if quiet else (*notes_of(gone), f"killed after {self._read.stop_grace_s} s of grace")
            if gone.out_of_memory:
                notes = (*notes, reasons.OOM_KILLED)
            self._finish(Over(stop.cause, stop.reason, gone.exit, self._life.now(), notes, gone.stuck))
            return 0.0
        return max(0.0, min(POLL_STOPPING_S, self._kill_boot_s - now_s))

    def _tell(self, stop: StopAsked, now_s: float) -> None:
        """Write the stop file. A machine that cannot (disk full) still stops the task."""
        left_s = max(0.0, self._kill_boot_s - now_s)
        notice = StopNotice(
            cause=TOLD_AS.get(stop.cause, stop.cause).value,
            reason=stop.reason,
            signal=self._read.terms.stop_signal,
            grace_seconds=self._read.stop_grace_s,
            deadline_s=self._life.now() + left_s,
            attempt=self._read.a.n,
            restarts=self._starts_again(stop, now_s),
        )
        try:
            write_stop_file(self._stop_file if isinstance(self._stop_file, Path) else self._stop_file(), notice)
        except OSError as error:
            self.complaint = f"the stop file could not be written: {error}"

    def _starts_again(self, stop: StopAsked, now_s: float) -> bool:
        """As far as it can be told before the end: a verdict may still come in between."""
        ended = Ended(stop.cause, stop.reason, now_s - self._running_boot_s if self._running_boot_s else 0.0)
        return decide(ended, self._read.terms, self._read.budgets).decision is not Decision.FINAL

    # ---- fenced, slept, over

    def _fenced(self) -> float:
        if self.started:
            self._runner.finish(KILL_WITHIN_S)
        elif self._preparing is not None:
            self._preparing.give_up()
        self.is_over = True
        self._life.all_killed()
        return 0.0

    def _asked_again(self, now_s: float) -> float:
        """After a long sleep: freeze, let I/O ask the gate, thaw. Returns 0 when there is nothing more to wait for."""
        life = self._life
        if not self._frozen_until_s:
            self._runner.freeze()  # guard: freeze after a long sleep
            self._frozen_until_s = now_s + REGATE_WITHIN_S
            with life.lock:
                life.gate = Gate.ASKED
            life.wake_io()
            return POLL_STOPPING_S
        if life.gate is Gate.ASKED and now_s < self._frozen_until_s:
            return POLL_STOPPING_S
        self._frozen_until_s = 0.0
        self._runner.thaw()
        return 0.0

    def _finish(self, over: Over) -> None:
        self.is_over = True
        self._keep_exit(over)  # before the other thread hears of it and sends anything
        self._life.end(over)
