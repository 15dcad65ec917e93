"""status/…/waiting.json: why a job waits, as a tick saw it. A hint, put when it changes: nothing is ever decided by it,
and a reader that cannot trust it looks for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job.records import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """`attempt`: the first one of the job that waits; `at`: when this reason was first seen, store time; `history`:
    every reason so far."""

    attempt: str
    reason: str
    at: float = 0.0
    history: History = field(default_factory=History)
    extra: Mapping[str, Any] = field(default_factory=dict)
