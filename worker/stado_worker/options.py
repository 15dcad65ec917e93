"""What an agent is told: by a person, by its machine, and by whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass

from stado_worker.machine.identity import WorkerHome


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """What a person asked of this worker. `only_job`: a dotted job id; nothing else is claimed. Graces: None where the
    cluster decides."""

    worker: str
    home: WorkerHome
    store_url: str
    machine_id: str = ""
    instance_id: str = ""
    poll_s: float = 1.0
    only_job: str = ""
    fsync: bool = True
    grace_s: int | None = None
    most_grace_s: int | None = None
    address: str = ""
