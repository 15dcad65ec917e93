"""The last pass of a tick: notes why jobs wait that have waited for longer than a tick, for those who look at them.

A hint only, so it is cheap and may be wrong for a while: a few jobs a tick, whose entries the tick has listed anyway;
what a job asks for is read once by a process, and nothing is put while the reason stays. The reason is a reader's own
(`reading.waiting`): a job says the same whether a tick noted it or whoever asks finds out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import keys, reasons
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Change, History
from stado_like.job.states import JobState
from stado_like.job.terms import Terms
from stado_like.job.waits import Waiting
from stado_like.planning.placing import Placing
from stado_like.planning.placing import Waiting as Reason
from stado_like.planning.queue import Queue
from stado_like.planning.world import LyingEntry
from stado_like.reading import waiting
from stado_like.reading.surroundings import Surroundings

NOTED_A_TICK = 10
WAITED_S = 10.0
PUT_AGAIN_S = 300.0
REMEMBERED = 2_000
UNREADABLE = (BadRecord, KeyError, TypeError, AttributeError, ValueError)


@dataclass(slots=True)
class Waits:
    """What a process remembers: what each job asks for, and what stands in its hint. All of it may be lost."""

    terms: dict[JobId, Terms] = field(default_factory=dict)
    standing: dict[JobId, tuple[Waiting, float]] = field(default_factory=dict)

    def note_placing(self, bucket: Bucket, queue: Queue, placing: Placing) -> Counter[str]:
        """What the plan itself says of what waits, the head of the queue first, where it changed. Raises
        `StoreError`."""
        noted, now = Counter[str](), bucket.now()
        heads = {j for j, one in placing.waiting.items() if one.headline}
        told: dict[JobId, str | Reason] = {**queue.said, **placing.waiting}
        # Of a hundred thousand that wait the first few are wanted: a heap, not an order of all.
        order = [
            (j not in heads, first[1], j)
            for j in told
            if (first := queue.first.get(j)) is not None and now - first[1] >= WAITED_S
        ]
        heapify(order)
        while order and noted["noted"] < NOTED_A_TICK:
            j = heappop(order)[2]
            a, said = queue.first[j][0], told[j]
            reason = said if isinstance(said, str) else said.reason
            try:
                known = self.standing.get(j) or self._read_standing(bucket, j)
            except UNREADABLE:
                continue
            if known is not None and _says_it(known, a, reason, now):
                continue
            hint = _next(known[0] if known else None, a, reason, now)
            self._put(bucket, j, _with_quota(hint, placing.quota.get(j, ""), now), now)
            noted["noted"] += 1
        return +noted

    def note(self, bucket: Bucket, entries: Iterable[LyingEntry], told: Container[JobId] = ()) -> Counter[str]:
        """`told`: jobs of which the plan said why. Raises `StoreError`: a hint is no reason to go on where nothing
        answers."""
        first: dict[JobId, LyingEntry] = {}
        for one in sorted(entries, key=lambda one: (one.attempt.rank, one.attempt.n)):
            if not one.key.startswith(keys.QUEUED_LATER) and one.attempt.job not in told:
                first.setdefault(one.attempt.job, one)
        if not first:
            return Counter()
        if len(self.terms) > REMEMBERED:
            self.terms.clear()
            self.standing.clear()
        around, noted = Surroundings(bucket), Counter[str]()
        for j, entry in list(first.items())[:NOTED_A_TICK]:
            try:
                noted["noted"] += self._note(bucket, around, j, entry)
            except UNREADABLE:
                continue  # the sweep sets it aside, with its reason
        return +noted

    def _note(self, bucket: Bucket, around: Surroundings, j: JobId, entry: LyingEntry) -> bool:
        terms = self.terms.get(j) or self._read_terms(bucket, j)
        a = entry.attempt
        if terms is None or a.rank >= terms.tasks or (terms.after and a.n == 1 and not terms.held):
            return False  # gone; or it waits for other jobs, which whoever asks looks at
        reason = waiting.no_room(around, terms, a.rank)
        known = self.standing.get(j) or self._read_standing(bucket, j)
        now = bucket.now()
        if known is None and reason == reasons.WAITING_TO_START:
            return False
        if known is not None and _says_it(known, a, reason, now):
            return False
        self._put(bucket, j, _next(known[0] if known else None, a, reason, now), now)
        return True

    def _put(self, bucket: Bucket, j: JobId, hint: Waiting, now: float) -> None:
        bucket.put(keys.waiting(j), hint)
        # Ticks sleep too: its job may have run and been deleted meanwhile, and nobody clears its status again.
        if any(bucket.present(keys.tombstone(j))):
            bucket.drop(keys.waiting(j))
            self.terms.pop(j, None)
            self.standing.pop(j, None)
            return
        self.standing[j] = (hint, now)

    def _read_terms(self, bucket: Bucket, j: JobId) -> Terms | None:
        job = bucket.job(j)
        if job is None or any(bucket.present(keys.tombstone(j))):
            return None
        terms = bucket.terms(job)
        if terms.shaped:
            self.terms[j] = terms
        return terms

    def _read_standing(self, bucket: Bucket, j: JobId) -> tuple[Waiting, float] | None:
        found = bucket.read(Waiting, keys.waiting(j))
        if found is None:
            return None
        self.standing[j] = (found.record, found.last_modified)
        return self.standing[j]


def _with_quota(hint: Waiting, numbers: str, now: float) -> Waiting:
    """A history says once what of its workspace's quota a job waits for."""
    if not numbers:
        return hint
    said = reasons.quota_reached(numbers)
    if any(one.reason.startswith(_QUOTA_REACHED) for one in hint.history.changes):
        return hint
    return replace(hint, history=hint.history.add(Change(state=JobState.PENDING.value, reason=said, at=now)))


_QUOTA_REACHED = reasons.quota_reached("")


def _says_it(known: tuple[Waiting, float], a: AttemptId, reason: str, now: float) -> bool:
    hint, put_at = known
    return (hint.attempt, hint.reason) == (str(a), reason) and now - put_at < PUT_AGAIN_S


def _next(before: Waiting | None, a: AttemptId, reason: str, now: float) -> Waiting:
    history = before.history if before is not None else History()
    same = before is not None and before.reason == reason and before.attempt == str(a)
    if not same:
        history = history.add(Change(state=JobState.PENDING.value, reason=reason, at=now))
    at = before.at if same and before is not None else now
    return Waiting(attempt=str(a), reason=reason, at=at, history=history)
