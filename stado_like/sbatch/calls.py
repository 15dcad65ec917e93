"""The lines of a script that call what is not here: srun, mpirun's knowledge of the allocation, Slurm's own commands.

A look at words where a command may stand, not a shell's parser: `echo srun` is none, `time srun`, `if ! srun`,
`X=1 srun` and `$(srun …)` are. What stands in a here-document or comes out of a variable is not told apart. Every
repetition has a bound, so that a line of 120 KiB (data pasted into a script) takes no time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LAUNCHERS: Final = ("srun",)
MPI: Final = ("mpirun", "mpiexec", "orterun")
OTHERS: Final = (
    *("sbatch", "salloc", "sbcast", "sattach", "scancel", "scontrol", "squeue", "sinfo", "sacct", "sstat", "sgather"),
)

_BEFORE: Final = (
    r"(?:^|[;&|({`]|\$\(|\b(?:if|then|else|elif|do|while|until|time|exec|nohup|command|env)\s|!\s)"
    r"\s*(?:[A-Za-z_][A-Za-z0-9_]{0,99}=[^\s;&|]{0,500}\s+){0,9}(?:[^\s;&|(){}`]{0,500}/)?"
)
_CALL = re.compile(rf"{_BEFORE}({'|'.join((*LAUNCHERS, *MPI, *OTHERS))})(?=[\s;&|)`]|$)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True, slots=True)
class Call:
    line: int
    command: str


def calls(text: str) -> list[Call]:
    """Every line that calls one of the commands, once per command and line."""
    found: list[Call] = []
    for number, line in enumerate(text.split("\n"), 1):
        for name in dict.fromkeys(match[1] for match in _CALL.finditer(_COMMENT.sub("", line))):
            found.append(Call(number, name))
    return found
