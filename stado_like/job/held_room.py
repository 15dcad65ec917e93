"""state/holds.json: the room that is kept for the head of the queue, as one tick wrote it for every worker.

A hint with a nonce: nothing is decided by it. A worker reads it before it claims, obeys what concerns its machine, and
says in its broadcast which one it obeys (`Capacity.holds_nonce`): only then is room counted as kept. It is written when
it changes, and what the last one said stands until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRoom:
    """Room on one machine. `starts_at`: when the job can start there, store time; 0: nobody knows."""

    job: str
    worker: str
    cpu_millis: int = 0
    memory_bytes: int = 0
    gpus: int = 0
    priority: int = 0
    starts_at: float = 0.0
    whole: bool = False
    created_ms: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    nonce: str
    at: float = 0.0
    holds: tuple[HeldRoom, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
