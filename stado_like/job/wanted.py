"""What people want of machines and of the queue: two small records that are edited, not decided.

A machine obeys the record that it read last, and says in its broadcast which one that is (`Capacity.wanted`, the
record's nonce): so whoever set it can tell that it was heard, and a machine that starts again is still cordoned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """workers/<worker>.json. `cordoned`: it takes nothing new; `drain`: and lets go of what it holds. Nobody set
    anything: the defaults. `labels` are kept, and nothing acts on them yet."""

    nonce: str = ""
    cordoned: bool = False
    drain: bool = False
    reason: str = ""
    by: str = ""
    at: float = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """Why it takes no work; empty when it does."""
        if not self.cordoned:
            return ""
        return self.reason or (f"by {self.by}" if self.by else "no reason was given")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """queue/pause.json: while it stands no worker claims anything."""

    nonce: str
    reason: str = ""
    by: str = ""
    at: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def why(self) -> str:
        return self.reason or (f"by {self.by}" if self.by else "no reason was given")
