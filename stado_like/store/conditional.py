"""How a create is settled when its answer was refused or lost.

A conditional write is sent once. Every record that decides something carries a random nonce, so equal bytes mean
"mine": after any refusal or lost answer the object is read back and compared. Own bytes: won. Other bytes: lost.
Absent after a refusal or a lost answer (409, 500, a reset, a deletion in between): still open, so try again, with
full-jitter back-off, inside a bounded budget; then `StoreUnavailable`, never a wrong answer.

An SDK that retries by itself breaks this: its second try is refused by its own first write, and the caller is told
that it lost what it won.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.ambient import REAL, Ambient
from stado_like.errors import StoreUnavailable
from stado_like.store.protocol import Applied, Object, ObjectStore, Unknown

BACKOFF_FIRST_S = 0.05
BACKOFF_MOST_S = 2.0


@dataclass(frozen=True, slots=True)
class Won:
    """This body stands under the key. `now` is the store's time in the last answer."""

    etag: str
    now: float


@dataclass(frozen=True, slots=True)
class Lost:
    """Somebody else's body stands there; here it is."""

    found: Object


def create_once(
    store: ObjectStore, key: str, body: bytes, *, budget_s: float = 8.0, ambient: Ambient = REAL
) -> Won | Lost:
    """Create `key` with `body` and find out for certain who won.

    Raises `StoreUnavailable` when `budget_s` seconds passed without a definite answer: the write may still stand or
    arrive. Call again with the *same* bytes to go on asking (a replay after a restart reuses the stored nonce and
    body).
    """
    deadline = ambient.boot_s() + budget_s
    wait_s = BACKOFF_FIRST_S
    why = ""
    while True:
        answer = store.create(key, body)
        if isinstance(answer, Applied):
            return Won(answer.etag, answer.now)
        asked_s = 0.0
        if isinstance(answer, Unknown):
            why, asked_s = answer.why, answer.retry_after_s
        else:
            why = "refused, and absent when read back"
        settled, seen = _read_back(store, key, body)  # guard: nonce read-back
        if settled is not None:
            return settled
        why = seen or why
        pause_s = max(asked_s, ambient.uniform(0.0, wait_s))
        if ambient.boot_s() + pause_s >= deadline:
            raise StoreUnavailable(
                f"no definite answer to the creation of {key} within {budget_s:g} s; last: {why}",
                "The write may or may not stand; the same command can be repeated safely once the store answers.",
            )
        ambient.sleep(pause_s)
        wait_s = min(wait_s * 2, BACKOFF_MOST_S)


def _read_back(store: ObjectStore, key: str, body: bytes) -> tuple[Won | Lost | None, str]:
    try:
        found = store.get(key)
    except StoreUnavailable as unavailable:
        return None, unavailable.message
    if found is None:
        return None, ""
    if found.body == body:
        return Won(found.etag, found.now), ""
    return Lost(found), ""


def ensure(store: ObjectStore, key: str, body: bytes, *, budget_s: float = 8.0, ambient: Ambient = REAL) -> bool:
    """Make sure that `key` exists, for bodies of which every writer writes the same (index entries). True: it was
    not there.

    Raises `StoreUnavailable`.
    """
    deadline = ambient.boot_s() + budget_s
    wait_s = BACKOFF_FIRST_S
    while True:
        answer = store.create(key, body)
        if not isinstance(answer, Unknown):
            return isinstance(answer, Applied)
        wait_s = _pause(wait_s, answer.retry_after_s, deadline, f"the creation of {key}", answer.why, budget_s, ambient)


def write_again(store: ObjectStore, key: str, body: bytes, *, budget_s: float = 8.0, ambient: Ambient = REAL) -> float:
    """Put an idempotent body until the store says it stands; returns store time. Raises `StoreUnavailable`."""
    deadline = ambient.boot_s() + budget_s
    wait_s = BACKOFF_FIRST_S
    while True:
        answer = store.put(key, body)
        if isinstance(answer, Applied):
            return answer.now
        why = answer.why if isinstance(answer, Unknown) else "refused"
        asked_s = answer.retry_after_s if isinstance(answer, Unknown) else 0.0
        wait_s = _pause(wait_s, asked_s, deadline, f"the write of {key}", why, budget_s, ambient)


def delete_again(store: ObjectStore, key: str, *, budget_s: float = 8.0, ambient: Ambient = REAL) -> None:
    """Delete until the store says it is gone. Raises `StoreUnavailable`."""
    deadline = ambient.boot_s() + budget_s
    wait_s = BACKOFF_FIRST_S
    while True:
        answer = store.delete(key)
        if isinstance(answer, Applied):
            return
        wait_s = _pause(wait_s, answer.retry_after_s, deadline, f"the deletion of {key}", answer.why, budget_s, ambient)


def _pause(
    wait_s: float, asked_s: float, deadline: float, what: str, why: str, budget_s: float, ambient: Ambient
) -> float:
    pause_s = max(asked_s, ambient.uniform(0.0, wait_s))
    if ambient.boot_s() + pause_s >= deadline:
        raise StoreUnavailable(
            f"no definite answer to {what} within {budget_s:g} s; last: {why}",
            "It may or may not have been carried out; it is repeated by whoever comes next.",
        )
    ambient.sleep(pause_s)
    return min(wait_s * 2, BACKOFF_MOST_S)
