"""Where an attempt keeps the values of its credentials on this machine, and the masks for whoever carries on its log.

Not obvious because memory would be the right place, and `/dev/shm` is swept: when a person logs out for the last time,
logind removes everything of theirs in it, also what a worker uses that they left running. It spares root and the users
of services (below 1000), so these keep values in `/dev/shm/stado-<uid>`. Everybody else keeps them in the attempt's own
folder, readable by nobody else, and removed with the end of the attempt.

The masks are kept and not fetched again: a credential may have been changed since, and then the old value, which stands
in the log, would go unmasked. Where they are lost, as memory is with a restart of the machine, the log is held back.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from stado_worker.secrets.masking import NO_MASKS, Masks

MEMORY = Path("/dev/shm")
LAST_SERVICE_UID = 999
ON_DISK = "private"
OF = "of"
MASKS = "masks.json"


def make(folder: Path) -> Path:
    """The private place of the attempt in `folder`, mode 0700. Raises OSError."""
    with suppress(OSError):  # no such memory here, or it is full, or another's: then on disk
        return _made_in_memory(folder)
    place = folder / ON_DISK
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    return place


def places(folder: Path) -> list[Path]:
    """Where its private place is, or was."""
    return [in_memory(folder), folder / ON_DISK]


def remove(folder: Path) -> None:
    """Raises OSError. Nothing there is well."""
    for place in places(folder):
        with suppress(FileNotFoundError):
            shutil.rmtree(place)


def memory_root() -> Path:
    return MEMORY / f"stado-{os.geteuid()}"


def in_memory(folder: Path) -> Path:
    return memory_root() / hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]


def owner_in_memory(place: Path) -> Path | None:
    """The attempt's folder whose private place this is; None where that is not said."""
    try:
        return Path(os.fsdecode((place / OF).read_bytes()))
    except OSError:
        return None


def _made_in_memory(folder: Path) -> Path:
    if os.geteuid() > LAST_SERVICE_UID:
        raise PermissionError("the memory of people is swept when they log out")
    root = memory_root()
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    seen = os.lstat(root)
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid() or seen.st_mode & 0o077:
        raise PermissionError(f"{root} is not a directory of ours alone")
    place = in_memory(folder)
    with suppress(FileExistsError):
        place.mkdir(mode=0o700)
    if owner_in_memory(place) != folder:
        write(place / OF, os.fsencode(folder), 0o600)
    return place


def write(path: Path, content: bytes, mode: int) -> None:
    """A new file of that mode, whole; whatever was under the name is gone. Raises OSError."""
    fresh = path.with_name(f".{path.name}.fresh")
    with suppress(FileNotFoundError):
        fresh.unlink()
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(fd, left) :]
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
    os.replace(fresh, path)


def keep_masks(folder: Path, masks: Masks) -> None:
    """Before the command starts. Raises OSError."""
    said = orjson.dumps([b64encode(value).decode() for value in masks.values])
    write(make(folder) / MASKS, said, 0o600)


def masks_of(folder: Path, secret_refs: Sequence[Mapping[str, Any]]) -> Masks | None:
    """What is masked in the log of an attempt whose supervisor is gone. None: it had credentials, and what they were is
    not known here any more."""
    if not secret_refs:
        return NO_MASKS
    for place in places(folder):
        try:
            return Masks.kept([b64decode(value) for value in orjson.loads((place / MASKS).read_bytes())])
        except (OSError, ValueError, TypeError):
            continue  # not here, or hurt
    return None
