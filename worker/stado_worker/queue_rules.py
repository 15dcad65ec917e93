"""What of the open queue this worker must leave, though it fits: room that is held for the head of the queue, and work
of a workspace whose quota or pools only a tick can keep.

The last look is the one that counts, so it is taken right before a claim, and is no older than a second. It is not paid
for in vain: while nobody holds room and the bell did not say so, nothing is asked. (The bell may be lost, so each sweep
makes the next claim look once.) A workspace's record is asked for when one of its entries could be claimed, and again a
minute later.

Nothing is decided here. A worker that saw too little claims what it should have left: then the head starts later, or a
workspace holds more than its quota for a while, and no job is lost or run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stado_like.bucket import holding as kept
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import codec, keys
from stado_like.job.held_room import Holds
from stado_like.job.keys import Entry
from stado_like.job.records import BellEvent
from stado_like.job.terms import Ask
from stado_like.job.workspace import Workspace
from stado_like.planning.board import Hold, Running
from stado_like.planning.fit import Machine
from stado_like.planning.holds import Passer, ends_in_time, passes
from stado_like.store.protocol import Unchanged
from stado_worker.candidates import Candidates
from stado_worker.holdings import Holding
from stado_worker.offer import Offer

FRESH_S = 1.0
WORKSPACE_AGAIN_S = 60.0
LIMITS_READ_A_LOOK = 50
NOBODY = Holds(nonce="")


@dataclass(frozen=True, slots=True)
class _Seen:
    """A workspace's record; None: nobody set anything. `bad`: it cannot be read, and may say anything."""

    etag: str
    workspace: Workspace | None
    at_s: float
    bad: bool = False


class QueueRules:
    def __init__(self, bucket: Bucket, worker: str, offer: Offer, log: Callable[[str], None]) -> None:
        self._bucket = bucket
        self._worker = worker
        self._offer = offer
        self._log = log
        self._etag = ""
        self._holds = NOBODY
        self._mine: tuple[Hold, ...] = ()
        self._due = True
        self._rung = False
        self._seen_at_s = 0.0
        self._limits_left = LIMITS_READ_A_LOOK
        self._workspaces: dict[str, _Seen] = {}

    # ---- when to look

    def heard(self, event: BellEvent) -> None:
        if event.kind == kept.BELL and kept.concerns(event.what, self._worker):
            self._due = self._rung = True

    def sweep(self) -> None:
        self._due = True

    def answer(self, now_s: float) -> None:
        """Somebody rang for what is held here: look, so that the next broadcast echoes it. Raises
        `StoreUnavailable`."""
        if self._rung:
            self._look(now_s)
            self._offer.echo = self._holds.nonce
            self._rung = False

    def _look_again(self, now_s: float) -> None:
        if self._due or (self._holds.holds and now_s - self._seen_at_s > FRESH_S):  # guard: holds read before claims
            self._look(now_s)

    def _look(self, now_s: float) -> None:
        store = self._bucket.store
        answer = store.get_if_changed(keys.HOLDS, self._etag) if self._etag else store.get(keys.HOLDS)
        self._seen_at_s, self._due, self._limits_left = now_s, False, LIMITS_READ_A_LOOK
        if isinstance(answer, Unchanged):
            return
        if answer is None:
            self._etag, self._holds = "", NOBODY
        else:
            try:
                self._holds = codec.decode(Holds, answer.body, keys.HOLDS)
            except BadRecord as bad:
                self._log(bad.message)  # what was held before is held still
                return
            self._etag = answer.etag
        before, self._mine = self._mine, tuple(one for one in kept.on_board(self._holds) if one.worker == self._worker)
        self._offer.holds_nonce = self._holds.nonce
        if before or self._mine:
            self._offer.echo = self._holds.nonce

    def _workspace(self, name: str, now_s: float) -> _Seen:
        known = self._workspaces.get(name)
        if known is not None and now_s - known.at_s < WORKSPACE_AGAIN_S:
            return known
        key, store = keys.workspace(name), self._bucket.store
        answer = store.get_if_changed(key, known.etag) if known is not None and known.etag else store.get(key)
        if isinstance(answer, Unchanged):
            assert known is not None
            seen = _Seen(known.etag, known.workspace, now_s)
        elif answer is None:
            seen = _Seen("", None, now_s)
        else:
            try:
                seen = _Seen(answer.etag, codec.decode(Workspace, answer.body, key), now_s)
            except BadRecord as bad:
                self._log(bad.message)
                seen = _Seen("", None, now_s, bad=True)
        self._workspaces[name] = seen
        return seen

    # ---- judging

    def let_claim(
        self, entry: Entry, ask: Ask, machine: Machine, holdings: Iterable[Holding], candidates: Candidates
    ) -> bool:
        """Whether an open entry that fits may be claimed. Raises `StoreUnavailable`, and `BadRecord` of an entry."""
        now_s = self._bucket.ambient.boot_s()
        if not self._is_for_workers(entry, machine, now_s):
            return False
        self._look_again(now_s)
        now = self._bucket.now()
        if not self._mine or not kept.stands(self._holds, now):
            return True
        running = tuple(map(_running, holdings))
        one = Passer(entry.attempt.job, entry.priority, entry.created_ms, ask)
        for hold in self._mine:
            if not passes(hold, one, machine, running, now) and not self._ends_in_time(hold, entry, candidates, now):
                return False  # guard: holds obeyed
        return True

    def _ends_in_time(self, hold: Hold, entry: Entry, candidates: Candidates, now: float) -> bool:
        """A limit is not in an entry's name, so it is asked for only where it decides, and for so many at a time."""
        if not hold.starts_at or self._limits_left <= 0:
            return False
        self._limits_left -= 1
        return ends_in_time(hold, candidates.time_limit_of(entry), now)

    def _is_for_workers(self, entry: Entry, machine: Machine, now_s: float) -> bool:
        """Not where its workspace has a quota, which only a tick can keep, or pools that this machine is not in."""
        seen = self._workspace(entry.attempt.job.workspace, now_s)
        if seen.bad:
            return False
        if seen.workspace is None:
            return True
        if seen.workspace.quota.limits:  # guard: quotas are kept by ticks
            return False
        return all(machine.labels.get(key) == value for key, value in seen.workspace.pools.items())


def _running(one: Holding) -> Running:
    since = one.claim.since
    return Running(one.a, one.ask, 0, running_at=since, ends_by=kept.ends_by(since, one.time_limit_s))
