"""Collecting in a thread of its own, between the end of the process and the end record.

Not obvious because an upload of a gigabyte may take an hour, and the I/O thread must go on looking and proving life
meanwhile: without heartbeats the tick would take the machine for lost and run the whole task again. So I/O starts this
once the process is gone, goes on beating, and reports when it is done. An attempt that is not ours any more gives it
up.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from stado_like.errors import StoreError
from stado_like.job.records import Collected
from stado_worker.shim.collect import GaveUp, Pause, notes_of


@dataclass(frozen=True, slots=True)
class Gathered:
    """What the end record says of it. `told` is empty where nothing can be fetched."""

    told: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Collecting(Protocol):
    """What I/O asks between the end of the process and its report."""

    def poll(self) -> Gathered | None:
        """The outcome; None while it goes on. The first call begins it."""
        ...

    def give_up(self) -> None: ...


def gathered(work: Callable[[Pause], Collected | None], pause: Pause) -> Gathered:
    """Run `work` to its end, whatever comes: how the task ended does not depend on it."""
    try:
        made = work(pause)
    except (GaveUp, StoreError, OSError) as trouble:
        return Gathered(notes=(f"Its files were not collected: {trouble}",))
    except Exception as bug:
        # It belongs to this attempt, whose end must be reported: a thread that dies without a word would prevent it.
        return Gathered(notes=(f"Its files were not collected: {type(bug).__name__}: {bug}",))
    if made is None:
        return Gathered()
    told = {"files": len(made.files), "size_bytes": made.size_bytes, "left_out": made.left_out_count}
    return Gathered(told, notes_of(made))


class CollectingThread:
    def __init__(self, work: Callable[[Pause], Collected | None], wake: Callable[[], None]) -> None:
        """`work` returns None when there is nothing to collect: the command never started."""
        self._work = work
        self._wake = wake
        self._thread: threading.Thread | None = None
        self._outcome: Gathered | None = None
        self._unwanted = threading.Event()

    def poll(self) -> Gathered | None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="collecting", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return None  # this machine has no room for a thread now: asked again at the next step
            self._thread = thread
        return self._outcome

    def give_up(self) -> None:
        self._unwanted.set()

    @property
    def is_alive(self) -> bool:
        if self._thread is None:
            return False
        if self._outcome is not None:
            self._thread.join(1.0)  # it has only its last words to say
        return self._thread.is_alive()

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        self._outcome = gathered(self._work, self._unwanted.wait)
        self._wake()
