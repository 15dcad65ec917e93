"""What must be there before a command starts: a bundle laid out, credentials, files. In a thread of its own.

Not obvious because all of it may hang or take an hour, and neither of the two other threads may wait for it: control
must see a stop at once, I/O must go on looking and proving life. So the work is a plain blocking function that says
what it waits for, and asks between two tries whether it should give up; control polls what came of it. A thread that is
given up ends with its process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stado_like.errors import StadoError, StoreError
from stado_like.job import reasons
from stado_like.job.states import Cause
from stado_worker.shim.life import Life

Say = Callable[[str], None]
"""Why the task is still Preparing, for people."""
Pause = Callable[[float], bool]
"""Wait so many seconds, or less; True: give up, nobody wants the result any more."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Where the command runs, and what is added to its environment."""

    cwd: str
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unprepared:
    """It cannot be made ready. `cause` FAILURE: the specification asks for what this machine refuses; UNDELIVERED: the
    machine's own trouble, which spends nothing."""

    cause: Cause
    reason: str


class GivenUp(StadoError):
    """A stop came, or the attempt is another's: the preparation ends without a result."""

    code = "PREPARATION_GIVEN_UP"


class CouldNotPrepare(StadoError):
    """What the specification asks for is refused here. Its message is the task's reason."""

    code = "COULD_NOT_PREPARE"


class Preparation(Protocol):
    """What control asks before it starts the command."""

    def poll(self) -> Prepared | Unprepared | None:
        """The outcome; None while it goes on. The first call begins it."""
        ...

    def give_up(self) -> None: ...


class PreparingThread:
    """Runs `work(say, pause)` once."""

    def __init__(self, life: Life, work: Callable[[Say, Pause], Prepared]) -> None:
        self._life = life
        self._work = work
        self._thread: threading.Thread | None = None
        self._outcome: Prepared | Unprepared | None = None
        self._unwanted = threading.Event()

    def poll(self) -> Prepared | Unprepared | None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="preparing", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return None  # this machine has no room for a thread now: asked again at control's next step
            self._thread = thread
        return self._outcome

    def give_up(self) -> None:
        self._unwanted.set()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        try:
            outcome: Prepared | Unprepared = self._work(self._life.say, self._unwanted.wait)
        except GivenUp:
            return
        except CouldNotPrepare as refused:
            outcome = Unprepared(Cause.FAILURE, refused.message)
        except (OSError, StoreError) as trouble:
            outcome = Unprepared(Cause.UNDELIVERED, reasons.could_not_prepare(str(trouble)))
        except Exception as bug:
            # Whatever it is, it belongs to this attempt: a thread that dies without a word would leave it waiting.
            outcome = Unprepared(Cause.FAILURE, reasons.could_not_prepare(f"{type(bug).__name__}: {bug}"))
        self._outcome = outcome
        self._life.wake_control()
