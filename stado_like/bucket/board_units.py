"""Waiting work for a board: the entries of `queued/held` and of the first page of `queued/open`, as units.

An entry of `held` is read through its job (once by a process, for all its entries): only there stands what concerns
several tasks. One of `open` says in its own name what it asks for, and inside it the rest; its time limit is asked for
only while room is held, when it counts who ends in time.

A gang is asked of its own records (`bucket/gang`): its entries only tell that it waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stado_like.bucket import entries, gang
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.known_jobs import Known
from stado_like.bucket.queue_memory import QueueMemory
from stado_like.errors import BadRecord
from stado_like.job import demands, keys
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.keys import Entry, Envelope
from stado_like.job.records import Entry as EntryRecord
from stado_like.job.split import undecided
from stado_like.job.terms import Ask, Terms
from stado_like.job.workspace import Workspace
from stado_like.planning import lanes
from stado_like.planning.board import Member, Near, Unit
from stado_like.planning.networks import near_of
from stado_like.planning.queue import Misplaced
from stado_like.planning.world import SetAside

BODIES_A_BOARD = 200
JOBS_A_BOARD = 2000
MOVES_A_BOARD = 500
RATHER_ELSEWHERE_S = 30.0
"""For so long a gang's next placement waits for machines other than those that failed it."""
NEAR_NOTHING = Near()
NOBODY: frozenset[str] = frozenset()

Lying = tuple[Entry, float]
"""An entry, and when it was written."""


@dataclass(slots=True)
class Units:
    """What came of it; see `planning.queue.Queue`."""

    units: list[Unit] = field(default_factory=list)
    misplaced: list[Misplaced] = field(default_factory=list)
    keys: dict[AttemptId, str] = field(default_factory=dict)
    first: dict[JobId, tuple[AttemptId, float]] = field(default_factory=dict)
    said: dict[JobId, str] = field(default_factory=dict)
    gangs: dict[JobId, int] = field(default_factory=dict)
    resting: set[JobId] = field(default_factory=set)
    """Gangs that wait as they did when a tick last looked."""
    set_aside: list[SetAside] = field(default_factory=list)


@dataclass(slots=True)
class Reader:
    """Makes units of entries. `passed_over`: attempts that are claimed or were given to a worker. `waiting`: jobs whose
    awaited jobs have not come yet; `busy`: room is held."""

    bucket: Bucket
    memory: QueueMemory
    now: float
    workspaces: Mapping[str, Workspace]
    given: Mapping[str, Mapping[str, float]]
    unsplit: Mapping[tuple[str, str], str]
    passed_over: frozenset[AttemptId]
    released: frozenset[JobId]
    busy: bool
    found: Units = field(default_factory=Units)
    jobs_left: int = JOBS_A_BOARD
    bodies_left: int = BODIES_A_BOARD
    unusable: set[JobId] = field(default_factory=set)
    lying: defaultdict[JobId, list[AttemptId]] = field(default_factory=lambda: defaultdict(list))
    """Of jobs that are not plain, whose entries lie in `held` and are nobody's yet."""
    kinds: dict[int, tuple[Envelope, Ask, bool]] = field(default_factory=dict)
    """By the terms that a kind of jobs shares, which live as long as its jobs are known: the envelope, the ask where
    they may run, and whether only a tick starts them."""

    def known(self, a: AttemptId) -> Known | None:
        """None: the job is gone, or cannot be used (it is set aside). Raises `StoreUnavailable`."""
        if a.job in self.unusable:
            return None
        try:
            known = self.memory.jobs.known(self.bucket, a.job)
        except BadRecord as bad:
            self.found.set_aside.append(SetAside(str(a.job), bad.message))
            known = None
        if known is None:
            self.unusable.add(a.job)
        return known

    # ---- what only a placement may start

    def held(self, lying: list[Lying]) -> None:
        """What is known at once; of the rest as many jobs as may be read for one board, the others with the next."""
        seen, plain = self.memory.jobs.seen, self._plain
        others: list[Lying] = []
        for one in lying:
            if one[0].attempt in self.passed_over:
                continue
            known = seen(one[0].attempt.job)
            if known is not None and known.is_plain:
                plain(*one, known)
            else:
                others.append(one)
        unread = dict.fromkeys(entry.attempt.job for entry, _ in others if seen(entry.attempt.job) is None)
        late = set(list(unread)[self.jobs_left :])
        self.memory.jobs.read(self.bucket, (j for j in unread if j not in late))
        self._others([one for one in others if one[0].attempt.job not in late])

    def _plain(self, entry: Entry, since: float, known: Known) -> None:
        """One of very many of a kind: what follows from the kind is found once."""
        kind = self.kinds.get(id(known.terms))
        if kind is None:
            terms = known.terms
            placed = bool(terms.held) or self._has_quota(terms.workspace)
            kind = keys.envelope(terms.ask), self._in_pools(terms.ask, terms.workspace), placed
            self.kinds[id(terms)] = kind
        envelope, ask, placed = kind
        a, terms = entry.attempt, known.terms
        if a.rank:
            return
        if entry.envelope != envelope:
            self.found.misplaced.append(Misplaced(entry.key, a, ""))
        elif placed:
            unit = Unit(
                a.job,
                (Member(a, ask),),
                terms.priority,
                known.created_ms,
                near=NEAR_NOTHING,
                time_limit_s=terms.time_limit_s,
                waiting_since=since,
                avoid=frozenset(self.given.get(str(a), ())) if self.given else NOBODY,
            )
            self._add(entry, since, unit, entry.key)
        elif len(self.found.misplaced) < MOVES_A_BOARD:
            self.found.misplaced.append(Misplaced(entry.key, a, keys.QUEUED_OPEN))

    def _others(self, lying: list[Lying]) -> None:
        for entry, _ in lying:
            self.lying[entry.attempt.job].append(entry.attempt)
        for entry, since in lying:
            a = entry.attempt
            if a.job in self.found.gangs:
                continue
            known = self.known(a)
            if known is None or a.rank >= known.terms.units or self._awaits(known.terms, a):
                continue
            if not known.terms.trouble and not _counts(known, a):
                continue
            if known.terms.shaped and entry.envelope != keys.envelope(known.terms.for_rank(a.rank).ask):
                self.found.misplaced.append(Misplaced(entry.key, a, ""))  # written before its total was split
                continue
            if known.terms.trouble:
                self.found.said[a.job] = known.terms.trouble
                self._note(a, since)
                continue
            if known.terms.gang and known.terms.shaped:
                self._gang(entry, since, known)
                continue
            if known.terms.held or self._has_quota(known.terms.workspace):
                self._add(entry, since, self.one(known, a, since), entry.key)
            elif len(self.found.misplaced) < MOVES_A_BOARD:
                self.found.misplaced.append(Misplaced(entry.key, a, keys.QUEUED_OPEN))

    def _awaits(self, terms: Terms, a: AttemptId) -> bool:
        return bool(terms.after) and a.n == 1 and a.job not in self.released

    def _has_quota(self, workspace: str) -> bool:
        found = self.workspaces.get(workspace)
        return found is not None and found.quota.limits

    def one(self, known: Known, a: AttemptId, since: float) -> Unit:
        terms = known.terms.for_rank(a.rank)
        resources, group = resources_of(known, a.rank), known.terms.group_of(a.rank).name
        return Unit(
            job=a.job,
            members=(Member(a, self._in_pools(terms.ask, terms.workspace)),),
            priority=terms.priority,
            created_ms=known.created_ms,
            near=near_of(resources) if known.terms.several else NEAR_NOTHING,
            time_limit_s=terms.time_limit_s,
            waiting_since=since,
            shape=demands.to_split(resources) if not known.terms.shaped else {},
            group=group,
            unsplit="" if known.terms.shaped else self.unsplit.get((str(a.job), group), ""),
            avoid=frozenset(self.given.get(str(a), ())),
        )

    def _add(self, entry: Entry, since: float, unit: Unit, key: str) -> None:
        self.found.units.append(unit)
        self.found.keys[entry.attempt] = key
        self._note(entry.attempt, since)

    def _note(self, a: AttemptId, since: float) -> None:
        before = self.found.first.get(a.job)
        if before is None or (a.rank, a.n) < (before[0].rank, before[0].n):
            self.found.first[a.job] = (a, since)

    def _gang(self, entry: Entry, since: float, known: Known) -> None:
        """Its members, as its own records say; one look for all of its entries."""
        j, terms = entry.attempt.job, known.terms
        rests = self.memory.rests.waits(j, self.lying[j], self.now)
        try:
            waits = rests or gang.waits(self.bucket, j, terms)
        except BadRecord as bad:
            self.found.set_aside.append(SetAside(str(j), bad.message))
            self.unusable.add(j)
            return
        if rests is not None:
            self.found.resting.add(j)
        else:
            self.memory.rests.note(j, self.lying[j], waits, self.now)
        self.found.gangs[j] = waits.generation if waits is not None else 0
        if waits is None:
            return
        self._note(waits.members[0], since)
        if waits.not_before > self.now:
            if waits.reason:
                self.found.said[j] = waits.reason
            return
        rather = self.now - max(waits.not_before, since) < RATHER_ELSEWHERE_S
        avoid = waits.avoid if rather else frozenset()
        ones = [self.one(known, a, since) for a in waits.members if not (a in self.passed_over and not waits.together)]
        if not waits.together:
            self.found.units += [replace(one, avoid=one.avoid | avoid) for one in ones]
            return
        members = tuple(one.members[0] for one in ones)
        least = waits.least if waits.least < len(members) else 0
        self.found.units.append(replace(ones[0], members=members, least=least, avoid=avoid))

    # ---- what is only thought of

    def suppose(self, j: JobId, known: Known) -> None:
        """A job that nobody submitted, as if it had been now."""
        terms = known.terms
        if terms.trouble:
            self.found.said[j] = terms.trouble
        elif terms.gang and terms.shaped:
            ones = [self.one(known, AttemptId(j, rank, 1), self.now) for rank in range(terms.tasks)]
            members = tuple(one.members[0] for one in ones)
            least = terms.least if terms.barrier and terms.least < len(members) else 0
            together = [replace(ones[0], members=members, least=least)] if terms.barrier else ones
            self.found.units += together
        else:
            by_tick = bool(terms.held) or self._has_quota(terms.workspace)
            for group in terms.groups:
                for rank in lanes.head(terms, group):
                    if not _counts(known, AttemptId(j, rank, 1)):
                        continue
                    unit = self.one(known, AttemptId(j, rank, 1), self.now)
                    self.found.units.append(replace(unit, placed_by_tick=by_tick))
        self._note(AttemptId(j, 0, 1), self.now)

    # ---- what workers claim by themselves

    def opened(self, lying: list[Lying]) -> None:
        for entry, since in lying:
            if entry.attempt in self.passed_over:
                continue
            if self._has_quota(entry.attempt.job.workspace):
                self._under_quota(entry, since)
                continue
            unit = self._open_one(entry, since)
            if unit is not None:
                self.found.units.append(unit)
                self._note(entry.attempt, since)

    def _under_quota(self, entry: Entry, since: float) -> None:
        """It is moved to where only a placement starts it, and may be placed at once."""
        if len(self.found.misplaced) >= MOVES_A_BOARD:
            return
        self.found.misplaced.append(Misplaced(entry.key, entry.attempt, keys.QUEUED_HELD))
        known = self.known(entry.attempt)
        if known is not None and entry.attempt.rank < known.terms.units:
            target = keys.QUEUED_HELD + entry.key.removeprefix(keys.QUEUED_OPEN)
            self._add(entry, since, self.one(known, entry.attempt, since), target)

    def _open_one(self, entry: Entry, since: float) -> Unit | None:
        envelope, inside = entry.envelope, self.memory.entries.get(entry.key)
        cache, mark = self.memory.jobs.cache, repr(since)
        if inside is None and (kept := cache.body(EntryRecord, entry.key, mark)) is not None:
            inside = self.memory.entries[entry.key] = entries.ask_in(kept), kept.time_limit_s
        if inside is None and (envelope.picky or self.busy):
            if self.bodies_left <= 0:
                return None  # the rest with the next boards
            self.bodies_left -= 1
            try:
                found = self.bucket.read(EntryRecord, entry.key)
            except BadRecord as bad:
                self.found.set_aside.append(SetAside(entry.key, bad.message))
                return None
            if found is None:
                return None  # claimed since it was listed
            inside = entries.ask_in(found.record), found.record.time_limit_s
            self.memory.entries[entry.key] = inside
            cache.keep_body(entry.key, mark, found.record)
        ask, limit_s = inside or (Ask(envelope.cores * 1000, envelope.mib * keys.MIB, envelope.gpus), None)
        return Unit(
            job=entry.attempt.job,
            members=(Member(entry.attempt, self._in_pools(ask, entry.attempt.job.workspace)),),
            priority=entry.priority,
            created_ms=entry.created_ms,
            placed_by_tick=False,
            near=NEAR_NOTHING,
            time_limit_s=limit_s,
            waiting_since=since,
        )

    def _in_pools(self, ask: Ask, workspace: str) -> Ask:
        return in_pools(ask, self.workspaces.get(workspace))


def _counts(known: Known, a: AttemptId) -> bool:
    """Whether the rank is one that a plan looks at: while a total is not split, only those whose number is open. The
    ranks of the other groups follow from it."""
    return known.terms.shaped or known.terms.group_of(a.rank).name in undecided(known.document)


def in_pools(ask: Ask, workspace: Workspace | None) -> Ask:
    """The ask on the machines that its workspace may use."""
    if workspace is None or not workspace.pools:
        return ask
    return replace(ask, labels={**ask.labels, **workspace.pools})


def resources_of(known: Known, rank: int) -> Mapping[str, Any]:
    """What the template of a rank requests."""
    spec = known.document["spec"]
    named = spec.get("task_groups") or ()
    at = next((i for i, group in enumerate(known.terms.groups) if rank in group.ranks), 0)
    template = named[at]["task_template"] if named else spec["task_template"]
    found: Mapping[str, Any] = template.get("requested_resources") or {}
    return found
