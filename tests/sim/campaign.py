"""Many seeds, one after the other, and the table that says what was struck and what was lost: the last line of trust.

A seed is a whole run. What it found is a sentence and a trace; the same seed gives the same trace for ever.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from stado_like.job.states import Cause
from tests.sim.fleet import Fleet

JOBS_TOLD = ("submitted", "acknowledged", "ended", "cancelled", "deleted")
PLACING_TOLD = (
    "placed", "went", "aborted", "joined", "attempts ordered", "attempts preempted", "totals split",
    "rows told by day files",
)  # fmt: skip
ATTEMPTS_TOLD = ("started", "ended", "reaped", "undelivered")
SEEDS_FILE = Path(__file__).with_name("seeds.txt")


@dataclass
class Tally:
    """What a campaign came to. `found`: seed -> what it broke."""

    seeds: int = 0
    virtual_s: float = 0.0
    operations: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    disasters: Counter[str] = field(default_factory=Counter)
    jobs: Counter[str] = field(default_factory=Counter)
    attempts: Counter[str] = field(default_factory=Counter)
    placing: Counter[str] = field(default_factory=Counter)
    found: dict[int, str] = field(default_factory=dict)

    def add(self, fleet: Fleet) -> None:
        seen = fleet.judge.seen
        self.seeds += 1
        self.virtual_s += fleet.lasted_s
        self.operations += fleet.shared.operations
        self.faults.update(fleet.storm.counted)
        self.disasters.update(fleet.struck)
        over = [j for j in seen.acknowledged if j in seen.buried or j in seen.reported]
        self.jobs.update(
            submitted=sum(person.submitted for person in fleet.people),
            acknowledged=len(seen.acknowledged),
            ended=len(over),
            deleted=len(seen.buried),
            cancelled=len(seen.cancelled),
            lost=len(seen.acknowledged) - len(over),
        )
        self.attempts.update(
            started=sum(len(starts) for starts in seen.starts.values()),
            ended=len(seen.ends),
            reaped=sum(1 for end in seen.end_records.values() if end.by == "tick"),
            undelivered=sum(1 for end in seen.end_records.values() if end.cause is Cause.UNDELIVERED),
            refused=seen.refused_ends,
        )
        self.placing.update(
            {
                "placed": len(seen.gangs.placements),
                "went": sum(one.go for one in seen.gangs.barriers.values()),
                "aborted": sum(not one.go for one in seen.gangs.barriers.values()),
                "joined": len(seen.gangs.joins),
                "attempts ordered": len(seen.placed),
                "attempts preempted": sum(end.cause is Cause.PREEMPTED for end in seen.end_records.values()),
                "totals split": seen.splits,
                "rows told by day files": seen.told_by_days,
            }
        )

    def merge(self, other: Tally) -> None:
        self.seeds += other.seeds
        self.virtual_s += other.virtual_s
        self.operations += other.operations
        for mine, theirs in (
            (self.faults, other.faults),
            (self.disasters, other.disasters),
            (self.jobs, other.jobs),
            (self.attempts, other.attempts),
            (self.placing, other.placing),
        ):
            mine.update(theirs)
        self.found.update(other.found)

    def lines(self) -> list[str]:
        broken = Counter(line.partition(":")[0] for what in self.found.values() for line in what.splitlines() if line)
        rows = [
            ("seeds", self.seeds),
            ("virtual hours", round(self.virtual_s / 3600, 1)),
            ("store operations", self.operations),
            *((f"fault: {kind}", count) for kind, count in sorted(self.faults.items())),
            *((f"disaster: {kind}", count) for kind, count in sorted(self.disasters.items())),
            *((f"jobs {what}", self.jobs[what]) for what in JOBS_TOLD),
            *((f"attempts {what}", self.attempts[what]) for what in ATTEMPTS_TOLD),
            *((f"gangs {what}" if " " not in what else what, self.placing[what]) for what in PLACING_TOLD),
            ("lost", self.jobs["lost"]),
            ("committed twice", broken["one_end_per_attempt"]),
            ("zombie commits refused", self.attempts["refused"]),
            ("stops dropped", broken["acknowledged_cancels_ended_their_jobs"]),
            ("healthy tasks reaped", broken["no healthy task is reaped"]),
            ("budget mismatches", broken["budgets_are_spent_once"]),
            ("seeds that broke a rule", len(self.found)),
        ]
        width = max(len(name) for name, _ in rows)
        return [f"{name:<{width}}  {count}" for name, count in rows]


def run_seed(seed: int, tally: Tally) -> str:
    """Run one seed. Returns what it broke with its trace, or nothing."""
    fleet = Fleet(seed)
    broken = ""
    try:
        fleet.run()
    except AssertionError as found:
        broken = str(found)
        tally.found[seed] = broken.partition("\ntrace:")[0]
    finally:
        fleet.close()
        tally.add(fleet)
    return broken


def kept_seeds() -> list[tuple[int, str]]:
    """Seeds that ever found a bug, each with a line about it."""
    rows = [line.partition(" ") for line in SEEDS_FILE.read_text().splitlines() if line and not line.startswith("#")]
    return [(int(seed), about) for seed, _, about in rows]
