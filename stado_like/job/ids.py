"""What workspaces, jobs and attempts are called, as one dotted text: `default.train.1`, `default.train.1.00003.000002`.

No part of a name may hold a dot, so a dotted id splits in one way only; and every id has exactly one spelling, because
what is done about another spelling would go to the true one, for ever in vain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stado_like.errors import BadRecord, UsageError
from stado_like.job.spec import limits

_JOB = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([1-9][0-9]*)\Z", re.ASCII)
_WORKSPACE = re.compile(rf"(?=.{{1,{limits.NAME_MAX}}}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?\Z")


def bad(key: str, what: str) -> BadRecord:
    return BadRecord(
        f"{key!r} is not {what}", "It is left alone; `stado storage rm` removes what does not belong here."
    )


@dataclass(frozen=True, slots=True, order=True)
class JobId:
    """One incarnation of a job's name in a workspace."""

    workspace: str
    name: str
    k: int

    def __str__(self) -> str:
        return f"{self.workspace}.{self.name}.{self.k}"

    @property
    def folder(self) -> str:
        """`default/train.1`: where its status, logs and outputs live."""
        return f"{self.workspace}/{self.name}.{self.k}"

    @classmethod
    def parse(cls, dotted: str) -> JobId:
        found = _JOB.match(dotted)
        if found is None:
            raise bad(dotted, "the id of a job: <workspace>.<name>.<incarnation>")
        return cls(found[1], found[2], int(found[3]))


@dataclass(frozen=True, slots=True, order=True)
class AttemptId:
    """Attempt `n` (from 1) of rank `rank` (from 0) of a job."""

    job: JobId
    rank: int
    n: int

    def __str__(self) -> str:
        return f"{self.job}.{self.rank:05d}.{self.n:06d}"

    @property
    def next(self) -> AttemptId:
        return AttemptId(self.job, self.rank, self.n + 1)

    @property
    def previous(self) -> AttemptId | None:
        return AttemptId(self.job, self.rank, self.n - 1) if self.n > 1 else None

    @classmethod
    def parse(cls, dotted: str) -> AttemptId:
        parts = dotted.split(".")
        if len(parts) != 5 or not is_number(parts[3], 5) or not is_number(parts[4], 6) or int(parts[4]) == 0:
            raise bad(dotted, "the id of an attempt: <workspace>.<name>.<incarnation>.<rank>.<attempt>")
        return cls(JobId.parse(".".join(parts[:3])), int(parts[3]), int(parts[4]))


def is_number(text: str, width: int = 1) -> bool:
    """A number in its one spelling: at least `width` digits, no further zeros before it."""
    return text.isascii() and text.isdigit() and len(text) >= width and (len(text) == width or text[0] != "0")


def is_workspace(name: str) -> bool:
    return _WORKSPACE.match(name) is not None


def check_workspace(name: str) -> None:
    """Raises `UsageError` for what cannot name a workspace."""
    if not is_workspace(name):
        raise UsageError(
            f"{name[:60]!a} is no name of a workspace",
            f"It has lower-case letters, digits and -, at most {limits.NAME_MAX}, without - at either end.",
        )
