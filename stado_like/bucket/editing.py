"""Editing a record that several people may edit at once: read, change, replace by its etag, and again on the newer
state for whoever was overtaken, so that nothing of either is lost.

A store that cannot replace lets a record be created once and refuses to edit it: a plain put would silently undo what
another just set. A replace whose answer was lost is recognised by its own nonce, as a create is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from stado_like.bucket.bucket import Bucket
from stado_like.errors import Conflict, Refused, StoreUnavailable
from stado_like.job import codec
from stado_like.job.records import MOST_BYTES
from stado_like.store.conditional import BACKOFF_FIRST_S, BACKOFF_MOST_S, Won
from stado_like.store.protocol import Applied, Unknown

TRIES = 40


class Nonced(Protocol):
    @property
    def nonce(self) -> str: ...


N = TypeVar("N", bound=Nonced)


@dataclass(frozen=True, slots=True)
class Words:
    """What is said when an edit fails. `what`: "workspace team"; `show`: the command that prints it; `other_way`: how
    to set it on a store that cannot replace; `smaller`: how its record becomes smaller."""

    what: str
    show: str
    other_way: str
    smaller: str = "Say less in it."


def edit(bucket: Bucket, key: str, kind: type[N], change: Callable[[N | None, str, float], N], words: Words) -> N:
    """The record as it stands after the change. `change` makes it of what stands (None: nothing does), the nonce that
    it must carry, and the time.

    Raises `Conflict` where the store cannot replace or others edit all the time, `Refused` where the record would be
    too large, `StoreUnavailable` when no definite answer came, `BadRecord`.
    """
    nonce, at = bucket.token(), bucket.now()
    wait_s, why = BACKOFF_FIRST_S, ""
    for _ in range(TRIES):
        found = bucket.read(kind, key)
        if found is not None and found.record.nonce == nonce:
            return found.record  # it stands; only the answer was lost
        wanted = change(found.record if found else None, nonce, at)
        body = _small(codec.encode(wanted), words)
        if found is None:
            if isinstance(bucket.decide_bytes(key, body), Won):
                return wanted
            continue
        if not bucket.store.can_replace:
            raise Conflict(
                f"{words.what} was set already, and this store cannot replace an object only if it is unchanged",
                f"Note what `{words.show}` prints, remove it with `stado storage rm {key}`, and {words.other_way}.",
                code="STORE_CANNOT_EDIT",
            )
        answer = bucket.store.replace(key, body, found.etag)
        if isinstance(answer, Applied):
            return wanted
        why = answer.why if isinstance(answer, Unknown) else ""
        asked_s = answer.retry_after_s if isinstance(answer, Unknown) else 0.0
        bucket.ambient.sleep(max(asked_s, bucket.ambient.uniform(0.0, wait_s)))
        wait_s = min(wait_s * 2, BACKOFF_MOST_S)
    if why:
        raise StoreUnavailable(
            f"no definite answer to the edit of {words.what}, asked {TRIES} times; last: {why}",
            f"`{words.show}` tells whether it stands; the same command can be repeated safely.",
        )
    raise Conflict(
        f"{words.what} was edited by others {TRIES} times in between", "Repeat the command when they are done."
    )


def _small(body: bytes, words: Words) -> bytes:
    if len(body) > MOST_BYTES:
        raise Refused(f"{words.what} would have a record of {len(body)} bytes; {MOST_BYTES} is the most", words.smaller)
    return body
