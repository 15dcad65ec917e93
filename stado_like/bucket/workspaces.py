"""Workspaces in the bucket: looked at, edited by several people at once, and asked whether a job may be submitted.

How an edit loses nothing of another's is in `editing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.editing import Words
from stado_like.bucket.editing import edit as edit_record
from stado_like.errors import BadRecord, InvalidSpecification
from stado_like.job import keys
from stado_like.job.workspace import Edit, Workspace, needs_record, objections
from stado_like.store.protocol import list_all


class Workspaces:
    """`ready` is called before anything is written, `who` names the person who writes."""

    def __init__(self, bucket: Bucket, ready: Callable[[], None], who: Callable[[], str]) -> None:
        self._bucket = bucket
        self._ready = ready
        self._who = who

    def read(self, name: str) -> Workspace:
        """The defaults where nobody set anything. Raises `StoreUnavailable`, `BadRecord`, `UsageError`."""
        found = self._bucket.read(Workspace, keys.workspace(name))
        return found.record if found else Workspace(name=name)

    def every(self) -> tuple[list[Workspace], dict[str, str]]:
        """Those that were set, by name, and the records that could not be read."""
        found: list[Workspace] = []
        unread: dict[str, str] = {}
        for row in list_all(self._bucket.store, keys.WORKSPACES):
            try:
                seen = self._bucket.read(Workspace, keys.workspace(keys.parse_workspace(row.key)))
            except BadRecord as bad:
                unread[row.key] = bad.message
                continue
            if seen is not None:
                found.append(seen.record)
        return found, unread

    def permit(self, document: Mapping[str, Any]) -> None:
        """Nothing when the job, in its stored form, may be submitted to its workspace.

        Raises `InvalidSpecification` with a sentence per path; what reading the record raises. A job that asks for
        nothing beyond the defaults costs no request.
        """
        if not needs_record(document):
            return
        name = document["metadata"]["workspace"]
        found = objections(document, self.read(name))
        if found:
            raise InvalidSpecification(
                f"workspace {name} does not permit this job",
                f"Correct the fields named; `stado workspace show {name}` prints what it may have.",
                detail=found,
            )

    def edit(self, name: str, edit: Edit) -> Workspace:
        """The workspace as it stands after the edit. Raises `UsageError`, `Conflict` where the store cannot replace or
        others edit all the time, `StoreUnavailable` when no definite answer came.
        """
        key = keys.workspace(name)
        self._ready()

        def change(standing: Workspace | None, nonce: str, at: float) -> Workspace:
            return replace(edit.of(standing or Workspace(name=name)), nonce=nonce, by=self._who(), at=at)

        return edit_record(self._bucket, key, Workspace, change, _words(name))


def _words(name: str) -> Words:
    return Words(
        what=f"workspace {name}",
        show=f"stado workspace show {name}",
        other_way="set all of it in one command; until then the workspace has the defaults",
        smaller="Grant a path above several of its paths, or take paths and pools away.",
    )
