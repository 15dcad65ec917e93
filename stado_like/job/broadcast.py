"""What a worker says of itself every twenty seconds. Apart from the other records for its length and because it alone
describes hardware; whoever needs it imports it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_like.job.hardware import Device, Port


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One attempt that a worker holds, in its broadcast. `alive`: its supervisor's word still stands. `devices`: the
    GPUs that it was given. `saved_at`: when what its newest checkpoint holds was written, as its supervisor said; 0:
    nothing is known of one."""

    attempt: str
    nonce: str
    alive: bool
    state: str = ""
    devices: tuple[str, ...] = ()
    saved_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    cpu_millis: int = 0
    memory_bytes: int = 0
    gpus: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """capacity/<worker>.json: what a machine has free, with the promise to say so again by `next_by`. `wanted`: the
    nonce of the record in workers/ that it obeys. `gpus`, `ports`: each one, where they are described."""

    nonce: str
    worker: str
    host: str = ""
    address: str = ""
    machine_id: str = ""
    boot_id: str = ""
    instance_id: str = ""
    started_at: float = 0.0
    at: float = 0.0
    next_by: float = 0.0
    total: Room = field(default_factory=Room)
    free: Room = field(default_factory=Room)
    gpus: tuple[Device, ...] = ()
    ports: tuple[Port, ...] = ()
    whole: bool = False
    """A task has the machine to itself."""
    labels: Mapping[str, str] = field(default_factory=dict)
    accepting: bool = True
    why_not: str = ""
    pressure: str = ""
    """What of it runs short, where that is why it takes nothing: disk."""
    held: tuple[Held, ...] = ()
    wanted: str = ""
    holds_nonce: str = ""
    """Of the holds that it obeys."""
    version: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
