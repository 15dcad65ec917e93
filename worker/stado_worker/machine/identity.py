"""Who this worker is: machine, boot, id, and the folder where it keeps what must outlive it.

Not obvious because the obvious names repeat: two containers made from one image share /etc/machine-id and often the
host name, and a copied disk carries another machine's files. So the machine id combines the system's own with a random
token kept in the state directory, and the default worker id is the host name with a random suffix kept there, per
machine and host name.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from stado_like.ambient import REAL, Ambient
from stado_like.errors import BadRecord, Conflict, UsageError

if TYPE_CHECKING:
    import filelock

MACHINE_ID_FILES = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
WORKER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def state_home(env: Mapping[str, str] = os.environ) -> Path:
    """Where workers keep their state: STADO_STATE, else ~/.local/state/stado. Not created here."""
    if env.get("STADO_STATE"):
        return Path(env["STADO_STATE"]).absolute()
    home = env.get("HOME") or os.path.expanduser("~")
    if not os.path.isabs(home):
        raise UsageError("There is no home directory to keep the worker's state in", "Set STADO_STATE to a directory")
    return Path(home) / ".local" / "state" / "stado"


def machine_id(home: Path, *, ambient: Ambient = REAL, system_id: str | None = None) -> str:
    """32 hexadecimal digits that name this machine: another state directory or another system, another id."""
    system = _system_id() if system_id is None else system_id
    return hashlib.sha256(f"{system}\n{_kept(home / '.token', ambient)}".encode()).hexdigest()[:32]


def boot_id(ambient: Ambient = REAL) -> str:
    """A name for this boot; empty where the system has none."""
    return ambient.boot_id


def default_worker_id(home: Path, *, ambient: Ambient = REAL, system_id: str | None = None) -> str:
    """`<host name>-<suffix>`: the same at every start here, another in a container of the same host name."""
    host = host_label(ambient.host)
    here = machine_id(home, ambient=ambient, system_id=system_id)
    return f"{host}-{_kept(home / f'.suffix.{here[:8]}.{host}', ambient)[:6]}"


def host_label(host: str) -> str:
    """The host name with what a worker id may not hold turned into `-`: lower case, at most 48 letters."""
    label = re.sub(r"[^a-z0-9-]+", "-", host.lower()).strip("-")[:48].rstrip("-")
    return label or "worker"


def _system_id() -> str:
    for file in MACHINE_ID_FILES:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text and text != "uninitialized":
            return text
    return ""


def _kept(file: Path, ambient: Ambient) -> str:
    """A random token, made at the first call and the same ever after, also when two processes call at once."""
    for _ in range(2):
        try:
            text = file.read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            text = ""
        if text:
            return text
        _make(file.parent)
        fresh = file.with_name(f"{file.name}.{ambient.pid}.{ambient.token()}")
        try:
            fresh.write_text(ambient.token() + "\n")
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise _cannot_keep(file.parent, error) from error
        try:
            os.link(fresh, file)
        except FileExistsError:
            if not file.read_text().strip():  # left empty by a crash of the machine: nobody ever used it
                os.replace(fresh, file)
        except OSError:
            # No hard links here: of two first starts at once the later rename wins, so both read it back below.
            os.replace(fresh, file)
        finally:
            fresh.unlink(missing_ok=True)
    return file.read_text().strip()


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_keep(directory, error) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(
            f"The worker's state cannot be kept in {directory}: it cannot be written",
            "Set STADO_STATE to a directory that can be written",
        )


def _cannot_keep(directory: Path, error: OSError) -> UsageError:
    return UsageError(
        f"The worker's state cannot be kept in {directory}: {error.strerror}",
        "Set STADO_STATE to a directory that can be written, or make room there",
    )


class WorkerLock:
    """Held by one worker for its life. Closed by exec, so nothing that the worker starts keeps it."""

    def __init__(self, lock: filelock.FileLock) -> None:
        self._lock = lock

    def release(self) -> None:
        self._lock.release()


@dataclass(frozen=True, slots=True)
class WorkerHome:
    """The folder of one worker id: `<state home>/<worker id>/`."""

    state_home: Path
    worker_id: str

    def __post_init__(self) -> None:
        if not WORKER_ID.fullmatch(self.worker_id):
            raise UsageError(
                f"{self.worker_id!r} cannot be a worker id",
                "Use 1 to 63 letters, digits, - and _, beginning with a letter or a digit",
            )

    @property
    def path(self) -> Path:
        return self.state_home / self.worker_id

    @property
    def attempts(self) -> Path:
        return self.path / "attempts"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def holder(self) -> Path:
        return self.path / "holder.json"

    @property
    def nursery_log(self) -> Path:
        return self.path / "nursery.log"

    def make(self) -> None:
        _make(self.attempts)

    def lock_worker_id(self, ambient: Ambient = REAL) -> WorkerLock:
        """Become the one worker of this id on this machine. Raises Conflict, naming who holds it."""
        import filelock  # supervisors ask this module for the host's name alone, and carry what it loads

        self.make()
        lock = filelock.FileLock(self.lock, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise Conflict(
                f"Worker {self.worker_id} already runs on {ambient.host} ({self._holder()})",
                "Stop that worker, or start this one with another --id",
            ) from None
        self._name_holder(ambient)
        return WorkerLock(lock)

    def _name_holder(self, ambient: Ambient) -> None:
        """For people only. On a full disk nobody is named: a worker must start there all the same, because tasks of an
        earlier one may run here, and somebody has to end them."""
        fresh = self.path / f".holder.{ambient.pid}"
        try:
            fresh.write_bytes(orjson.dumps({"pid": ambient.pid, "host": ambient.host, "boot_id": ambient.boot_id}))
            os.replace(fresh, self.holder)
        except OSError:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
                self.holder.unlink(missing_ok=True)  # it names the one before

    def _holder(self) -> str:
        """The holder writes its pid after it took the lock, so for a moment this may name the one before, or nobody."""
        try:
            found = orjson.loads(self.holder.read_bytes())
            return f"pid {int(found['pid'])}, host {found['host']}"
        except FileNotFoundError:
            return "its pid is not written yet"
        except (ValueError, KeyError, TypeError) as error:
            raise BadRecord(f"{self.holder} cannot be read: {error}", "Remove the file") from error
