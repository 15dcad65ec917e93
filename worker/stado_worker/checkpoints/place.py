"""Where a task's checkpoint directory lies on its machine: always a directory of one attempt alone.

Not obvious because a path in a specification is the same for every task of a job, for every job that copied it, and for
an attempt that was thought dead and still writes. Two of them in one directory would upload each other's files as their
own. So:

    a relative dir    in the working directory where that is the attempt's own: an empty one, or a bundle's; else (a
                      folder of a person, which tasks share) in the attempt's folder
    an absolute dir   below it, in a folder named after the attempt

The program is told the result in STADO_CHECKPOINT_DIR.
"""

from __future__ import annotations

import os
from pathlib import Path

from stado_like.job.terms import Terms
from stado_worker.shim.preparing import CouldNotPrepare

OWN = "checkpoint"
"""The folder below an attempt's own, for relative directories whose working directory is shared."""


def directory_of(terms: Terms, wanted: str, folder: Path, cwd: str) -> Path:
    """`folder`: the attempt's own, named after it; `cwd`: the working directory of its command."""
    if wanted.startswith("/"):
        return Path(wanted) / folder.name
    inner = Path(os.path.normpath(cwd))
    return (inner if inner.is_relative_to(folder) else folder / OWN) / os.path.normpath(wanted)


def make(path: Path, wanted: str, folder: Path) -> None:
    """Make the directory, and everything above it. Raises `CouldNotPrepare` for a place that the specification names
    and this machine refuses, and OSError for trouble of the machine's own (a full disk)."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        real = path.resolve(strict=True)
    except (PermissionError, NotADirectoryError, FileExistsError, IsADirectoryError) as refused:
        raise CouldNotPrepare(f"checkpoint.dir {wanted} cannot be made here: {path}: {refused.strerror}") from refused
    if path.is_relative_to(folder) and not real.is_relative_to(folder.resolve()):
        raise CouldNotPrepare(f"checkpoint.dir {wanted} leads out of the attempt's folder, to {real}")
    if path.is_symlink():
        raise CouldNotPrepare(f"checkpoint.dir {wanted} is a link, to {real}: name the directory itself")
