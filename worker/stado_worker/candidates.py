"""The entries an agent may claim next, in scheduling order, without listing the queue for each.

A sweep brings the first page of `queued/open`; the bell brings single entries; further pages are read only while
nothing on the pages so far could be claimed (at most five a step, the cursor kept, and rewound at the end of the
listing or after ten minutes): so a head of entries that do not fit this machine blinds nobody. Retries that are not
due yet wait in a heap of their own and are moved by whoever sees them due.

Who loses a claim to another has an old list: the head of the queue is listed anew before anything else is tried.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from stado_like.bucket import entries
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import Entry, LaterEntry
from stado_like.job.records import Entry as EntryRecord
from stado_like.job.terms import Ask
from stado_like.store.protocol import Row
from stado_worker.crowd import Crowd
from stado_worker.recovery import UNREADABLE

PAGES_A_STEP = 5
UNREADABLE_LEFT_ALONE_S = 600.0
REWIND_AFTER_S = 600.0
MOST_KEPT = 20_000
LOOK_AGAIN_S = 0.1
"""Room changes also by itself: a queue of which nothing fitted is gone through again after so long."""
APART_S = 0.5
OLD_AFTER_S = 2.0
LOST_LEFT_ALONE_S = 10.0
"""A list may still show what was claimed."""


def _order(entry: Entry) -> tuple[int, int, str]:
    return entry.order


class Candidates:
    def __init__(self, bucket: Bucket, only_job: str = "") -> None:
        self._bucket = bucket
        self._only_job = only_job
        self._sorted: list[Entry] = []
        self._known: dict[str, Entry] = {}
        self._later: list[tuple[int, str]] = []
        self._later_known: set[str] = set()
        self._cursor = ""
        self._more = False
        self._listed_boot_s = self._head_boot_s = 0.0
        self.strange: set[str] = set()
        self._left_alone: dict[str, float] = {}
        self._asks: dict[str, Ask] = {}
        self._limits: dict[str, int | None] = {}
        self._crowd = Crowd(bucket.ambient)
        self.outdated = False
        """Whether a claim was lost since the queue was listed."""
        self.version = 0
        """Changes whenever there is something new to look at."""

    def __len__(self) -> int:
        return len(self._sorted)

    # ---- what there is

    def in_order(self) -> list[Entry]:
        return list(self._sorted)

    def to_try(self) -> Iterator[Entry]:
        """As they shall be tried now, until a claim is lost. Raises `StoreUnavailable`.

        The head of the queue is listed anew first where a claim was lost since it was listed, or where others claim too
        and will have claimed much of it by now.
        """
        old = self._bucket.ambient.boot_s() - self._head_boot_s > OLD_AFTER_S
        if self.outdated or (old and self._sorted and self._crowd.is_one):
            self._list_head()
        for entry in self._crowd.order(self._sorted):
            yield entry
            if self.outdated:
                return

    def won(self) -> None:
        """A claim stands."""
        self._crowd.won()

    def lost(self, key: str) -> None:
        """Another had it: what is known of the queue is old."""
        self._crowd.lost()
        self.outdated = True
        self.leave_alone(key, self._bucket.ambient.boot_s() + LOST_LEFT_ALONE_S)

    def is_there(self, entry: Entry) -> bool:
        """Right before a claim: whether nobody has claimed it since it was listed. Asked only where others claim too: a
        HEAD costs a tenth of a create. Raises `StoreUnavailable`."""
        if not self._crowd.is_one or any(self._bucket.present(entry.key)):
            return True
        self.drop(entry.key)
        return False

    def pause_s(self) -> float:
        """How long until it is gone through again, though nothing new is known. Who lost a claim waits for as long as
        chance says: those who lost together do not try together again."""
        return self._bucket.ambient.uniform(0.0, APART_S) if self.outdated else LOOK_AGAIN_S

    def ask_of(self, entry: Entry) -> Ask | None:
        """What an entry asks for: in its name, or inside it where the name says so; read once, for it never changes.
        None: it is gone. Raises `StoreUnavailable`, `BadRecord`."""
        envelope = entry.envelope
        if not envelope.picky:
            return Ask(envelope.cores * 1000, envelope.mib * keys.MIB, envelope.gpus)
        known = self._asks.get(entry.key)
        if known is None:
            found = self._bucket.read(EntryRecord, entry.key)
            if found is None:
                self.drop(entry.key)
                return None
            inside = found.record
            known = entries.ask_in(inside)
            self._asks[entry.key], self._limits[entry.key] = known, inside.time_limit_s
        return known

    def time_limit_of(self, entry: Entry) -> int | None:
        """How long an entry's attempt may run, which is never in its name; read once. None: as long as it likes, or
        the entry is gone. Raises `StoreUnavailable`, `BadRecord`."""
        if entry.key not in self._limits:
            found = self._bucket.read(EntryRecord, entry.key)
            if found is None:
                self.drop(entry.key)
                return None
            self._limits[entry.key] = found.record.time_limit_s
        return self._limits[entry.key]

    def readable_ask(self, entry: Entry, log: Callable[[str], None]) -> Ask | None:
        """The same, and None too for what cannot be read, which is passed over for a while."""
        try:
            return self.ask_of(entry)
        except UNREADABLE as bad:
            self.set_aside(entry.key, bad, log)
            return None

    def set_aside(self, key: str, bad: Exception, log: Callable[[str], None]) -> None:
        log(f"set aside for {UNREADABLE_LEFT_ALONE_S:.0f} s: {key}: {bad}")
        self.leave_alone(key, self._bucket.ambient.boot_s() + UNREADABLE_LEFT_ALONE_S)

    def drop(self, key: str) -> None:
        self._asks.pop(key, None)
        self._limits.pop(key, None)
        entry = self._known.pop(key, None)
        if entry is not None:  # a claim in the middle of twenty thousand must not cost a look at each
            at = bisect_left(self._sorted, entry.order, key=_order)
            while self._sorted[at].key != key:
                at += 1  # of one attempt two entries may lie here
            del self._sorted[at]

    def leave_alone(self, key: str, until_boot_s: float) -> None:
        """What lies under this entry cannot be read here: pass over it until then."""
        self.drop(key)
        self._left_alone[key] = until_boot_s

    def _is_left_alone(self, key: str) -> bool:
        until_s = self._left_alone.get(key)
        if until_s is not None and self._bucket.ambient.boot_s() >= until_s:
            del self._left_alone[key]
            return False
        return until_s is not None

    def offer(self, key: str) -> None:
        """An entry somebody named: the bell, or a supervisor that settled."""
        if self._left_alone and self._is_left_alone(key):
            return
        try:
            if key.startswith(keys.QUEUED_LATER):
                self._add_later(keys.parse_later(key))
            elif key.startswith(keys.QUEUED_OPEN):
                self._add(keys.parse_entry(key))
        except BadRecord:
            self.strange.add(key)

    def _add(self, entry: Entry) -> None:
        if entry.key in self._known or len(self._sorted) >= MOST_KEPT:
            return
        if self._only_job and str(entry.attempt.job) != self._only_job:
            return
        self._known[entry.key] = entry
        self.version += 1
        insort(self._sorted, entry, key=_order)

    def _add_later(self, later: LaterEntry) -> None:
        if later.key in self._later_known or (self._only_job and str(later.attempt.job) != self._only_job):
            return
        self._later_known.add(later.key)
        heapq.heappush(self._later, (later.due_ms, later.key))

    # ---- reading the queue

    def sweep(self) -> None:
        """The first page anew, and every retry that waits. Raises `StoreUnavailable`."""
        self._list_head()
        start_after = ""
        while True:
            waiting = self._bucket.store.list(keys.QUEUED_LATER, start_after=start_after)
            for row in waiting.rows:
                self.offer(row.key)
            if not waiting.more or not waiting.rows:
                return
            start_after = waiting.rows[-1].key

    def _list_head(self) -> None:
        page = self._bucket.store.list(keys.QUEUED_OPEN)
        beyond = page.rows[-1].key if page.more else None
        self._sorted = [one for one in self._sorted if beyond is not None and one.key > beyond]
        self._known = {one.key: one for one in self._sorted}
        self.version += 1
        self._take(page.rows)
        self._asks = {key: ask for key, ask in self._asks.items() if key in self._known}
        self._limits = {key: limit for key, limit in self._limits.items() if key in self._known}
        self._cursor, self._more = (page.rows[-1].key, page.more) if page.rows else ("", False)
        self._listed_boot_s = self._head_boot_s = self._bucket.ambient.boot_s()
        self.outdated = False

    def read_on(self) -> bool:
        """One more page, for an agent that could claim nothing of those before. False: there is none. Raises
        `StoreUnavailable`."""
        if self._bucket.ambient.boot_s() - self._listed_boot_s > REWIND_AFTER_S:
            self._cursor, self._more = "", True
            self._listed_boot_s = self._bucket.ambient.boot_s()
        if not self._more:
            return False
        page = self._bucket.store.list(keys.QUEUED_OPEN, start_after=self._cursor)
        self._take(page.rows)
        self._cursor, self._more = (page.rows[-1].key, page.more) if page.rows else ("", False)
        return bool(page.rows)

    def _take(self, rows: tuple[Row, ...]) -> None:
        for row in rows:
            self.offer(row.key)

    # ---- retries

    def next_due_s(self) -> float | None:
        """When the next retry becomes due, store time."""
        return self._later[0][0] / 1000 if self._later else None

    def move_due(self, now_s: float) -> int:
        """Move the retries that are due into the open queue. Raises `StoreUnavailable`; what was popped is met
        again by the sweep."""
        moved = 0
        while self._later and self._later[0][0] <= now_s * 1000:
            _, key = self._later[0]
            try:
                becomes = entries.move_due(self._bucket, keys.parse_later(key))
            except BadRecord:
                self.strange.add(key)
                becomes = None
            heapq.heappop(self._later)
            self._later_known.discard(key)
            if becomes is not None:
                self.offer(becomes)
                moved += 1
        return moved
