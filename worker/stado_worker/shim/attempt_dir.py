"""The local records of one attempt: `<state>/attempts/<attempt id>/`.

Not obvious because three processes that may die at any instruction share this folder and none of them is another's
parent. So: facts are files, made whole by rename; "alive" is a lock, never a pid (a zombie under PID 1 still has one,
and pids are reused); and who may start the command is settled by one exclusive create.

    claim.json   agent, before it sends the claim          fsync
    task.json    agent: what to run
    launch       exclusive create by whoever starts, gives up or takes over
    alive        locked by the supervisor for its life
    proc.json    supervisor: its pid, and the leader's with its start time
    pulse        supervisor: store time of the last accepted request
    log, stop    the command's output; the stop file
    follow       agent: until when somebody follows the log
    order        agent: what the machinery ordered of this attempt
    exit.json    supervisor, before it first sends the end  fsync
    done         after settle
"""

from __future__ import annotations

import fcntl
import os
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from stado_like.ambient import REAL, Ambient
from stado_like.errors import BadRecord, Conflict
from stado_like.job import codec
from stado_like.store.syncing import sync_directory, sync_file, together

Record = dict[str, Any]

ALIVE_RETRY_S = 2.0
KEEP_S = 86_400.0
MOST_BYTES = 1 << 30
GONE = ".gone."
READ_BYTES = 1 << 16
BY_SUPERVISOR = "supervisor "
"""How the text of `launch` begins when a supervisor created it; its control group's name follows."""


def write_whole(path: Path | str, body: bytes, *, fsync: bool = False, parents: int = 0) -> None:
    """Put `body` under `path` so that a reader sees the old file or the new one, never a part.

    `fsync`: after this returns, it survives a loss of power, and so do the entries of `parents` directories above its
    own. Where nothing is replaced the file has its name before the syncs, which then go side by side: what a loss of
    power leaves of it is empty or cut short, and counts as never written.
    """
    directory, name = os.path.split(path)
    fresh = f"{directory}/.{name}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(body)
        while left:
            left = left[os.write(fd, left) :]
        first = fsync and not os.path.exists(path)
        if fsync and not first:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(fresh, path)
    if fsync:
        above = [directory]
        for _ in range(parents):
            above.append(os.path.dirname(above[-1]))
        syncs = [partial(sync_directory, one) for one in above]
        together(*([partial(sync_file, str(path))] if first else []), *syncs)


def _read_whole(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        body = os.read(fd, READ_BYTES)
        while len(body) >= READ_BYTES and (more := os.read(fd, len(body))):
            body += more
        return body
    finally:
        os.close(fd)


class AliveLock:
    """While this is held its attempt has a supervisor. `fd` is closed by exec; a fork that does not exec would keep
    it.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def release(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


@dataclass(frozen=True, slots=True)
class AttemptDir:
    path: Path

    @classmethod
    def make(cls, attempts: Path, attempt_id: str) -> AttemptDir:
        """The folder of `attempt_id`, made if need be. Its own entry is on the disk once a claim in it is."""
        path = attempts / attempt_id
        try:
            os.mkdir(path)
        except FileExistsError:
            return cls(path)
        except FileNotFoundError:
            path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    @property
    def attempt_id(self) -> str:
        return self.path.name

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def stop(self) -> Path:
        return self.path / "stop"

    @property
    def supervisor_log(self) -> Path:
        return self.path / "supervisor.log"

    # -- facts ----------

    def write_claim(self, record: Record, *, fsync: bool = True) -> None:
        """With `fsync` the folder's own entry is on the disk too."""
        self._write("claim.json", record, fsync, parents=1)

    def read_claim(self) -> Record | None:
        return self._read("claim.json")

    def write_task(self, record: Record) -> None:
        self._write("task.json", record, False)

    def read_task(self) -> Record | None:
        return self._read("task.json")

    def write_proc(self, record: Record) -> None:
        self._write("proc.json", record, False)

    def read_proc(self) -> Record | None:
        return self._read("proc.json")

    def write_pulse(self, record: Record) -> None:
        self._write("pulse", record, False)

    def read_pulse(self) -> Record | None:
        return self._read("pulse")

    def write_exit(self, record: Record, *, fsync: bool = True) -> None:
        self._write("exit.json", record, fsync)

    def read_exit(self) -> Record | None:
        return self._read("exit.json")

    def write_follow(self, until: float) -> None:
        """Somebody follows the log until then, store time."""
        self._write("follow", {"until": until}, False)

    def followed_until(self) -> float:
        return float((self._read("follow") or {}).get("until", 0.0))

    def write_order(self, record: Record) -> None:
        self._write("order", record, False)

    def read_order(self) -> Record | None:
        return self._read("order")

    def write_stuck(self, record: Record) -> None:
        """What would not die."""
        self._write("stuck", record, False)

    def read_stuck(self) -> Record | None:
        return self._read("stuck")

    def write_done(self, record: Record) -> None:
        self._write("done", record, False)

    def read_done(self) -> Record | None:
        return self._read("done")

    def is_done(self) -> bool:
        return os.path.exists(f"{self.path}/done")

    def _write(self, name: str, record: Record, fsync: bool, parents: int = 0) -> None:
        write_whole(f"{self.path}/{name}", codec.dumps(record), fsync=fsync, parents=parents)

    def _read(self, name: str) -> Record | None:
        """None: never written (an empty file is one whose bytes a crash of the machine took). Raises BadRecord."""
        path = f"{self.path}/{name}"
        try:
            body = _read_whole(path)
        except FileNotFoundError:
            return None
        if not body:
            return None
        try:
            found = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadRecord(
                f"{path} holds {len(body)} bytes that are no record: {error}", "Look at the file"
            ) from error
        if not isinstance(found, dict):
            raise BadRecord(f"{path} holds a {type(found).__name__} where a record was expected", "Look at the file")
        return found

    def open_log(self) -> int:
        """A descriptor that appends to the log. The command writes to it straight: no pipe that a grandchild could
        hold open.
        """
        return os.open(f"{self.path}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    # -- who starts it, who lives ----------

    def create_launch(self, by: str) -> bool:
        """True for exactly one caller ever: it starts the attempt, or settles that nobody does. The others do
        nothing.
        """
        # guard: launch once
        try:
            fd = os.open(f"{self.path}/launch", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            return False
        try:
            os.write(fd, by.encode())
        finally:
            os.close(fd)
        return True

    def launched_by(self) -> str | None:
        """Who created `launch`; empty for the instant between its create and its text."""
        try:
            return _read_whole(f"{self.path}/launch").decode()
        except FileNotFoundError:
            return None

    def group_name(self) -> str | None:
        """The control group of the supervisor that started this, where it had one."""
        by = self.launched_by() or ""
        return by.removeprefix(BY_SUPERVISOR) or None if by.startswith(BY_SUPERVISOR) else None

    def take_alive(self, *, retry_s: float = ALIVE_RETRY_S, ambient: Ambient = REAL) -> AliveLock:
        """Lock `alive` for this process. Raises Conflict when another supervisor holds it.

        A look (`is_alive`) holds the lock for some microseconds, so a refusal is tried again for `retry_s`.
        """
        fd = os.open(f"{self.path}/alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        deadline_s = ambient.boot_s() + retry_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return AliveLock(fd)
            except BlockingIOError:
                if ambient.boot_s() >= deadline_s:
                    os.close(fd)
                    raise Conflict(
                        f"Attempt {self.attempt_id} has a living supervisor already ({self.path / 'alive'} is locked)",
                        "Nothing to do: that supervisor goes on",
                    ) from None
                ambient.sleep(0.002)
            except OSError:
                os.close(fd)
                raise

    def is_alive(self) -> bool:
        """Whether a supervisor lives. Asks the lock, on a descriptor of its own, and lets go at once.

        Raises OSError when the lock cannot be asked: that is not "dead".
        """
        try:
            fd = os.open(f"{self.path}/alive", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False


@dataclass(slots=True)
class Swept:
    """What a sweep did. `failed`: attempt id -> why it could not be looked at or removed; it stays for the next
    sweep.
    """

    removed: list[str] = field(default_factory=list)
    kept_bytes: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def attempt_dirs(attempts: Path) -> list[AttemptDir]:
    """Every attempt kept here, in no order; none when the folder does not exist."""
    return [AttemptDir(path) for path in _directories(attempts) if not path.name.startswith(".")]


def sweep(
    attempts: Path,
    now_s: float,
    keep_s: float = KEEP_S,
    most_bytes: int = MOST_BYTES,
    *,
    most: int = 1000,
    measured: dict[str, tuple[float, int]] | None = None,
) -> Swept:
    """Remove attempts `keep_s` after `done`, and the oldest done ones while all done ones hold more than `most_bytes`.

    `now_s` is this machine's wall clock, as the times of its own files are. An attempt that is not done stays,
    whatever its age: its end may still have to be sent. At most `most` go per call, and `measured` (name -> when done,
    bytes), kept by the caller between sweeps, spares measuring again what can no longer change: so no call takes long.
    """
    swept = Swept()
    known = measured if measured is not None else {}
    done: list[tuple[float, int, Path]] = []
    for path in _directories(attempts):
        try:
            if path.name.startswith(GONE):  # a removal that was cut short
                _remove(path)
                continue
            if path.name not in known:
                known[path.name] = ((path / "done").stat().st_mtime, _allocated_bytes(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            swept.failed[path.name] = str(error)
            continue
        done.append((*known[path.name], path))
    swept.kept_bytes = sum(size for _, size, _ in done)
    for done_at_s, size_bytes, path in sorted(done):
        due = now_s - done_at_s >= keep_s or swept.kept_bytes > most_bytes
        if not due or len(swept.removed) >= most:
            break
        # Renamed first: what a removal cut short leaves must not look like an attempt that never ended.
        gone = path.with_name(GONE + path.name)
        try:
            path.rename(gone)
            _remove(gone)
        except OSError as error:
            swept.failed[path.name] = str(error)
            continue
        known.pop(path.name, None)
        swept.removed.append(path.name)
        swept.kept_bytes -= size_bytes
    return swept


def _remove(path: Path) -> None:
    """Remove a folder, also one in which a task left folders that nobody may write or enter (package caches do)."""
    try:
        shutil.rmtree(path)
    except PermissionError:
        _open_up(path)
        shutil.rmtree(path)


def _open_up(path: Path) -> None:
    os.chmod(path, 0o700)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _open_up(Path(entry.path))


def _directories(attempts: Path) -> list[Path]:
    try:
        with os.scandir(attempts) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _allocated_bytes(path: Path) -> int:
    """What the folder takes on disk: blocks, not lengths (a small record still takes a block)."""
    total = path.stat().st_blocks * 512
    try:
        entries = list(os.scandir(path))
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                total += _allocated_bytes(Path(entry.path))
            else:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
    except PermissionError:  # a folder that its task closed: the attempt is over, so it may be opened
        _open_up(path)
        return _allocated_bytes(path)
    return total
