"""Workspaces in the bucket: looked at, edited by several people at once, and asked whether a job may be submitted.

An edit reads the record and replaces it by its etag; whoever was overtaken repeats the edit on the newer state, so
nothing of either is lost. A store that cannot replace lets a record be created once and refuses to edit it: a plain put
would silently undo what another just set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, Conflict, InvalidSpecification, Refused, StoreUnavailable
from stado_like.job import codec, keys
from stado_like.job.records import MOST_BYTES
from stado_like.job.workspace import Edit, Workspace, needs_record, objections
from stado_like.store.conditional import BACKOFF_FIRST_S, BACKOFF_MOST_S, Won
from stado_like.store.protocol import Applied, Unknown, list_all

TRIES = 40


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
        bucket = self._bucket
        nonce, at = bucket.token(), bucket.now()
        wait_s, why = BACKOFF_FIRST_S, ""
        for _ in range(TRIES):
            found = bucket.read(Workspace, key)
            if found is not None and found.record.nonce == nonce:
                return found.record  # it stands; only the answer was lost
            standing = found.record if found else Workspace(name=name)
            wanted = replace(edit.of(standing), nonce=nonce, by=self._who(), at=at)
            body = _small(codec.encode(wanted), name)
            if found is None:
                if isinstance(bucket.decide_bytes(key, body), Won):
                    return wanted
                continue
            if not bucket.store.can_replace:
                raise _cannot_edit(name, key)
            answer = bucket.store.replace(key, body, found.etag)
            if isinstance(answer, Applied):
                return wanted
            why = answer.why if isinstance(answer, Unknown) else ""
            asked_s = answer.retry_after_s if isinstance(answer, Unknown) else 0.0
            bucket.ambient.sleep(max(asked_s, bucket.ambient.uniform(0.0, wait_s)))
            wait_s = min(wait_s * 2, BACKOFF_MOST_S)
        if why:
            raise StoreUnavailable(
                f"no definite answer to the edit of workspace {name}, asked {TRIES} times; last: {why}",
                f"`stado workspace show {name}` tells whether it stands; the same command can be repeated safely.",
            )
        raise Conflict(
            f"workspace {name} was edited by others {TRIES} times in between", "Repeat the command when they are done."
        )


def _small(body: bytes, name: str) -> bytes:
    if len(body) > MOST_BYTES:
        raise Refused(
            f"workspace {name} would have a record of {len(body)} bytes; {MOST_BYTES} is the most",
            "Grant a path above several of its paths, or take paths and pools away.",
        )
    return body


def _cannot_edit(name: str, key: str) -> Conflict:
    return Conflict(
        f"workspace {name} was set already, and this store cannot replace an object only if it is unchanged",
        f"Note what `stado workspace show {name}` prints, remove it with `stado storage rm {key}`, and set all of it "
        "in one command; until then the workspace has the defaults.",
        code="STORE_CANNOT_EDIT",
    )
