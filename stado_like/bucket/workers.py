"""What a person wants of a machine: nothing new (cordon), and that what it holds goes elsewhere (drain).

The record is all there is to it: `workers/<worker>.json` stands until somebody edits it again. The machine reads it
when the bell names it and at every sweep, before it claims anything after a start, and says in its broadcast which one
it obeys. A drain needs no order per task: a task that was claimed in the moment between is held too, and goes; a drain
that is taken back before it was heard moves nothing. What a machine that is away holds is judged as ever (its tasks may
be running well), and its record meets it when it comes back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stado_like.bucket import doorbell
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.editing import Words, edit
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.wanted import Wanted
from stado_like.store.protocol import list_all


def read(bucket: Bucket, worker: str) -> Wanted:
    """The defaults where nobody set anything. Raises `StoreUnavailable`, `BadRecord`."""
    found = bucket.read(Wanted, keys.wanted(worker))
    return found.record if found is not None else Wanted()


def every(bucket: Bucket) -> tuple[dict[str, Wanted], dict[str, str]]:
    """What is wanted of which worker, and the records that could not be read. Raises `StoreUnavailable`."""
    found: dict[str, Wanted] = {}
    unread: dict[str, str] = {}
    for row in list_all(bucket.store, keys.WANTED):
        try:
            worker = keys.parse_wanted(row.key)
            found[worker] = read(bucket, worker)
        except BadRecord as bad:
            unread[row.key] = bad.message
    return found, unread


def cordon(bucket: Bucket, worker: str, *, reason: str = "", by: str = "") -> Wanted:
    """It takes nothing new, from the moment it hears of it; what runs there goes on. Raises as `editing.edit` does."""
    return _edit(
        bucket, worker, lambda standing: replace(standing, cordoned=True, reason=reason or standing.reason), by
    )


def drain(bucket: Bucket, worker: str, *, reason: str = "", by: str = "") -> Wanted:
    """The same, and what it holds is stopped with grace and queued again; it counts as no restart."""
    return _edit(
        bucket,
        worker,
        lambda standing: replace(standing, cordoned=True, drain=True, reason=reason or standing.reason),
        by,
    )


def uncordon(bucket: Bucket, worker: str, *, by: str = "") -> Wanted:
    """It works again; one that had closed itself tries again."""
    return _edit(bucket, worker, lambda standing: replace(standing, cordoned=False, drain=False, reason=""), by)


def _edit(bucket: Bucket, worker: str, change: Callable[[Wanted], Wanted], by: str) -> Wanted:
    def changed(standing: Wanted | None, nonce: str, at: float) -> Wanted:
        return replace(change(standing or Wanted()), nonce=nonce, by=by, at=at)

    words = Words(
        what=f"the record of worker {worker}",
        show=f"stado worker show {worker}",
        other_way="repeat this command",
        smaller="Give a shorter reason.",
    )
    made = edit(bucket, keys.wanted(worker), Wanted, changed, words)
    doorbell.ring(bucket, ("drain", worker))
    return made
