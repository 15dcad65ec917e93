"""When a checkpoint is taken: every interval, when a stop begins, and once more when the process is gone. In a thread
of its own.

Not obvious because a checkpoint may take an hour to upload. Control must keep the grace, I/O must look and beat; so
neither waits for this thread. A stop takes its course beside an upload that is under way. What the program left behind
is uploaded after its whole tree is gone and before the end is written, for the next attempt may start a second after
that; I/O asks `is_finished` again and again meanwhile, and goes on proving life. The bound on that time is the run's
(`checkpoint.final_seconds`): beyond it the end is reported, and a note says what became of the rest.
"""

from __future__ import annotations

import signal
import threading

from stado_like.ambient import Ambient
from stado_like.errors import BadRecord, Refused, StoreError
from stado_like.job import reasons
from stado_like.job.checkpoint import Ref
from stado_worker.checkpoints.sending import Sender
from stado_worker.shim.life import Life
from stado_worker.shim.preparing import GivenUp

LOOK_S = 1.0
RETRY_FIRST_S = 2.0
RETRY_MOST_S = 60.0


class Saver:
    """`sender` is only touched by the thread once that runs. `saved`: the last round, after the end, went through."""

    def __init__(self, life: Life, ambient: Ambient, interval_s: float, final_s: float) -> None:
        self._life = life
        self._ambient = ambient
        self._interval_s = interval_s
        self._final_s = final_s
        self._sender: Sender | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._done = threading.Event()
        self._give_up_boot_s: float | None = None
        """When the last round must be over; None: the process is not gone yet."""
        self.saved = False
        self.trouble = ""
        self.newest: Ref | None = None

    def begin(self, sender: Sender) -> None:
        """The process is about to start. Where there is no room for a thread, it is tried again at the end."""
        self._sender = sender
        self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        try:
            thread.start()
        except RuntimeError as full:
            self.trouble = str(full)
            return
        self._thread = thread

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def is_finished(self) -> bool:
        """The tree is gone: whether all that it left is saved, or no longer waited for. The first call begins it."""
        if self._sender is None:
            return True
        if self._give_up_boot_s is None:
            self._give_up_boot_s = self._ambient.boot_s() + self._final_s
            self._life.tell(reasons.UPLOADING_CHECKPOINT)
            self._wake.set()
        if self._thread is None:
            self._start()
        return self._done.is_set() or self._ambient.boot_s() >= self._give_up_boot_s

    def pause(self, seconds: float) -> bool:
        """What the sender rests by; True: nobody wants it any more."""
        until_s = self._ambient.boot_s() + seconds
        while not self._unwanted():
            left_s = until_s - self._ambient.boot_s()
            if left_s <= 0:
                return False
            self._ambient.sleep(min(left_s, LOOK_S))
        return True

    def _unwanted(self) -> bool:
        late = self._give_up_boot_s is not None and self._ambient.boot_s() >= self._give_up_boot_s
        return late or self._life.fenced

    def _run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        try:
            self._rounds()
        finally:
            self._done.set()
            self._life.wake_io()

    def _rounds(self) -> None:
        due_s = self._ambient.boot_s() + self._interval_s
        retry_s = RETRY_FIRST_S
        stop_seen = final_begun = False
        while not self._unwanted():
            final = self._give_up_boot_s is not None
            stopping = self._life.stop is not None
            now_s = self._ambient.boot_s()
            if now_s < due_s and (final_begun or not final) and (stop_seen or not stopping):
                self._wake.wait(min(LOOK_S, due_s - now_s))
                self._wake.clear()
                continue
            stop_seen, final_begun = stopping, final
            self.trouble, again = self._round(final)
            if final and not again:
                self.saved = not self.trouble
                return
            retry_s = min(2 * retry_s, RETRY_MOST_S) if self.trouble else RETRY_FIRST_S
            wait_s = min(retry_s, self._interval_s) if self.trouble else self._interval_s
            due_s = self._ambient.boot_s() + wait_s

    def _round(self, final: bool) -> tuple[str, bool]:
        """Returns what went wrong, and whether waiting may help when the process is gone: only the store may come back.
        While the process goes on, the next round tries again in any case."""
        assert self._sender is not None
        try:
            made = self._sender.save(still=final)
        except StoreError as trouble:
            return trouble.message, True
        except (BadRecord, Refused, GivenUp) as trouble:
            return trouble.message, False
        except OSError as trouble:
            return str(trouble), False
        except Exception as bug:
            # It belongs to this attempt's checkpoint: a thread that dies without a word would look like an outage.
            return f"{type(bug).__name__}: {bug}", False
        if made is not None:
            self.newest = made
            self._life.saved_at = self._written_at()
        return "", False

    def _written_at(self) -> float:
        """When the program wrote the newest of what was just published: what it did since is lost with it. File times
        are this machine's; one that is yet to come counts as now."""
        manifest = self._sender.published if self._sender is not None else None
        newest_ns = max((kept.mtime_ns for kept in manifest.files.values()), default=0) if manifest is not None else 0
        age_s = max(0.0, self._ambient.wall_s() - newest_ns / 1e9) if newest_ns else 0.0
        return self._life.now() - age_s

    @property
    def _waited(self) -> str:
        late = self._give_up_boot_s is not None and self._ambient.boot_s() >= self._give_up_boot_s
        return f" within {self._final_s:g} s" if late else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """For people, once it is finished."""
        if self._sender is None:
            return ()
        notes = list(self._sender.notes)
        if self.saved and self._sender.late:
            notes.append(f"{len(self._sender.late)} files of its checkpoint were written to until the last moment")
        if not self.saved and not self._life.fenced:
            newest = f"the newest is {self.newest}" if self.newest is not None else "it saved none before"
            why = f": {self.trouble}" if self.trouble else ""
            notes.append(f"its last checkpoint was not uploaded{self._waited}{why}; {newest}")
        return tuple(notes)
