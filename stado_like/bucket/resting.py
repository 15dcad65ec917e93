"""Gangs of which nothing has changed since a tick looked: what waited then waits now.

A look at a gang asks for its generations and for an end of every rank. While every member's entry lies on the queue, of
the same attempts, with nobody holding or having been given one, there is nothing that it could have come to since: a
placement shows in the inboxes, a claim in `running/`, an end takes its entry away, and so does a cancel. So what the
last look found is used again, for some minutes. A plan that is wrong all the same finds out when it is carried out, for
whoever places a gang looks at all of it once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from zlib import crc32

from stado_like.bucket.gang import Waits
from stado_like.bucket.tick_cache import TickCache
from stado_like.errors import BadRecord
from stado_like.job.ids import AttemptId, JobId

RESTS_S = 900.0
"""At most; half of it at least, so that not all of them are looked at in one tick."""


@dataclass(slots=True)
class Resting:
    cache: TickCache
    known: dict[JobId, tuple[float, Waits]] = field(default_factory=dict)

    def waits(self, j: JobId, lying: Iterable[AttemptId], now: float) -> Waits | None:
        """What waits of a gang whose members' entries are these. None: look."""
        found = self.known.get(j) or self._kept(j)
        if found is None:
            return None
        since, waits = found
        rests_s = RESTS_S * (0.5 + 0.5 * crc32(str(j).encode()) / 2**32)
        if not 0 <= now - since < rests_s or set(waits.members) != set(lying):
            return None
        self.known[j] = found
        return waits

    def note(self, j: JobId, lying: Iterable[AttemptId], waits: Waits | None, now: float) -> None:
        """What a look found."""
        if waits is None or set(waits.members) != set(lying):
            self.wake(j)
            return
        self.known[j] = now, waits
        members = [str(a) for a in waits.members]
        said = [waits.together, waits.least, waits.not_before, sorted(waits.avoid), waits.reason]
        self.cache.keep(_key(j), [now, waits.generation, members, *said])

    def wake(self, j: JobId) -> None:
        """Something was done about it, or will be."""
        self.known.pop(j, None)
        if self.cache.said(_key(j)) is not None:
            self.cache.keep(_key(j), None)

    def _kept(self, j: JobId) -> tuple[float, Waits] | None:
        said = self.cache.said(_key(j))
        try:
            at, generation, members, together, least, not_before, avoid, reason = said
            attempts = tuple(AttemptId.parse(one) for one in members)
            return float(at), Waits(
                int(generation), attempts, bool(together), int(least), float(not_before), frozenset(avoid), str(reason)
            )
        except (BadRecord, TypeError, ValueError, AttributeError):
            return None


def _key(j: JobId) -> str:
    return f"gang/{j}"
