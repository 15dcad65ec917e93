"""A task's checkpoints as its supervisor sees them: made ready before the start, saved beside it, cleared up after it.

prepare      the directory made, the newest checkpoint laid out          (the preparing thread)
begin        the process is about to start: rounds begin                 (control)
is_finished  the tree is gone: is what it left saved?                    (I/O, until True, before the end record)
notes        what people should know
clear        the local directory goes, if all of it is in the store      (when all is settled)
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from stado_like.bucket.bucket import Bucket
from stado_like.job import checkpoint
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.ids import JobId
from stado_worker.checkpoints import place
from stado_worker.checkpoints.restore import Restored, Restoring
from stado_worker.checkpoints.saving import Saver
from stado_worker.checkpoints.sending import Sender
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.life import Life
from stado_worker.shim.preparing import CouldNotPrepare, Pause, Say
from stado_worker.shim.task import Read


class Checkpoints:
    """Of one attempt. Without a checkpoint directory in its run every method does nothing."""

    def __init__(self, read: Read, folder: AttemptDir, bucket: Bucket, life: Life, cwd: str) -> None:
        """`cwd`: where the command will run."""
        self._read = read
        self._bucket = bucket
        self._life = life
        self._folder = folder
        self._cwd = cwd
        self._wanted = wanted = checkpoint.wanted(read.terms.checkpoint)
        self._notes: list[str] = []
        self._sender: Sender | None = None
        self._saver: Saver | None = None
        self.path: Path | None = None
        """The directory, or None: nothing is kept."""
        if wanted is None:
            return
        self.path = place.directory_of(read.terms, wanted.dir, folder.path, cwd)
        self._saver = Saver(life, bucket.ambient, wanted.interval_s, wanted.final_s)
        a = read.a
        shelf = Shelf(a.job, a.rank, wanted.prefix)
        root, pause = os.fsencode(self.path), self._saver.pause
        self._sender = Sender(bucket, shelf, a, root, wanted.keep, pause, life.accepted)
        self._shelf = shelf

    @property
    def variables(self) -> dict[str, str]:
        return {} if self.path is None else {"STADO_CHECKPOINT_DIR": str(self.path)}

    def prepare(self, say: Say, pause: Pause) -> None:
        """Raises `GivenUp`, `CouldNotPrepare`, a `StoreError` that is no outage, OSError."""
        if self.path is None or self._wanted is None or self._sender is None:
            return
        place.make(self.path, self._wanted.dir, self._folder.path)
        a, restored = self._read.a, None
        restoring = Restoring(self._bucket, os.fsencode(self.path), say, pause)
        if a.n > 1:
            restored = restoring.newest(self._shelf, before=a.n)
            self._sender.start_from(restoring.held, restored)
        if restored is None and self._read.terms.checkpoint_from:
            restored = self._from_another(restoring)
        self._notes = restoring.notes
        if restored is None and self._notes:
            self._notes.append("it started without a checkpoint")

    def _from_another(self, restoring: Restoring) -> Restored | None:
        """The checkpoint of the same rank of the job that this one continues."""
        j = JobId.parse(self._read.terms.checkpoint_from)
        job = restoring.ask(lambda: self._bucket.job(j))
        if job is None:
            raise CouldNotPrepare(f"The job {j}, from whose checkpoint it should start, was deleted")
        rank = self._read.a.rank
        terms = restoring.ask(lambda: self._bucket.terms(job))
        wanted = checkpoint.wanted(terms.for_rank(rank).checkpoint)
        found = restoring.newest(Shelf(j, rank, wanted.prefix if wanted else ""), before=None, own=False)
        if found is None:
            restoring.notes.append(f"{j} left no checkpoint of its task {rank} to start from")
        return found

    def begin(self) -> None:
        if self._saver is not None and self._sender is not None:
            self._saver.begin(self._sender)

    @property
    def is_busy(self) -> bool:
        return self._saver is not None and self._saver.is_busy

    def is_finished(self) -> bool:
        return self._saver is None or self._saver.is_finished()

    @property
    def notes(self) -> tuple[str, ...]:
        if self._saver is None or self.path is None or self._wanted is None:
            return tuple(self._notes)
        notes = [*self._notes, *self._saver.notes]
        if self._saver.saved and self._sender is not None and self._sender.published is None:
            beside = Path(self._cwd, self._wanted.dir)
            if beside != self.path and beside.is_dir():
                notes.append(f"nothing was written to STADO_CHECKPOINT_DIR ({self.path}); {beside} is not kept")
        if not self._saver.saved and self._holds_something():
            notes.append(f"what was not uploaded is left in {self.path} on {self._bucket.ambient.host}")
        return tuple(notes)

    def _holds_something(self) -> bool:
        with suppress(OSError):  # then nobody can tell people to look there
            return self.path is not None and any(self.path.iterdir())
        return False

    def clear(self) -> None:
        """What is in the store need not lie here; what is not, stays."""
        if self.path is not None and self._saver is not None and self._saver.saved:
            shutil.rmtree(self.path, ignore_errors=True)  # what stays goes with the attempt's folder

    @property
    def keeps(self) -> bool:
        """Whether something that is nowhere else lies in the directory."""
        return self._saver is not None and not self._saver.saved and self._holds_something()
