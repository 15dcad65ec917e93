"""The record of the whole cluster: read by who needs its defaults, edited by its operators.

A process that submits asks for it at most once a minute, and not at all where nothing depends on it, so a job costs no
request more; a worker reads it at each sweep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from stado_like.bucket.bucket import Bucket
from stado_like.bucket.editing import Words, edit
from stado_like.errors import BadRecord, UsageError
from stado_like.job import keys
from stado_like.job.cluster import Cluster, leaves_restarts_open

KEPT_S = 60.0
WORDS = Words(what="the record of the cluster", show="stado config cluster", other_way="set all of it in one command")


def read(bucket: Bucket) -> Cluster:
    """The defaults where nobody set anything. Raises `StoreUnavailable`, `BadRecord`."""
    found = bucket.read(Cluster, keys.CLUSTER)
    standing = found.record if found is not None else Cluster()
    wrong = standing.wrong()
    if wrong:
        told = "; ".join(f"{name} {why}" for name, why in wrong.items())
        raise BadRecord(f"{keys.CLUSTER}: {told}", "`stado config cluster` sets it; `stado storage cat` shows it.")
    return standing


class ClusterRecord:
    """As a client sees it. `ready` is called before anything is written, `who` names the person who writes."""

    def __init__(self, bucket: Bucket, ready: Callable[[], None], who: Callable[[], str]) -> None:
        self._bucket = bucket
        self._ready = ready
        self._who = who
        self._lock = threading.Lock()
        self._known: Cluster | None = None
        self._until_s = 0.0

    def restarts(self, said: Mapping[str, Any], own: int | None, machine: int | None) -> tuple[int | None, int | None]:
        """`max_restarts` and `max_machine_restarts` for a document that may say nothing of them: as this process was
        told (`own`, `machine`), else as the cluster says, None where it says nothing. Raises as `read` does."""
        if (own is not None and machine is not None) or not leaves_restarts_open(said):
            return own, machine
        theirs = self.now()
        return (
            theirs.max_restarts if own is None else own,
            theirs.max_machine_restarts if machine is None else machine,
        )

    def now(self) -> Cluster:
        """The record as it was a minute ago at most. Raises as `read` does."""
        with self._lock:
            now_s = self._bucket.ambient.boot_s()
            if self._known is None or now_s >= self._until_s:
                self._known = read(self._bucket)
                self._until_s = now_s + KEPT_S
            return self._known

    def change(self, said: Mapping[str, int | None]) -> Cluster:
        """The record after some of its values were set; None takes one away. Raises `UsageError` out of bounds, and as
        `editing.edit` does."""

        def changed(standing: Cluster | None, nonce: str, at: float) -> Cluster:
            values: dict[str, Any] = dict(said)
            made = replace(standing or Cluster(), **values, nonce=nonce, by=self._who(), at=at)
            wrong = made.wrong()
            if wrong:
                told = "; ".join(f"{name} {why}" for name, why in wrong.items())
                raise UsageError(told, "`stado config cluster` prints what is set.")
            return made

        self._ready()
        made = edit(self._bucket, keys.CLUSTER, Cluster, changed, WORDS)
        with self._lock:
            self._known = None
        return made
