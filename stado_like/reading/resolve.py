"""A person's words -> one incarnation of one job.

    train   train.2   ws/train   ws/train.2   ws.train.2   and what a log shows: ws.train.2.00003.000001

Not obvious because a name may be used again after a delete, so `train` means its newest living incarnation. One
listing of the name's own prefix finds it. A listing is a hint: before "there is no such job" is said, the name's
first incarnation is asked for by its key. Everything after this works under the one incarnation found here, so a
command never begins on one job and ends on its successor.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, NotFound, UsageError
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.reading.shapes import iso
from stado_like.store.protocol import list_all

_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
NAMES_LOOKED_AT = 5_000
FORMS = "NAME, NAME.INCARNATION, WORKSPACE/NAME, WORKSPACE/NAME.INCARNATION, WORKSPACE.NAME.INCARNATION"


@dataclass(frozen=True, slots=True)
class Meant:
    """What the words say. `k` 0: the newest incarnation."""

    workspace: str
    name: str
    k: int = 0

    def __str__(self) -> str:
        return f"{self.workspace}/{self.name}" + (f".{self.k}" if self.k else "")


def parse(words: str, workspace: str) -> Meant:
    """Read the words; `workspace` is where a bare name lies. Raises `UsageError`."""
    space, slash, rest = words.partition("/")
    if not slash:
        space, rest = "", words
    parts = rest.split(".")
    if not space and len(parts) == 5 and parts[3].isdigit() and parts[4].isdigit():
        parts = parts[:3]
    if not space and len(parts) == 3:
        space, parts = parts[0], parts[1:]
    if len(parts) == 1:
        parts = [parts[0], ""]
    if len(parts) != 2 or (parts[1] and not _is_number(parts[1])) or (slash and not space):
        raise _not_a_job(words)
    found = Meant(space or workspace, parts[0], int(parts[1] or 0))
    if not _NAME.match(found.name) or not _NAME.match(found.workspace):
        raise _not_a_job(words)
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0


def _not_a_job(words: str) -> UsageError:
    return UsageError(f"{words[:120]!a} does not name a job", f"Accepted forms: {FORMS}.")


def resolve(bucket: Bucket, words: str, workspace: str) -> JobId:
    """The incarnation that the words mean. Raises `UsageError`, `NotFound` with the nearest names, `StoreUnavailable`.

    A name with an incarnation is taken at its word: whoever reads the job finds out whether it lives.
    """
    meant = parse(words, workspace)
    if meant.k:
        return JobId(meant.workspace, meant.name, meant.k)
    newest = newest_incarnation(bucket, meant.workspace, meant.name)
    if newest is None:
        raise no_such_job(bucket, meant)
    return newest


def newest_incarnation(bucket: Bucket, workspace: str, name: str) -> JobId | None:
    """One LIST; a HEAD more before None."""
    listed = _jobs_in(bucket, keys.jobs_of_name(workspace, name))
    found = [j for j in listed if (j.workspace, j.name) == (workspace, name)]
    if found:
        return max(found)
    first = JobId(workspace, name, 1)
    return first if any(bucket.present(keys.job(first))) else None


def _jobs_in(bucket: Bucket, prefix: str) -> list[JobId]:
    found = []
    for at, row in enumerate(list_all(bucket.store, prefix)):
        if at >= NAMES_LOOKED_AT:
            break
        try:
            found.append(keys.parse_job(row.key))
        except BadRecord:
            continue  # a stray object under jobs/ is no job; `storage ls` shows it
    return found


def no_such_job(bucket: Bucket, meant: Meant) -> NotFound:
    """The error for a job that is not there: whether it was deleted, where its name lives, what is spelt nearly so."""
    url = bucket.store.url
    buried = _buried(bucket, meant)
    if buried:
        return NotFound(
            f"the job {meant} was deleted ({', '.join(map(str, buried))}){_epitaph(bucket, max(buried))}",
            "`stado job list --deleted` shows what was deleted.",
        )
    named = sorted({j.name for j in _jobs_in(bucket, keys.jobs_of(meant.workspace))})
    near = get_close_matches(meant.name, named, n=3, cutoff=0.5)
    if meant.name in named:
        return NotFound(
            f"there is no incarnation {meant.k} of the job {meant.workspace}/{meant.name} in {url}",
            f"`stado job show {meant.name}` shows its newest one.",
        )
    if near:
        return NotFound(f"there is no job {meant} in {url}", f"Nearest names: {', '.join(near)}.")
    elsewhere = sorted({j.workspace for j in _jobs_in(bucket, keys.JOBS) if j.name == meant.name})[:3]
    if elsewhere:
        shown = ", ".join(f"{space}/{meant.name}" for space in elsewhere)
        return NotFound(f"there is no job {meant} in {url}", f"The name is used in another workspace: {shown}.")
    return NotFound(f"there is no job {meant} in {url}", "`stado job list --all` shows every job.")


def _buried(bucket: Bucket, meant: Meant) -> list[JobId]:
    found = []
    for row in list_all(bucket.store, f"{keys.DELETED}{meant.workspace}.{meant.name}."):
        try:
            j = keys.parse_tombstone(row.key)
        except BadRecord:
            continue  # not a tombstone, so nothing was buried under it
        if (j.workspace, j.name) == (meant.workspace, meant.name) and meant.k in (0, j.k):
            found.append(j)
    return found


def _epitaph(bucket: Bucket, j: JobId) -> str:
    """`: it had ended Completed; deleted at … by ann`, as far as its tombstone tells."""
    try:
        stone = bucket.tombstone(j)
    except BadRecord:
        return ""
    if stone is None:
        return ""
    ended = f": it had ended {stone.state}" if stone.state else ""
    when = f"deleted at {iso(stone.at)}" if stone.at else ""
    by = f" by {stone.by}" if when and stone.by else ""
    return f"{ended}{'; ' if ended and when else ': ' if when else ''}{when}{by}"
