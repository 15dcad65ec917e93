"""The ranks of a block as one command: started one after the other, so that what drives a task drives a block too.

    start ──▶ a rank runs ──▶ its leader ended: its tree is killed, its end noted ──▶ the next rank
                  │                                                                       │ none left, or no more wanted
                  └── half a second is over ──▶ it goes on by itself ──────────────────────┴──▶ "exited 0"

Not obvious because a block must stay what it is for, short: it lasts half a second, or until its ends fill a record, or
until somebody is waiting for one of its ranks. Then what was not begun is given back to the queue, and the rank that
runs at that moment is let go, to become an attempt of its own in the same process: nothing is killed for having been
carried together with others.

A stop of the block is a stop of the rank that runs: it gets the signal, and no other is started.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from stado_like.ambient import Ambient
from stado_like.job import blocks, reasons
from stado_like.job.states import Cause
from stado_worker.shim.block_ran import RankEnd
from stado_worker.shim.could_not_start import CouldNotStart, StartFault
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.how_it_ended import how_it_ended
from stado_worker.shim.life import Life, Over
from stado_worker.shim.preparing import Prepared
from stado_worker.shim.runner import Gone, Runner

BLOCK_S: Final = 0.5
"""How long a block lasts, from its first start: long enough for what a claim and an end cost to matter no more, short
enough for nobody to miss a heartbeat of its ranks."""
KILL_WITHIN_S = 10.0
LATE_S = 0.05
"""Between two looks at a rank that should have been let go, and could not be."""


class Journal(Protocol):
    """Where it is kept what the ranks came to: see `block_ran.RanFile`."""

    taken_bytes: int

    def begin(self, rank: int, at: float) -> None:
        """Raises OSError: the rank must not be started."""
        ...

    def ended(self, end: RankEnd) -> None: ...

    def flush(self) -> None: ...


@dataclass(frozen=True, slots=True)
class GoesOn:
    """The rank that runs on under a claim of its own, its tree in the hands of `runner`. Times are store time."""

    rank: int
    runner: Runner
    started_at: float
    running_at: float
    running_boot_s: float

    @property
    def begun(self) -> tuple[int, float, float]:
        return self.rank, self.started_at, self.running_at


class BlockRunner:
    """`make` gives the runner of one rank, not yet started; it may raise `CouldNotStart`. Whether the block is stopped,
    and the store's time, are read from `life`."""

    def __init__(
        self, ranks: range, make: Callable[[int], Runner], journal: Journal, life: Life, ambient: Ambient
    ) -> None:
        self._left = deque(ranks)
        self._make = make
        self._journal = journal
        self._life = life
        self._ambient = ambient
        self._due_boot_s = float("inf")
        self._current: GoesOn | None = None
        self._signalled = False
        self._hurried = False
        self._stuck: tuple[int, ...] = ()
        self._stopped: Gone | None = None
        self.goes_on: GoesOn | None = None
        self.turn = 0
        """Rises with every start: a descriptor of the same number may be another's then."""

    # ---- what is asked of it besides running

    @property
    def leader(self) -> tuple[int, int | None] | None:
        """Its ranks' processes are found by what their own folders say."""
        return None

    @property
    def rank(self) -> int | None:
        """The one that runs, and is told of a stop."""
        return self._current.rank if self._current is not None else None

    def due_in_s(self) -> float:
        """Until it lets the rank go that runs. One that is being stopped is not let go, nor is one that is frozen."""
        if self._current is None or self._is_stopped():
            return float("inf")
        left_s = self._due_boot_s - self._ambient.boot_s()
        return left_s if left_s > 0 else LATE_S

    def hurry(self) -> None:
        """Somebody waits for one of these ranks: no other is started, and the one that runs goes on by itself. Called
        by the other thread."""
        self._hurried = True

    def close(self, over: Over) -> None:
        """The block is over like this: so is the rank that was stopped with it."""
        if self._stopped is not None and self._current is not None:
            self._note(self._current.begun, over.cause, over.reason, self._stopped.exit, over.notes)
            self._current = None
        self._journal.flush()

    # ---- Runner

    def prepared(self, ready: Prepared) -> None:
        raise AssertionError("nothing of a block has to be made ready")

    def tell(self, variables: Mapping[str, str]) -> None:
        raise AssertionError("a block waits at no barrier")

    def start(self) -> None:
        """Raises `CouldNotStart` where this machine could start nothing at all."""
        self._due_boot_s = self._ambient.boot_s() + BLOCK_S
        fault = self._start_next()
        if fault is not None and self._current is None:
            raise fault

    def leader_exit(self) -> Exit | None:
        """None while there is something to wait for. Ends a rank that has ended, and starts the next one."""
        current = self._current
        if current is None:
            return Exit(0)
        ended = current.runner.leader_exit()
        if ended is None:
            if not self._is_stopped() and not self._may_go_on():
                self.goes_on, self._current = current, None
                return Exit(0)
            return None
        if self._signalled:
            return ended  # it is being stopped: its children are waited for, and its end is the stop's
        gone = current.runner.finish(KILL_WITHIN_S)
        self._current = None
        self._note(current.begun, *how_it_ended(gone))
        if gone.stuck:
            self._stuck = gone.stuck  # nothing is started beside it
        else:
            self._start_next()
        return None if self._current is not None else Exit(0)

    def others_alive(self) -> bool:
        return self._current is not None and self._current.runner.others_alive()

    def signal(self, name: str) -> None:
        if self._current is not None:
            self._signalled = True
            self._current.runner.signal(name)

    def finish(self, within_s: float) -> Gone:
        """Whoever goes on is not ours any more."""
        if self._current is None:
            return Gone(Exit(0), stuck=self._stuck)
        self._stopped = self._current.runner.finish(within_s)
        return self._stopped

    def freeze(self) -> None:
        if self._current is not None:
            self._current.runner.freeze()

    def thaw(self) -> None:
        if self._current is not None:
            self._current.runner.thaw()

    def wait_fd(self) -> int | None:
        return self._current.runner.wait_fd() if self._current is not None else None

    # ---- one rank

    def _is_stopped(self) -> bool:
        return self._life.stop is not None or self._life.fenced

    def _may_go_on(self) -> bool:
        if self._hurried or self._journal.taken_bytes >= blocks.ROOM_BYTES:
            return False
        return self._ambient.boot_s() < self._due_boot_s

    def _start_next(self) -> CouldNotStart | None:
        """Start the first of those left that can be started. Returns why none of them could for want of a machine."""
        while self._left and not self._is_stopped() and self._may_go_on():
            rank, at = self._left[0], self._life.now()
            try:
                self._journal.begin(rank, at)
            except OSError as error:
                return CouldNotStart(
                    f"No more of its tasks could be started on {self._ambient.host}: {error}",
                    "See that machine's disk",
                    fault=StartFault.MACHINE,
                    command_exit=None,
                )
            self._left.popleft()
            fault = self._start(rank, at)
            if fault is None:
                return None
            if fault.fault is StartFault.MACHINE:
                return fault
        return None

    def _start(self, rank: int, at: float) -> CouldNotStart | None:
        runner: Runner | None = None
        try:
            runner = self._make(rank)
            runner.start()
        except CouldNotStart as fault:
            gone = runner.finish(KILL_WITHIN_S) if runner is not None else Gone(None)
            cause, reason, code = Cause.FAILURE, reasons.could_not_start(fault.message), fault.command_exit
            if fault.fault is StartFault.MACHINE:  # no process could be made: nothing the command did, nothing spent
                cause, reason = Cause.UNDELIVERED, fault.message
            seen = Exit(code) if code is not None else gone.exit
            self._note((rank, at, 0.0), cause, reason, seen)
            return fault
        self.turn += 1
        self._current = GoesOn(rank, runner, at, self._life.now(), self._ambient.boot_s())
        return None

    def _note(
        self,
        begun: tuple[int, float, float],
        cause: Cause,
        reason: str,
        exited: Exit | None,
        notes: tuple[str, ...] = (),
    ) -> None:
        """`begun`: the rank, when it was started, when it ran."""
        rank, started_at, running_at = begun
        self._journal.ended(
            RankEnd(
                rank=rank,
                cause=cause,
                reason=reason,
                exit_code=exited.exit_code if exited is not None else None,
                signal=exited.signal_name if exited is not None else None,
                started_at=started_at,
                running_at=running_at,
                ended_at=self._life.now(),
                notes=notes,
            )
        )
