"""Small words with a grammar of their own: GPUs, signals, the jobs to wait for.

Each is read into the piece of the document it stands for, or refused with the forms that are accepted.
"""

from __future__ import annotations

import re
from typing import Any, Final

from stado_like.errors import UsageError
from stado_like.job.spec import limits, units

GPU_FORMS: Final = "4 (the run's total), H100:4 (of GPUs whose model name contains H100)"
SIGNAL_FORMS: Final = "USR1@120 (120 seconds before the time limit), SIGUSR1@2m, USR1 (60 seconds before it)"
AFTER_FORMS: Final = "JOB, JOB:Completed, JOB:Failed, JOB:Ended; also JOB:afterok, JOB:afternotok, JOB:afterany"
AFTER_STATES: Final = {
    "completed": "Completed",
    "afterok": "Completed",
    "failed": "Failed",
    "afternotok": "Failed",
    "ended": "Ended",
    "afterany": "Ended",
}
DEFAULT_SIGNAL_LEAD_S: Final = 60
_GPUS = re.compile(r"(?:([^:]+):)?([0-9]{1,9})")
_GPU_MEMORY = re.compile(r"([0-9]{1,6})[ ]?(?:g|gb|gib)?", re.IGNORECASE)


def gpus(said: int | str) -> tuple[int, str]:
    """(how many, of which model or empty) of `4` or `H100:4`."""
    if isinstance(said, bool) or not isinstance(said, (int, str)):
        raise UsageError(f"{said!r:.60} is not a number of GPUs", f"Accepted forms: {GPU_FORMS}.")
    if isinstance(said, int):
        return said, ""
    match = _GPUS.fullmatch(said.strip())
    if match is None:
        raise UsageError(f"{said[:60]!a} is not a number of GPUs", f"Accepted forms: {GPU_FORMS}.")
    return int(match[2]), (match[1] or "").strip()


def gpu_memory_gb(said: int | str) -> int:
    """Whole GB of `80`, `80GB`. One unit for all of them: a card sold as 80 GB reports 79.6, and half is slack."""
    match = _GPU_MEMORY.fullmatch(str(said).strip()) if not isinstance(said, bool) else None
    if match is None:
        raise UsageError(f"{said!r:.60} is not the memory of a GPU", "Accepted forms: 80, 80GB (whole GB of each GPU).")
    return int(match[1])


def signal_name(said: str) -> str:
    """`usr1` and `USR1` are `SIGUSR1`. Which signals there are is the specification's to say."""
    name = said.strip().upper()
    return f"SIG{name}" if f"SIG{name}" in limits.STOP_SIGNALS else name


def signal_before_limit(said: str) -> dict[str, Any]:
    """`USR1@120`, as Slurm writes it; a `B:` before it is passed over: the signal goes to the main process anyway."""
    name, at, lead = said.strip().removeprefix("B:").partition("@")
    if not name or (at and not lead):
        raise UsageError(f"{said[:60]!a} is not a signal and its lead", f"Accepted forms: {SIGNAL_FORMS}.")
    return {"signal": signal_name(name), "seconds": units.duration_s(lead) if at else DEFAULT_SIGNAL_LEAD_S}


def awaited(said: str) -> dict[str, str]:
    """`train`, `train:Failed`, `afternotok:train` -> `{job, state}`."""
    job, colon, state = said.strip().partition(":")
    if colon and job.lower() in AFTER_STATES and job.lower().startswith("after"):
        job, state = state, job  # as Slurm writes it
    if not job or ":" in job or (colon and state.lower() not in AFTER_STATES):
        raise UsageError(f"{said[:120]!a} does not say which job to wait for", f"Accepted forms: {AFTER_FORMS}.")
    return {"job": job, "state": AFTER_STATES[state.lower()] if colon else "Completed"}
