"""One attempt as it is shown: from its end, which says all that it was, or from its holder, who cannot tell yet how it
ends.
"""

from __future__ import annotations

from stado_like.job.records import End
from stado_like.reading.live import Live
from stado_like.reading.shapes import AttemptView


def attempt_of_end(n: int, end: End) -> AttemptView:
    return AttemptView(
        n=n,
        state=end.outcome.value,
        reason=end.reason,
        cause=end.cause.value,
        worker=end.worker,
        decision=end.decision.value,
        exit_code=end.exit_code,
        signal=end.signal,
        claimed_at=end.claimed_at,
        started_at=end.started_at,
        running_at=end.running_at,
        ended_at=end.ended_at,
        due_at=end.due_ms / 1000,
        notes=end.notes,
        restart=end.restart or None,
        requests=end.requests or None,
        log=end.log,
    )


def attempt_of_live(n: int, live: Live) -> AttemptView:
    return AttemptView(
        n=n,
        state=live.state.value,
        reason=live.reason,
        worker=live.worker,
        claimed_at=live.claimed_at,
        started_at=live.started_at,
        running_at=live.running_at,
    )
