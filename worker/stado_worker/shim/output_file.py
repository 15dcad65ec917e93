"""A copy of a task's log in a file of its own, as sbatch's `--output` writes one (`task_template.output_file`).

While the task runs the file is a symbolic link to the attempt's log, so `tail -f` follows it and nothing is written
twice; at the end the link becomes a real file, in one rename, because the log goes when the attempt's folder does.

The file is a service, never a condition: whatever is wrong with it (its directory is missing, it is a directory, the
disk is full) is a note for people, and the task goes on. Slurm fails a job whose output cannot be opened.

Whose file is it? A link into an attempt's folder is ours; any other link is a person's and is followed, as opening it
would. At the end only the link to this very log is replaced: where a later attempt or another task has put its own, or
the script has moved the file away, nothing is done.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

MOST_BYTES = 1 << 30
PIECE_BYTES = 1 << 20
NO_INDEX = "4294967294"
"""What Slurm writes for `%a` in a job that is no array."""
_WIDEST = 10
_MARK = re.compile(r"%([0-9]*)([A-Za-z%])")
_NUMBERS = frozenset("AabJjnt")


def values_of(slurm: Mapping[str, str], user: str) -> dict[str, str]:
    """What each letter stands for. `slurm`: the variables of `told_slurm`, whether or not the task is told them."""
    job_id = slurm["SLURM_JOB_ID"]
    index = slurm.get("SLURM_ARRAY_TASK_ID", NO_INDEX)
    return {
        "%": "%",
        "A": slurm.get("SLURM_ARRAY_JOB_ID", job_id),
        "a": index,
        "b": str(int(index) % 10),
        "J": job_id,
        "j": job_id,
        "N": slurm["SLURMD_NODENAME"].split(".", 1)[0],
        "n": slurm["SLURM_NODEID"],
        "s": "batch",
        "t": slurm["SLURM_PROCID"],
        "u": user,
        "x": slurm["SLURM_JOB_NAME"].replace("/", "_"),
    }


def expand(pattern: str, values: Mapping[str, str]) -> str:
    """`%x-%5a.out` -> `train-00003.out`. A letter that means nothing stays; a backslash anywhere switches all of it off
    and goes, as in Slurm.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def value(mark: re.Match[str]) -> str:
        width, letter = mark[1], mark[2]
        if letter == "%":
            return f"{width}%"
        if letter not in values:
            return mark[0]
        found = values[letter]
        return found.zfill(min(int(width), _WIDEST)) if width and letter in _NUMBERS else found

    return _MARK.sub(value, pattern)


def is_written_by(pattern: str, rank: int, together: int) -> bool:
    """Whether this member of a gang of `together` writes the file: rank 0 alone, unless the name tells them apart."""
    return rank == 0 or together <= 1 or re.search(r"%[0-9]*[tnN]", pattern.replace("%%", "")) is not None


def begin(path: Path, log: Path) -> str:
    """Make `path` a link to `log`; what is there as a file goes, as sbatch truncates it. Returns a note, or nothing."""
    try:
        real = _real(path)
        if note := _in_the_way(path, real):
            return note
        fresh = real.with_name(f".stado-{os.getpid()}")
        _remove(fresh)
        os.symlink(log, fresh)
        try:
            os.replace(fresh, real)
        except OSError:
            _remove(fresh)
            raise
    except OSError as error:
        return f"No output file at {path}: {error.strerror or error}; the output is in the job's log"
    return ""


def finish(path: Path, log: Path, most_bytes: int = MOST_BYTES) -> str:
    """Replace the link to `log` by a copy; of a log above `most_bytes` the end. Returns a note, or nothing.

    Takes as long as the bytes take to copy: not for a thread that must answer.
    """
    try:
        real = _real(path)
        if not os.path.islink(real) or os.readlink(real) != str(log):
            return f"{path} is not this attempt's any more; its output is in the job's log"
        fresh = real.with_name(f".stado-{os.getpid()}")
        _remove(fresh)
        try:
            left_out = _copy(log, fresh, most_bytes)
            os.replace(fresh, real)
        except OSError:
            _remove(fresh)
            raise
    except OSError as error:
        return f"No copy of the output at {path}: {error.strerror or error}; it is in the job's log"
    if left_out:
        return f"{path} holds the last {most_bytes} bytes of the output; {left_out} before them are in the job's log"
    return ""


def _real(path: Path) -> Path:
    """Where the file is: a person's own links are followed, a link into an attempt's folder is the file itself."""
    for _ in range(40):
        if not path.is_symlink() or _is_ours(path):
            return path
        path = path.parent / os.readlink(path)
    raise OSError(40, os.strerror(40))


def _is_ours(link: Path) -> bool:
    target = Path(os.readlink(link))
    return target.name == "log" and target.parent.parent.name == "attempts"


def _in_the_way(path: Path, real: Path) -> str:
    if not real.parent.is_dir():
        return f"No output file at {path}: the directory {real.parent} does not exist; the output is in the job's log"
    try:
        mode = os.lstat(real).st_mode
    except FileNotFoundError:
        return ""
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return ""
    kind = "a directory" if stat.S_ISDIR(mode) else "no regular file"
    return f"No output file at {path}: it is {kind}; the output is in the job's log"


def _copy(log: Path, fresh: Path, most_bytes: int) -> int:
    """Returns how many bytes were left out at the beginning."""
    with open(log, "rb") as source, open(fresh, "xb") as target:
        size = os.fstat(source.fileno()).st_size
        left_out = max(0, size - most_bytes)
        source.seek(left_out)
        left = size - left_out
        while left and (piece := source.read(min(PIECE_BYTES, left))):
            target.write(piece)
            left -= len(piece)
    return left_out


def _remove(path: Path) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # nothing was there
