"""What an all-knowing observer has seen of a bucket and of the processes around it: enough to judge every rule.

It is fed by every change of a key, and by what no key shows: what was acknowledged to whom, which process was started.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from stado_like.bucket.finish import task_end
from stado_like.bucket.ordered_place import PLACE
from stado_like.errors import BadRecord
from stado_like.job import blocks, codec, keys, rollup
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Capacity, Claim, End, Final, Heartbeat, Job, Order
from stado_like.job.split import Split, decided
from stado_like.job.states import Cause, Decision, JobState, TaskState
from stado_like.job.terms import Terms, terms_of
from stado_like.job.wanted import Wanted
from stado_like.job.workspace import Quota
from tests.sim.fault_store import Change, SharedBucket
from tests.sim.seen_gangs import GangsSeen

ORDER_HOLDS_S = 120.0


@dataclass(frozen=True, slots=True)
class Start:
    """A process was started for an attempt, under a claim of which we know when it was first made."""

    attempt: AttemptId
    who: str
    claimed: int
    at: int
    at_s: float
    nonce: str = ""


@dataclass
class Seen:
    """`tick` counts changes and events; everything that happened carries its number."""

    shared: SharedBucket
    tick: int = 0
    machines_may_be_paused: bool = False
    """Then a process may start after its attempt has ended: no clock of its own saw the pause. `doubtful`: such
    starts, for whoever knows the processes to see them fenced."""
    doubtful: list[Start] = field(default_factory=list)
    lists_may_be_old: bool = False
    """A deletion finds what it takes away by listing: where lists may be old, some of it stays, and fsck sweeps it."""
    jobs: dict[JobId, Job] = field(default_factory=dict)
    terms: dict[JobId, Terms] = field(default_factory=dict)
    acknowledged: set[JobId] = field(default_factory=set)
    cancelled: dict[JobId, int] = field(default_factory=dict)
    stopped: dict[tuple[JobId, int], int] = field(default_factory=dict)
    buried: dict[JobId, int] = field(default_factory=dict)
    removed: set[JobId] = field(default_factory=set)
    claims: dict[tuple[AttemptId, str], int] = field(default_factory=dict)
    ends: dict[AttemptId, bytes] = field(default_factory=dict)
    end_records: dict[AttemptId, End] = field(default_factory=dict)
    ended_at: dict[AttemptId, int] = field(default_factory=dict)
    ended_at_s: dict[AttemptId, float] = field(default_factory=dict)
    beats_after_end: Counter[AttemptId] = field(default_factory=Counter)
    last_n: dict[tuple[JobId, int], int] = field(default_factory=lambda: defaultdict(int))
    starts: dict[AttemptId, list[Start]] = field(default_factory=lambda: defaultdict(list))
    finished: dict[JobId, set[int]] = field(default_factory=lambda: defaultdict(set))
    ran: dict[JobId, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Ranks that once said that they run, or that completed."""
    came_to: dict[JobId, JobState] = field(default_factory=dict)
    """What jobs ended as, for ever."""
    over_at: dict[JobId, int] = field(default_factory=dict)
    """Since when a job is over for its children: ended, or under a verdict."""
    released: dict[JobId, set[int]] = field(default_factory=lambda: defaultdict(set))
    entries: dict[AttemptId, set[str]] = field(default_factory=lambda: defaultdict(set))
    reported: dict[JobId, str] = field(default_factory=dict)
    ordered: set[tuple[str, AttemptId, Cause]] = field(default_factory=set)
    """Orders that came in time: of which worker, about what."""
    quotas: dict[str, Quota] = field(default_factory=dict)
    """What is never exceeded where no tick can be mistaken about what runs."""
    gangs: GangsSeen = field(default_factory=GangsSeen)
    placed: set[tuple[str, AttemptId]] = field(default_factory=set)
    """Orders to start that came in time: to which worker, which attempt."""
    drained: set[str] = field(default_factory=set)
    """Machines that a person has ever drained."""
    wanted: dict[str, Wanted] = field(default_factory=dict)
    said: dict[str, Capacity] = field(default_factory=dict)
    clocks_may_jump: bool = False
    late: set[str] = field(default_factory=set)
    """Keys whose present bytes came by a request that arrived late."""
    told_by_days: int = 0
    """Rows of lists that came from day files."""
    splits: int = 0
    """Totals that the scheduler split into tasks."""
    refused_ends: int = 0
    """Creates of an end that another's end refused: zombies that came too late."""
    violations: list[str] = field(default_factory=list)

    # ---- events that no key shows

    def acknowledge(self, j: JobId) -> None:
        self.tick += 1
        self.acknowledged.add(j)

    def cancel_acknowledged(self, j: JobId, rank: int | None = None) -> None:
        self.tick += 1
        if rank is None:
            self.cancelled.setdefault(j, self.tick)
        else:
            self.stopped.setdefault((j, rank), self.tick)

    def start(self, a: AttemptId, who: str, nonce: str) -> Start:
        self.tick += 1
        claimed = next((at for one in self.carriers(a) if (at := self.claims.get((one, nonce)))), self.tick)
        start = Start(a, who, claimed, self.tick, self.shared.world.now_s, nonce)
        self.starts[a].append(start)
        return start

    def violate(self, rule: str, what: str) -> None:
        line = f"{rule}: {what}"
        if line not in self.violations:
            self.violations.append(line)

    # ---- changes

    def note(self, change: Change) -> None:
        self.tick += 1
        if change.late and change.after is not None:
            self.late.add(change.key)
        else:
            self.late.discard(change.key)
        room = change.key.split("/", 1)[0]
        try:
            note = getattr(self, f"_note_{room}", None)
            if note is not None:
                note(change)
        except BadRecord:
            return  # a foreign object; no rule speaks of it

    def _note_inbox(self, change: Change) -> None:
        if change.after is not None:
            parsed = keys.parse_order(change.key)
            order = codec.decode(Order, change.after, change.key)
            if self.shared.clock.wall_s() - order.decided_at > ORDER_HOLDS_S:
                return
            if order.kind == PLACE:
                self.placed.add((parsed.worker, parsed.attempt))
            else:
                self.ordered.add((parsed.worker, parsed.attempt, order.cause))

    def _note_workers(self, change: Change) -> None:
        worker = keys.parse_wanted(change.key)
        if change.after is not None:
            self.wanted[worker] = codec.decode(Wanted, change.after, change.key)
            if self.wanted[worker].drain:
                self.drained.add(worker)

    def _note_capacity(self, change: Change) -> None:
        if change.after is not None and not change.late:
            self.said[keys.parse_capacity(change.key)] = codec.decode(Capacity, change.after, change.key)

    def _note_jobs(self, change: Change) -> None:
        j = keys.parse_job(change.key)
        if change.after is None:
            self.removed.add(j)
        else:
            self.jobs[j] = codec.decode(Job, change.after, change.key)
            self.terms[j] = terms_of(self.jobs[j].document)

    def _note_deleted(self, change: Change) -> None:
        if change.after is not None:
            self.buried.setdefault(keys.parse_tombstone(change.key), self.tick)

    def _note_queued(self, change: Change) -> None:
        later = change.key.startswith(keys.QUEUED_LATER)
        a = keys.parse_later(change.key).attempt if later else keys.parse_entry(change.key).attempt
        if change.after is None:
            self.entries[a].discard(change.key)
        else:
            self.entries[a].add(change.key)
            self.released[a.job].update(self.ranks_of(a))

    def _note_running(self, change: Change) -> None:
        a = keys.parse_running(change.key)
        self.gangs.claimed(a, codec.decode(Claim, change.after, change.key) if change.after is not None else None)
        if change.after is not None:
            claim = codec.decode(Claim, change.after, change.key)
            self.claims.setdefault((a, claim.nonce), self.tick)
            self.released[a.job].update(self.ranks_of(a))

    def _note_gangs(self, change: Change) -> None:
        self.gangs.note(change)

    def _note_status(self, change: Change) -> None:
        parts = change.key.split("/")
        j = JobId.parse(f"{parts[1]}.{parts[2]}")
        status = keys.parse_status(j, change.key)
        a = AttemptId(j, status.rank, status.n)
        if status.kind == "heartbeat" and change.after is not None and not change.late:
            self.beats_after_end[a] += a in self.ends
            if codec.decode(Heartbeat, change.after, change.key).state is TaskState.RUNNING:
                self.ran[j].add(a.rank)
        if status.kind == "shape" and change.after is not None and j in self.jobs:
            split = codec.decode(Split, change.after, change.key)
            self.splits += change.before is None
            self.terms[j] = terms_of(decided(self.jobs[j].document, split))
        if status.kind in ("verdict", "final") and change.after is not None:
            self.over_at.setdefault(j, self.tick)
        if status.kind == "final" and change.after is not None:
            self.came_to.setdefault(j, codec.decode(Final, change.after, change.key).state)
        if status.kind != "end" or change.after is None:
            return
        a = keys.AttemptId(j, status.rank, status.n)
        if a in self.ends:
            return
        end = codec.decode(End, change.after, change.key)
        self.ends[a] = change.after
        self.end_records[a] = end
        self.ended_at[a] = self.tick
        self.ended_at_s[a] = change.at_s
        if not self.is_unit(a):
            self._note_end(a, end)
            return
        for rank in self.ranks_of(a):
            first = AttemptId(j, rank, 1)
            carried = blocks.unpacked(first, end)
            if carried is not None and first not in self.ends:
                self.ends[first], self.end_records[first] = change.after, carried
                self.ended_at[first], self.ended_at_s[first] = self.tick, change.at_s
                self._note_end(first, carried)

    def _note_end(self, a: AttemptId, end: End) -> None:
        """Of a task, by a record of its own or in that of its block."""
        j = a.job
        self.last_n[j, a.rank] = max(self.last_n[j, a.rank], a.n)
        self.released[j].add(a.rank)
        if end.is_final:
            self.finished[j].add(a.rank)
            if j in self.terms and not self.terms[j].several:
                self.over_at.setdefault(j, self.tick)
                self.came_to.setdefault(j, rollup.over(self.terms[j], [task_end(self.terms[j], 0, end)]).state)
            if end.state is TaskState.COMPLETED:
                self.ran[j].add(a.rank)

    # ---- questions

    def is_unit(self, a: AttemptId) -> bool:
        """Whether it is a block and no task."""
        return a.job in self.terms and blocks.is_unit(self.terms[a.job], a.rank)

    def ranks_of(self, a: AttemptId) -> list[int]:
        """The tasks that an attempt is about: those that a block carries, else its own."""
        return list(blocks.ranks_of(self.terms[a.job], a.rank)) if self.is_unit(a) else [a.rank]

    def carriers(self, a: AttemptId) -> list[AttemptId]:
        """The attempts under whose claims it may start: its own, and that of its block."""
        unit = blocks.unit_of(self.terms[a.job], a.rank) if a.job in self.terms and a.n == 1 else None
        return [a] if unit is None else [a, AttemptId(a.job, unit, 1)]

    def final_end(self, j: JobId, rank: int) -> AttemptId | None:
        if rank not in self.finished[j]:
            return None
        return keys.AttemptId(j, rank, self.last_n[j, rank])

    def is_ended(self, j: JobId, rank: int) -> bool:
        """Over for good, or, of a gang's member, as far as its own end can say."""
        last = self.end_records.get(keys.AttemptId(j, rank, self.last_n[j, rank]))
        return rank in self.finished[j] or (last is not None and last.decision is Decision.GANG)

    def holds(self, key: str) -> bool:
        return self.shared.peek(key) is not None
