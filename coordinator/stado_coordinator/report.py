"""What one tick did, as it is stored, printed and logged: counts per pass, what was set aside, what was left for later,
and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from stado_like.errors import Exit
from stado_like.planning.actions import BrakePulled
from stado_like.planning.world import SetAside

NOTES_KEPT = 50
LISTED_MOST = 100


@dataclass(slots=True)
class Report:
    """Times are store time. `passes` maps a pass to its counts; `deferred` are pairs of what and why; `is_idle`:
    nothing is claimed, waiting or under way, so nothing becomes due by itself. `next_due_at`: when the next retry is.
    """

    started_at: float
    at: float = 0.0
    passes: dict[str, Counter[str]] = field(default_factory=dict)
    set_aside: list[SetAside] = field(default_factory=list)
    deferred: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    brake: BrakePulled | None = None
    requests: dict[str, float | int] = field(default_factory=dict)
    next_due_at: float | None = None
    is_idle: bool = False
    superseded: bool = False

    @property
    def exit_code(self) -> Exit:
        """0, or 6 when something was set aside or deferred."""
        return Exit.PARTLY if self.set_aside or self.deferred else Exit.DONE

    def as_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "started_at": self.started_at,
            "passes": {name: {what: n for what, n in counts.items() if n} for name, counts in self.passes.items()},
            "set_aside": [{"what": one.what, "why": one.why} for one in self.set_aside[:LISTED_MOST]],
            "set_aside_count": len(self.set_aside),
            "deferred": [{"what": what, "why": why} for what, why in self.deferred[:LISTED_MOST]],
            "deferred_count": len(self.deferred),
            "notes": self.notes[-NOTES_KEPT:],
            "brake": _brake(self.brake),
            "exit_code": int(self.exit_code),
            "requests": self.requests,
        }

    def unchanged_part(self) -> dict[str, Any]:
        """What of it is worth a write when it differs: not the times, nor what the tick cost."""
        return {name: one for name, one in self.as_json().items() if name not in ("at", "started_at", "requests")}


def _brake(pulled: BrakePulled | None) -> dict[str, Any] | None:
    if pulled is None:
        return None
    return {
        "machines": list(pulled.machines),
        "of_machines": pulled.of_machines,
        "attempts": list(pulled.attempts[:LISTED_MOST]),
        "attempt_count": len(pulled.attempts),
        "since": pulled.since,
        "until": pulled.until,
        "released": pulled.released,
    }
