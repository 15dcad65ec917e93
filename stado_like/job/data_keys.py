"""The keys of what an attempt leaves: logs, outputs, checkpoints. `keys` has all others, and these as well.

Always under the attempt, never under the task: an attempt that was thought dead and still writes has its own.
"""

from __future__ import annotations

import re

from stado_like.job.ids import AttemptId, JobId, bad, is_number

_COLLECTED = re.compile(r"[0-9]{6}[A-Za-z0-9_.-]{0,80}\Z", re.ASCII)


def logs_of(a: AttemptId) -> str:
    return f"logs/{a.job.folder}/{a.rank:05d}/{a.n:06d}/"


def log_chunk(a: AttemptId, offset: int) -> str:
    """`<seq>` is the byte offset in 12 digits: an upload is idempotent, and whoever carries on lists and goes on."""
    return f"{logs_of(a)}{offset:012d}.log"


def parse_log_chunk(key: str) -> int:
    name = key.rsplit("/", 1)[-1].removesuffix(".log")
    if not is_number(name, 12):
        raise bad(key, "a piece of a log")
    return int(name)


def data_of(j: JobId) -> tuple[str, ...]:
    """Prefixes of everything a job left besides its status."""
    return tuple(f"{room}/{j.folder}/" for room in ("logs", "outputs", "checkpoints", "gangs"))


def checkpoints_of(a: AttemptId) -> str:
    return f"checkpoints/{a.job.folder}/{a.rank:05d}/{a.n:06d}/"


def outputs_of(a: AttemptId) -> str:
    return f"outputs/{a.job.folder}/{a.rank:05d}/{a.n:06d}/"


def collected(a: AttemptId) -> str:
    """What an attempt's collected files are; it exists once all of them do."""
    return f"{outputs_of(a)}manifest.json"


def collected_file(a: AttemptId, name: str) -> str:
    """`name` begins with a digit, so it is never the manifest. Raises `BadRecord` for what is no flat name."""
    if _COLLECTED.match(name) is None:
        raise bad(name, "the name of a collected file")
    return f"{outputs_of(a)}{name}"
