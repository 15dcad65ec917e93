"""What the holder of an open attempt says, read from its heartbeat, or from its claim before the first one.

Not obvious because nobody writes that a task is Stale: its supervisor is silent, and a tick only remembers what it
saw. It follows, for whoever looks, from the age of the last write and the job's own TTL.
"""

from __future__ import annotations

from dataclasses import dataclass

from stado_like.bucket.bucket import Found
from stado_like.job import reasons
from stado_like.job.records import Change, Claim, Heartbeat, History
from stado_like.job.states import TaskState
from stado_like.reading.story import Going
from stado_like.reading.surroundings import GRACE_S


@dataclass(frozen=True, slots=True)
class Live:
    """An attempt that somebody holds."""

    state: TaskState
    reason: str
    worker: str
    heard_s: float
    claimed_at: float = 0.0
    started_at: float = 0.0
    running_at: float = 0.0
    history: History = History()  # noqa: RUF009 - frozen: one shared empty history
    late_at: float = 0.0
    """Since when its heartbeat, or the claim that stands for one, is late; 0: it is not."""
    stop: Change | None = None
    """A verdict or a person's stop that stands."""
    beat: Heartbeat | None = None
    """What its supervisor said last; None: nothing yet."""

    @property
    def going(self) -> Going:
        return Going(self.worker, self.history, self.claimed_at, self.late_at, self.stop)


def of_heartbeat(found: Found[Heartbeat]) -> Live:
    beat = found.record
    stale = found.age_s > beat.ttl_s + GRACE_S and beat.state is not TaskState.STOPPING
    return Live(
        state=TaskState.STALE if stale else beat.state,
        reason=reasons.LEASE_EXPIRED if stale else beat.reason,
        worker=beat.worker,
        heard_s=found.age_s,
        started_at=beat.started_at,
        running_at=beat.running_at,
        history=beat.history,
        beat=beat,
        late_at=found.last_modified + beat.ttl_s + GRACE_S if stale else 0.0,
    )


def of_claim(found: Found[Claim], ttl_s: float) -> Live:
    """A claim counts as a heartbeat written when it was made."""
    stale = found.age_s > ttl_s + GRACE_S
    return Live(
        state=TaskState.STALE if stale else TaskState.PREPARING,
        reason=reasons.LEASE_EXPIRED if stale else reasons.PREPARING,
        worker=found.record.worker,
        heard_s=found.age_s,
        claimed_at=found.last_modified,
        late_at=found.last_modified + ttl_s + GRACE_S if stale else 0.0,
    )
