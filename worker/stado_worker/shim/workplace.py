"""Where a command runs and what lies around it: made ready before it starts, cleared up after its tree is gone.

    prepare   its bundle laid out, its newest checkpoint, its credentials and files    (the preparing thread)
    opened    the file that its output goes to as well                        (control, right before the start)
    close     that file made whole, what was placed removed                   (I/O, before the end record)
    collect   the files to keep uploaded                                      (the collecting thread, after `close`)
    clear     the laid-out bundle removed                                     (when all is settled)

What is placed outside the attempt's folder must go again whoever ends the attempt, so `close` works from the folder
alone: an agent that finishes for a dead supervisor calls the same function.
"""

from __future__ import annotations

import os
import pwd
import shutil
from contextlib import suppress
from pathlib import Path

from stado_like import config
from stado_like.bucket.bucket import Bucket
from stado_like.errors import Refused
from stado_like.job.records import Collected
from stado_like.job.terms import Terms
from stado_worker.bundles import BundleMissing, lay_out
from stado_worker.checkpoints.keeping import Checkpoints
from stado_worker.secrets.deliver import deliver
from stado_worker.secrets.placing import remove_left_behind, remove_placed
from stado_worker.shim import output_file
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.collect import GIVE_UP_AFTER_S, MOST_BYTES, collect
from stado_worker.shim.life import Life
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.outputs import keep_working_directory, working_directory
from stado_worker.shim.preparing import GivenUp, Pause, Prepared, Say
from stado_worker.shim.task import Read, slurm_of

BUNDLE = "bundle"
SCRATCH = "scratch"
OUTPUT_FILE = "output-file"
CACHE = "bundles"
MISSING_AGAIN_S = 15.0


def reaches_out(terms: Terms) -> bool:
    """Whether anything lies outside the attempt's folder that must go again; most tasks need no look."""
    return bool(terms.output_file or terms.secret_refs or terms.configs)


class Workplace:
    def __init__(self, read: Read, folder: AttemptDir, bucket: Bucket, shipping: LogShipping, life: Life) -> None:
        self._read = read
        self._folder = folder
        self._bucket = bucket
        self._shipping = shipping
        self._notes: tuple[str, ...] = ()
        terms = read.terms
        cwd = os.path.join(self.folder_to_run_in(), terms.workdir if terms.bundle else "")
        self.checkpoints = Checkpoints(read, folder, bucket, life, cwd)
        self.takes_time = bool(terms.bundle or terms.secret_refs or terms.configs or terms.checkpoint)
        """Whether anything has to be made ready that may have to be waited for."""
        self._reaches_out = reaches_out(terms)

    def folder_to_run_in(self) -> str:
        """The job's own directory; without one an empty folder of this attempt. A bundle comes later."""
        own = self._read.terms.workdir or self._read.terms.cwd
        if own and not self._read.terms.bundle:
            return own
        if self._read.terms.bundle:
            return str(self._folder.path / BUNDLE)
        scratch = self._folder.path / SCRATCH
        with suppress(OSError):  # a full disk: the start says so
            scratch.mkdir(exist_ok=True)
        return str(scratch)

    # ---- before

    def prepare(self, say: Say, pause: Pause) -> Prepared:
        """Blocks until everything is there. Raises `GivenUp`, `CouldNotPrepare`, OSError."""
        terms = self._read.terms
        cwd = self.folder_to_run_in()
        if terms.bundle:
            self._lay_out(Path(cwd), say, pause)
            cwd = os.path.join(cwd, terms.workdir)  # an absolute one is a directory of this machine
        self.checkpoints.prepare(say, pause)
        given = deliver(self._folder, terms.secret_refs, terms.configs, cwd, self._shipping, say, pause)
        self._notes = given.notes
        return Prepared(cwd, given.env)

    def _lay_out(self, target: Path, say: Say, pause: Pause) -> None:
        """A bundle that is not in the store spends nothing: the task waits, and says what to do."""
        cache = self._folder.path.parent.parent / CACHE
        while True:
            try:
                return lay_out(self._bucket, self._read.terms.bundle, cache, target, say, pause)
            except BundleMissing as missing:
                say(f"Waiting for its bundle: {missing.message}")
                if pause(MISSING_AGAIN_S):
                    raise GivenUp("the bundle is not wanted any more") from missing

    def opened(self, cwd: str) -> None:
        """Make the file that the output goes to as well, where one is asked for."""
        self.checkpoints.begin()
        pattern, terms, a = self._read.terms.output_file, self._read.terms, self._read.a
        if (terms.collect or terms.answer_path) and (trouble := keep_working_directory(self._folder, cwd)):
            self._notes = (*self._notes, trouble)
        group = terms.group_of(a.rank)
        together = 1 if terms.array_size else group.tasks
        if not pattern or not output_file.is_written_by(pattern, a.rank - group.first, together):
            return
        values = output_file.values_of(slurm_of(self._read, str(self._folder.path), self._bucket.ambient.host), _user())
        path = Path(cwd, output_file.expand(pattern, values))
        try:
            (self._folder.path / OUTPUT_FILE).write_text(str(path))
        except OSError as error:
            note = f"No output file at {path}: {error.strerror}; the output is in the job's log"
        else:
            note = output_file.begin(path, self._folder.log)
        self._notes = (*self._notes, note) if note else self._notes

    # ---- after

    def close(self) -> tuple[str, ...]:
        """The tree is gone: clear up outside the folder. Returns what people should know of all of it."""
        closed = close(self._folder) if self._reaches_out else ()
        return (*self._notes, *self.checkpoints.notes, *closed)

    def collect(self, pause: Pause) -> Collected | None:
        """Blocks until the files to keep are in the store. None: the command never started. Raises as `collect.collect`
        does."""
        return collect_from(self._folder, self._bucket, self._read, pause)

    def clear(self) -> None:
        """The end is settled, or was another's: nothing of it is asked for any more."""
        if self._reaches_out:
            close(self._folder)  # a fenced attempt reports no end, and has not closed yet
            with suppress(OSError):  # the next start of the worker does it
                remove_left_behind(self._folder.path)
        self.checkpoints.clear()
        if self._read.terms.bundle and not self.checkpoints.keeps:
            shutil.rmtree(self._folder.path / BUNDLE, ignore_errors=True)  # what stays goes with the folder


def collect_from(
    folder: AttemptDir, bucket: Bucket, read: Read, pause: Pause, *, within_s: float = GIVE_UP_AFTER_S
) -> Collected | None:
    """The same for whoever ends the attempt, from its folder alone. Again sends the same names again."""
    cwd = working_directory(folder)
    if cwd is None:
        return None
    try:
        most_bytes = config.load().collect_max
    except Refused:
        most_bytes = MOST_BYTES  # a settings file that broke since the worker started: no job is to blame for it
    return collect(bucket, read.a, cwd, read.terms.collect, pause, most_bytes=most_bytes, within_s=within_s)


def close(folder: AttemptDir) -> tuple[str, ...]:
    """For whoever ends the attempt, from its folder alone. Again changes nothing. Returns notes for people."""
    notes: list[str] = []
    kept = folder.path / OUTPUT_FILE
    try:
        path = Path(kept.read_text())
    except FileNotFoundError:
        path = None
    except OSError as error:
        path = None
        notes.append(f"its output file is not known any more: {error}")
    if path is not None and (note := output_file.finish(path, folder.log)):
        notes.append(note)
    with suppress(OSError):
        kept.unlink(missing_ok=True)
    try:
        remove_placed(folder.path)
    except OSError as error:
        notes.append(f"what was placed for it could not be removed: {error}")
    return tuple(notes)


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
