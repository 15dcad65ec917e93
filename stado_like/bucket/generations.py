"""Where a gang stands: its newest generation, who of it has ended, and what follows once all have.

A generation begins with its placement and ends with the last end of its members; each restart of the whole is a new
one. Before the first placement there is none (`g` 0), and every rank's open attempt is its first.

Reading is by known keys: a listing tells which generation is the newest, and the one after it is asked for once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord
from stado_like.job import codec, gang, gang_keys, reasons, reasons_placement
from stado_like.job.budget import Ended, Gang
from stado_like.job.gang import MemberEnd, Whole
from stado_like.job.gang_records import Barrier, Join, Placement
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Budgets, End
from stado_like.job.states import Cause, Decision
from stado_like.job.terms import Terms, display_name
from stado_like.store.conditional import Won
from stado_like.store.protocol import list_all

_AT_ONCE = (Cause.GANG, Cause.BARRIER)


@dataclass(frozen=True, slots=True)
class Standing:
    """One look at a gang. `ended`: by rank, how it ended in this generation; `open`: the other ranks' attempts.
    `joined`: members that came later, and to which worker. `ready`: who was seen at the barrier.
    `whole`: what follows, once all have ended."""

    g: int
    placement: Placement | None
    barrier: Barrier | None
    ended: Mapping[int, MemberEnd] = field(default_factory=dict)
    open: Mapping[int, AttemptId] = field(default_factory=dict)
    joined: Mapping[AttemptId, str] = field(default_factory=dict)
    ready: frozenset[AttemptId] = frozenset()
    whole: Whole | None = None
    devices: Mapping[AttemptId, tuple[str, ...]] = field(default_factory=dict)
    """The only GPUs that a member may take where it was given to, of those that take every free one."""
    due: Mapping[AttemptId, float] = field(default_factory=dict)
    """When an open attempt may start that follows one of its own in this generation."""
    judged: str | None = None
    """What an early verdict says, where one stands."""

    @property
    def aborted(self) -> bool:
        return self.barrier is not None and not self.barrier.go

    @property
    def began(self) -> bool:
        """Whether its members may run."""
        return self.placement is not None and (
            not self.placement.barrier or (self.barrier is not None and self.barrier.go)
        )

    @property
    def bad(self) -> tuple[MemberEnd, ...]:
        """The ends for which the rest is stopped."""
        return tuple(one for _, one in sorted(self.ended.items()) if gang.is_bad(one.end))

    @property
    def doomed(self) -> bool:
        """Whether whoever has not ended yet must."""
        return self.aborted or bool(self.bad)

    @property
    def seats(self) -> dict[AttemptId, str]:
        """Every attempt that was given to a worker in this generation, and to which."""
        placed = self.placement.members if self.placement is not None else ()
        return {AttemptId.parse(one.attempt): one.worker for one in placed} | dict(self.joined)

    @property
    def aborts(self) -> int:
        """How many generations in a row never started, this one included."""
        if self.placement is None or not self.aborted:
            return 0
        return self.placement.aborts + 1

    @property
    def told(self) -> str:
        """Why it starts again, or will; empty: nothing has happened."""
        if self.barrier is not None and not self.barrier.go:
            return self.barrier.reason
        culprit = self.whole.culprit if self.whole is not None else next(iter(self.bad), None)
        if culprit is None:
            return ""
        if culprit.end.cause is Cause.PREEMPTED:  # all of it was
            return reasons.waiting_again(culprit.end.reason)
        return reasons.gang_restart(culprit.name, gang.why(culprit.end))

    @property
    def spent(self) -> Budgets:
        """What the gang has spent so far."""
        if self.whole is not None:
            return self.whole.budgets
        return self.placement.budgets if self.placement is not None else Budgets()

    @property
    def not_before(self) -> float:
        """When the next placement may be, store time."""
        if self.whole is None:
            return 0.0
        waits_s = gang.wait_after_aborts_s(self.aborts)
        last_at = max(one.end.ended_at for one in self.ended.values())
        return max(self.whole.not_before, last_at + waits_s) if waits_s else self.whole.not_before


def newest(bucket: Bucket, j: JobId) -> int:
    """The number of the newest generation that was placed; 0: none was. Raises `StoreUnavailable`."""
    g = 0
    for row in list_all(bucket.store, gang_keys.of_job(j)):
        try:
            found = gang_keys.parse(j, row.key)
        except BadRecord:
            continue  # `storage fsck` names it
        if found.kind == "placement":
            g = max(g, found.g)
    while any(bucket.present(gang_keys.placement(j, g + 1))):
        g += 1
    return g


def read_placement(bucket: Bucket, j: JobId, g: int) -> Placement | None:
    found = bucket.read(Placement, gang_keys.placement(j, g)) if g else None
    return found.record if found is not None else None


def read_barrier(bucket: Bucket, j: JobId, g: int) -> Barrier | None:
    found = bucket.read(Barrier, gang_keys.barrier(j, g)) if g else None
    return found.record if found is not None else None


def look_at(bucket: Bucket, j: JobId, terms: Terms) -> Standing:
    """Raises `StoreUnavailable`, `BadRecord`."""
    g = newest(bucket, j)
    placement, barrier = read_placement(bucket, j, g), read_barrier(bucket, j, g)
    joined, ready = _who_came(bucket, j, g)
    placed = placement.members if placement is not None else ()
    devices = {AttemptId.parse(one.attempt): one.devices for one in placed if one.devices}
    devices |= {a: one.devices for a, one in joined.items() if one.devices}
    ended: dict[int, MemberEnd] = {}
    going: dict[int, AttemptId] = {}
    due: dict[AttemptId, float] = {}
    for rank in range(terms.tasks):
        first = placement.attempts[rank] if placement is not None and rank < len(placement.attempts) else 1
        a, end, due_at = _follow(bucket, AttemptId(j, rank, first))
        if end is None:
            going[rank] = a
            if due_at:
                due[a] = due_at
        else:
            ended[rank] = gang.member_end(terms, a, end)
    verdict = bucket.verdict(j)
    judged = verdict.reason if verdict is not None and verdict.early else None
    whole = None
    if ended and not going:
        before = placement.budgets if placement is not None else Budgets()
        whole = gang.follows(terms, list(ended.values()), before, judged=g == 0 or judged is not None)
    to = {a: one.worker for a, one in joined.items()}
    return Standing(g, placement, barrier, ended, going, to, ready, whole, devices, due, judged)


def _who_came(bucket: Bucket, j: JobId, g: int) -> tuple[dict[AttemptId, Join], frozenset[AttemptId]]:
    joined: dict[AttemptId, Join] = {}
    ready: set[AttemptId] = set()
    for row in list_all(bucket.store, gang_keys.of_generation(j, g)) if g else ():
        try:
            found = gang_keys.parse(j, row.key)
        except BadRecord:
            continue
        if found.kind == "join" and found.attempt is not None:
            said = bucket.read(Join, row.key)
            if said is not None:
                joined[found.attempt] = said.record
        elif found.kind == "ready" and found.attempt is not None:
            ready.add(found.attempt)
    return joined, frozenset(ready)


def _follow(bucket: Bucket, a: AttemptId) -> tuple[AttemptId, End | None, float]:
    """From a rank's first attempt in a generation to the one that is open (with when it is due), or ended it."""
    end, due_at = bucket.end(a), 0.0
    while end is not None and end.decision is Decision.RETRY:
        a, due_at = a.next, end.due_ms / 1000
        end = bucket.end(a)
    return a, end, due_at


# ---- an end, and what stands once there is no restart


def as_it_stands(a: AttemptId, end: End, terms: Terms, standing: Standing) -> tuple[End, bool | None]:
    """A member's end that decided *gang*, and whether its task goes on: True, it starts again; False, it is over, and
    the end says how; None, the others have not all ended yet."""
    placement = standing.placement
    if placement is not None and placement.attempts[a.rank] > a.n:
        return end, True  # a later generation was placed
    if standing.judged is not None:
        nobody = Whole(False, end.budgets)
        return gang.as_ended(terms, nobody, gang.member_end(terms, a, end), judged=standing.judged), False
    if standing.whole is None:
        return end, None
    if standing.whole.restart:
        return end, True
    return gang.as_ended(terms, standing.whole, gang.member_end(terms, a, end)), False


# ---- before an end


def concerns(bucket: Bucket, a: AttemptId, terms: Terms, ended: Ended, generation: int, by: str) -> Gang | None:
    """How the end of a gang's attempt concerns the others, asked before it is written. Whoever ends a member before the
    verdict at the barrier has the barrier closed first: none starts beside one that has ended.

    `generation`: what the claim said; 0: nobody claimed it. None: it was never placed. Raises `StoreUnavailable`.
    """
    g = generation or newest(bucket, a.job)
    placement = read_placement(bucket, a.job, g)
    if placement is None or a.rank >= len(placement.attempts) or a.n < placement.attempts[a.rank]:
        return Gang.WHOLE if ended.cause in _AT_ONCE else None
    seated = str(a) in {one.attempt for one in placement.members}
    go = True
    if placement.barrier:
        why = f"{display_name(terms, a.rank)}: {ended.reason}"
        reason = (
            reasons.BARRIER_TIMED_OUT if ended.cause is Cause.BARRIER else reasons_placement.ended_before_start(why)
        )
        go = close(bucket, a.job, g, reason, by=by).go  # guard: abort before an early end
    if ended.cause in _AT_ONCE or not go:
        return Gang.WHOLE
    unstarted = ended.cause is Cause.UNDELIVERED and not seated
    return Gang.ALONE if unstarted or gang.restarts_alone(terms, a.rank) else Gang.WHOLE


def close(bucket: Bucket, j: JobId, g: int, reason: str, *, by: str, blamed: tuple[str, ...] = ()) -> Barrier:
    """Close the barrier of a generation, unless its verdict stands. Returns the verdict that stands."""
    standing = read_barrier(bucket, j, g)
    if standing is not None:
        return standing
    ours = Barrier(nonce=bucket.token(), go=False, reason=reason, blamed=blamed, by=by, at=bucket.now())
    return decide(bucket, j, g, ours)


def decide(bucket: Bucket, j: JobId, g: int, ours: Barrier) -> Barrier:
    won = bucket.decide(gang_keys.barrier(j, g), ours)  # guard: barrier is a create
    return ours if isinstance(won, Won) else codec.decode(Barrier, won.found.body, gang_keys.barrier(j, g))


# ---- the gate


@dataclass(frozen=True, slots=True)
class Placed:
    """What a claimer of a gang's attempt was given."""

    g: int
    placement: Placement
    barrier: Barrier | None
    joined: bool


def seat_of(bucket: Bucket, a: AttemptId, worker: str, g: int) -> Placed | str:
    """The placement by which a worker holds an attempt; else why it does not."""
    placement = read_placement(bucket, a.job, g)
    if placement is None:
        return "no placement of its gang names it"
    to = next((one.worker for one in placement.members if one.attempt == str(a)), None)
    joined = to is None
    if to is None:
        join = bucket.read(Join, gang_keys.join(a, g))
        if join is None:
            return f"generation {g} of its gang does not name it"
        to = join.record.worker
    if to != worker:
        return f"it was given to {to}"
    return Placed(g, placement, read_barrier(bucket, a.job, g), joined)
