"""The attempts a worker holds, from the moment before their claim is sent until nothing of them is left to do.

                 claim stands, gate open          supervisor gone
    CLAIMING ───────────────────────▶ RUNNING ───────────────────▶ ENDING ──▶ (forgotten)
        └── another's, over, orphan ───────────────────────────────────────────▲

Everything needed to come back after a kill -9 is in the attempt's folder; a holding is only this process's view of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stado_like.bucket.claim import Open
from stado_like.errors import BadRecord
from stado_like.job.keys import AttemptId
from stado_like.job.records import Claim, Held
from stado_like.job.terms import Ask
from stado_worker.shim.attempt_dir import AttemptDir

VOUCH_TTLS = 10


class Phase(StrEnum):
    CLAIMING = "claiming"
    RUNNING = "running"
    ENDING = "ending"


@dataclass(slots=True)
class Holding:
    a: AttemptId
    claim: Claim
    body: bytes
    folder: AttemptDir
    ask: Ask
    claimed_boot_s: float
    phase: Phase = Phase.CLAIMING
    sent: bool = False
    opened: Open | None = None
    ttl_s: int = 60
    time_limit_s: int | None = None
    pulse: tuple[float, float] = (0.0, 0.0)
    """The last pulse seen, and the reach clock when it changed."""
    saved_at: float = 0.0
    """What the pulse said of its newest checkpoint."""
    retry_boot_s: float = 0.0
    complaints: int = 0
    told_over_s: float | None = None
    """When its supervisor was told that others had ended the attempt."""
    stuck: tuple[int, ...] = field(default=())

    def held(self, reach_s: float) -> Held:
        alive = self.phase is Phase.CLAIMING or (self.phase is Phase.RUNNING and self._vouched(reach_s))
        return Held(
            attempt=str(self.a),
            nonce=self.claim.nonce,
            alive=alive,
            state=self.phase.value,
            devices=self.ask.devices,
            saved_at=self.saved_at,
        )

    def _vouched(self, reach_s: float) -> bool:
        """Whether the supervisor's own connection has been seen to work lately, counted over time in which ours did.

        A supervisor that gets nothing through while its agent does is named no longer, so that the tick may judge
        it by its heartbeat.
        """
        try:
            said = self.folder.read_pulse() or {}
            pulse, self.saved_at = float(said.get("store_time", 0.0)), float(said.get("saved_at", 0.0))
        except (BadRecord, OSError, TypeError, ValueError):
            pulse = self.pulse[0]  # says nothing new
        if pulse != self.pulse[0] or self.pulse[1] == 0.0:
            self.pulse = (pulse, reach_s)
        return reach_s - self.pulse[1] <= VOUCH_TTLS * self.ttl_s


class Reach:
    """A clock that runs only while our own requests are accepted, plus one TTL of silence forgiven after each
    recovery."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since: float | None = None
        self._forgiven_until = 0.0

    def accepted(self, now_s: float, forgive_s: float) -> None:
        if self._since is None:
            self._forgiven_until = now_s + forgive_s
        elif now_s > self._forgiven_until:
            self.seconds += now_s - max(self._since, self._forgiven_until)
        self._since = now_s

    def failed(self) -> None:
        self._since = None


def keep_claim(
    folder: AttemptDir, claim: Claim, body: bytes, ask: Ask, boot_s: float, boot_id: str, *, fsync: bool
) -> None:
    """On disk before the claim is sent: a replay after a restart sends the same bytes."""
    record = {"claim": claim, "body": body.decode(), "ask": ask, "boot_s": boot_s, "boot_id": boot_id}
    folder.write_claim(record, fsync=fsync)
