"""A job queue and scheduler without a server: its whole state is objects in a bucket. This is the library.

    errors.py     the error tree; every error has a code, a message, a next step
    config.py     frozen settings: flag > STADO_* > file > default
    ambient.py    the only door to clock, randomness, pid, host name
    asking/       how a person asks for a job: every word of an option or a keyword, read once
    job/          PURE: what a job is: specification, states, budgets, records, keys
    planning/     PURE: what should happen next, and whether a task fits a machine
    store/        bytes under keys: memory, directory, S3; knows nothing of jobs
    bucket/       the only code that changes a job, one file per transition
    fsck/         every promise that a bucket at rest can be asked for; mends through bucket/
    reading/      what people and programs are shown: names, views, lists, logs; writes nothing

    reading ──▶ bucket ──▶ planning, store ──▶ job ──▶ errors

The worker (`stado_worker`), the coordinator (`stado_coordinator`) and the command line (`stado_cli`) rest on it.
The names below are imported when they are first used, so that `import stado_like` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stado_like.client import Client
    from stado_like.errors import StadoError
    from stado_like.handle import Job
    from stado_like.jobspec import JobSpec
    from stado_like.store.url import open_store

__all__ = ["Client", "Job", "JobSpec", "StadoError", "open_store"]

_HOMES = {
    "Client": "stado_like.client",
    "Job": "stado_like.handle",
    "JobSpec": "stado_like.jobspec",
    "StadoError": "stado_like.errors",
    "open_store": "stado_like.store.url",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'stado_like' has no attribute {name!r}")
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
