"""`--torchrun`: the line that starts PyTorch's launcher, so that nobody writes it with `$` signs of their own.

On one machine the line is plain words. On several, each task learns its rank and where the leader is only when it is
placed, so a shell of the task reads them; the words of the program are handed to that shell as arguments and are
never part of its text, so no quote and no `$` in them is read twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stado_like.errors import UsageError

SEVERAL: Final = (
    'n="${STADO_GPU_COUNT:-0}"; [ "$n" -gt 0 ] || n=1; '
    'exec torchrun --nnodes="$WORLD_SIZE" --node-rank="$RANK" --nproc-per-node="$n" '
    '--master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" "$@"'
)
_PYTHONS = ("python", "python3")


def torchrun(words: Sequence[str], *, gpus: int, several: bool) -> list[str]:
    """The command line that starts `words` (a Python file, or `-m module`, and its arguments) under torchrun.

    `gpus`: processes on a single machine; 0 is one process. `several`: tasks of a gang, each with its own share.
    """
    if not words:
        raise UsageError("--torchrun was given no program", "Put it last: `--torchrun -- train.py --epochs 9`.")
    if words[0] == "torchrun":
        raise UsageError(
            "--torchrun writes the torchrun line itself, and the command begins with torchrun too",
            "Leave one of them out: `--torchrun -- train.py`.",
        )
    program = list(words)
    if words[0] in _PYTHONS:
        program = program[2:] if program[1:2] == ["-u"] else program[1:]  # torchrun's own Python is unbuffered anyway
        if program and program[0].startswith("-") and program[0] != "-m":
            raise UsageError(
                f"--torchrun starts Python itself and cannot give it {program[0]}",
                "Leave the option out, or set a variable: PYTHON… with --env.",
            )
    if not program:
        raise UsageError(f"--torchrun was given {words[0]} and no program", "Name it: `--torchrun -- train.py`.")
    if several:
        return ["bash", "-c", SEVERAL, "torchrun", *program]
    return ["torchrun", "--standalone", f"--nproc-per-node={max(1, gpus)}", *program]
