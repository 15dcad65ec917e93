"""The environment of a task's process.

Not obvious because inheriting is the easy way and the wrong one: a worker's environment holds its store credentials,
its Python paths and whatever the person who started it had set, and a task would work here and fail on the next
machine. So only a short list is passed on; then comes what the job asks for; then what we tell it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

FROM_WORKER = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"})
FROM_WORKER_PREFIX = "LC_"
OVERRIDABLE = frozenset(
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"}
)
"""Told by us, but the job's own word wins: launchers such as torchrun set them again for their children."""

OURS, OURS_TOO = "STADO_", "ASTRAEUS_"
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def inherited(worker_env: Mapping[str, str]) -> dict[str, str]:
    """The short list of what a task has from its worker."""
    return {
        name: value for name, value in worker_env.items() if name in FROM_WORKER or name.startswith(FROM_WORKER_PREFIX)
    }


def build(worker_env: Mapping[str, str], job_env: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """The whole environment. `told` is what the task is told (STADO_*, RANK, ...); each STADO_X is also set as
    ASTRAEUS_X.

    STADO_* and ASTRAEUS_* from `job_env` are dropped (they are refused at submit): the worker finds the processes of
    an attempt by them.
    """
    env = inherited(worker_env)
    env.setdefault("PATH", DEFAULT_PATH)
    env |= {name: value for name, value in job_env.items() if not name.startswith((OURS, OURS_TOO))}
    for name, value in told.items():
        if name in OVERRIDABLE and name in job_env:
            continue
        env[name] = value
        if name.startswith(OURS):
            env[OURS_TOO + name[len(OURS) :]] = value
    return env
