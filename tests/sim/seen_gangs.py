"""What an observer has seen of gangs: who was placed together, who was ready, which verdict came, and who claimed."""

from __future__ import annotations

from dataclasses import dataclass, field

from stado_like.job import codec, gang_keys
from stado_like.job.gang_records import Barrier, Join, Placement
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim
from tests.sim.fault_store import Change

Generation = tuple[JobId, int]


@dataclass
class GangsSeen:
    """`claims`: every claim that ever stood, by its nonce. `holding`: those that stand now."""

    placements: dict[Generation, Placement] = field(default_factory=dict)
    barriers: dict[Generation, Barrier] = field(default_factory=dict)
    ready: set[tuple[int, AttemptId]] = field(default_factory=set)
    joins: dict[tuple[int, AttemptId], Join] = field(default_factory=dict)
    claims: dict[tuple[AttemptId, str], Claim] = field(default_factory=dict)
    holding: dict[AttemptId, Claim] = field(default_factory=dict)

    def note(self, change: Change) -> None:
        """A change below `gangs/`."""
        parts = change.key.split("/")
        j = JobId.parse(f"{parts[1]}.{parts[2]}")
        key = gang_keys.parse(j, change.key)
        if change.after is None:
            return
        if key.kind == "placement":
            self.placements[j, key.g] = codec.decode(Placement, change.after, change.key)
        elif key.kind == "barrier":
            self.barriers[j, key.g] = codec.decode(Barrier, change.after, change.key)
        elif key.attempt is not None and key.kind == "join":
            self.joins[key.g, key.attempt] = codec.decode(Join, change.after, change.key)
        elif key.attempt is not None:
            self.ready.add((key.g, key.attempt))

    def claimed(self, a: AttemptId, claim: Claim | None) -> None:
        """A change below `running/`."""
        if claim is None:
            self.holding.pop(a, None)
        else:
            self.holding[a] = self.claims[a, claim.nonce] = claim

    def newest(self, j: JobId) -> int:
        return max((g for one, g in self.placements if one == j), default=0)

    def firsts(self, j: JobId, g: int, tasks: int) -> list[AttemptId]:
        """Each rank's first attempt in a generation; generation 0 is before the first placement."""
        placement = self.placements.get((j, g))
        return [AttemptId(j, rank, placement.attempts[rank] if placement else 1) for rank in range(tasks)]
