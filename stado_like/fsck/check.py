"""Every promise of the protocol that a bucket at rest can be asked for, and what to do where one is broken.

The bucket is walked once: a few long listings, whose rows are brought together job by job, so that one job at a time is
in memory beside the indexes. A job about which a rule has something to say is a suspect: it is looked at again by its
keys, `settle_s` later, until two looks agree; so a bucket in use is not accused of what it was just doing. Only then is
it reported or, on request, repaired (`repair`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from stado_like.bucket import load
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.side_by_side import side_by_side
from stado_like.errors import BadRecord
from stado_like.fsck import blocks, bodies, indexes, picture, tasks, workers
from stado_like.fsck.checkpoints import check_checkpoints
from stado_like.fsck.finding import Finding, Findings, found
from stado_like.fsck.gangs import check_gangs
from stado_like.fsck.keys import DATA, Walk
from stado_like.fsck.picture import JobPicture, Traces
from stado_like.fsck.repair import repair_job
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.job.terms import Terms
from stado_like.store.protocol import Row

AT_ONCE = 64
LOOKS_MOST = 4
TOLD_EVERY = 100

Progress = Callable[[str, int], None]
Rule = Callable[[JobPicture], Findings]

RULES: tuple[Rule, ...] = (
    indexes.records_name_their_job,
    indexes.status_keys_are_known,
    tasks.open_attempts_can_be_found,
    tasks.lanes_release_in_order,
    tasks.groups_release_in_order,
    tasks.ends_are_numbered_without_gaps,
    tasks.nothing_follows_a_final_end,
    tasks.ends_belong_to_a_rank,
    tasks.heartbeats_belong_to_an_attempt,
    tasks.budgets_are_spent_once,
    blocks.blocks_tell_every_rank,
    indexes.entries_are_of_open_attempts,
    indexes.claims_are_of_open_attempts,
    indexes.orders_are_of_open_attempts,
    indexes.decisions_are_carried_out,
    indexes.cancel_indexes_have_a_decision,
    indexes.ended_jobs_are_final,
    indexes.open_index_tells_open_jobs,
    indexes.deletions_are_finished,
)


@dataclass(slots=True)
class Checked:
    """`findings` are left; `repaired` were found and are gone. `counts`: what was looked at, by kind."""

    findings: list[Finding] = field(default_factory=list)
    repaired: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Suspect:
    id: JobId
    traces: Traces
    findings: set[Finding]


def _silent(what: str, n: int) -> None:
    """Nobody watches."""


def check(
    bucket: Bucket,
    *,
    audit: bool = False,
    repair: bool = False,
    settle_s: float = 0.0,
    progress: Progress = _silent,
) -> Checked:
    """Check a bucket. `audit`: read every record. `progress` is told what is being looked at and how many were.

    Raises `StoreUnavailable`: what could not be read is never taken for clean.
    """
    return _Check(bucket, audit, progress).run(repair, settle_s)


class _Check:
    """One walk over a bucket, with what is known of each job from the indexes."""

    def __init__(self, bucket: Bucket, audit: bool, progress: Progress) -> None:
        self._bucket = bucket
        self._audit = audit
        self._progress = progress
        self._walk = Walk(bucket, self._walked)
        self._traces: dict[JobId, Traces] = {}
        self._buried: set[JobId] = set()
        self._counts: Counter[str] = Counter()
        self._suspects: list[_Suspect] = []
        self._twice: list[tuple[JobId, JobId]] = []

    def run(self, repair: bool, settle_s: float) -> Checked:
        self._indexes()
        general = list(self._jobs())
        self._walk.strangers()
        done = Checked(counts=self._counts)
        started_s = self._bucket.ambient.boot_s()
        if repair:
            self._repair(done)
        else:
            done.findings += self._confirm(settle_s, started_s)
        done.findings += [*self._walk.findings, *general, *self._alive_twice()]
        done.findings.sort()
        self._counts["objects"] = self._walk.objects
        return done

    def _walked(self) -> None:
        if self._walk.objects % TOLD_EVERY == 0:
            self._progress("objects", self._walk.objects)

    # ---- the indexes

    def _of(self, j: JobId) -> Traces:
        known = self._traces.get(j)
        if known is None:
            known = self._traces[j] = Traces()
        return known

    def _indexes(self) -> None:
        """In the order in which an attempt passes: entry, claim; its end comes with its job."""
        walk = self._walk
        walk.parsed(keys.QUEUED_LATER, self._later)
        walk.parsed(keys.QUEUED_OPEN, self._entry)
        walk.parsed(keys.QUEUED_HELD, self._entry)
        walk.parsed("inbox/", self._order)
        walk.parsed(keys.RUNNING, self._claim)
        walk.parsed(keys.CANCELS, self._cancel)
        walk.parsed(keys.OPEN, self._open)
        walk.parsed(keys.DELETED, self._tombstone)

    def _entry(self, row: Row) -> None:
        a = keys.parse_entry(row.key).attempt
        self._of(a.job).entries[row.key] = a
        self._counts["entries"] += 1

    def _later(self, row: Row) -> None:
        a = keys.parse_later(row.key).attempt
        self._of(a.job).entries[row.key] = a
        self._counts["entries"] += 1

    def _order(self, row: Row) -> None:
        a = keys.parse_order(row.key).attempt
        self._of(a.job).orders[row.key] = a
        self._counts["orders"] += 1

    def _claim(self, row: Row) -> None:
        a = keys.parse_running(row.key)
        self._of(a.job).claims.add(a)
        self._counts["claims"] += 1

    def _cancel(self, row: Row) -> None:
        j, rank = keys.parse_cancel_index(row.key)
        self._of(j).cancels.add(rank)
        self._counts["cancels"] += 1

    def _open(self, row: Row) -> None:
        self._of(keys.parse_open_index(row.key)).opened_at = row.last_modified
        self._counts["open"] += 1

    def _tombstone(self, row: Row) -> None:
        self._buried.add(keys.parse_tombstone(row.key))
        self._counts["deleted"] += 1

    # ---- jobs

    def _jobs(self) -> Findings:
        """Every job that anything names, judged; the suspects are kept. Findings of no job are handed on."""
        said = workers.Workers()
        capacities = self._walk.rows(keys.CAPACITY)
        yield from workers.check_capacity(self._bucket, capacities, said)
        self._counts["workers"] = len(said.said)
        asks: dict[JobId, Terms | None] = {}
        pictures = self._pictures()
        while batch := list(islice(pictures, AT_ONCE)):
            for p, findings in zip(batch, side_by_side(self._bucket, self._judged, batch), strict=True):
                self._count(p)
                if findings:
                    self._suspects.append(_Suspect(p.id, p.traces, set(findings)))
                for a in p.traces.claims if self._audit else ():
                    workers.add_claim(self._bucket, said, a, asks)
        if self._audit:
            yield from workers.check_room(said)
            yield from bodies.check_tombstones(self._bucket, self._buried)
        for row in self._walk.rest(every=self._audit):
            if self._audit:
                yield from bodies.check_state(self._bucket, row.key)

    def _judged(self, p: JobPicture) -> list[Finding]:
        return self._judge(picture.read(self._bucket, p, every_end=self._audit))

    def _judge(self, p: JobPicture) -> list[Finding]:
        findings = [*p.troubles, *(one for rule in RULES for one in rule(p))]
        if self._audit:
            findings += bodies.check_bodies(self._bucket, p)
            findings += check_checkpoints(self._bucket, p)
            findings += check_gangs(self._bucket, p)
        return list(dict.fromkeys(findings))

    def _count(self, p: JobPicture) -> None:
        self._counts["jobs"] += p.is_there
        self._counts["ends"] += sum(len(numbers) for numbers in p.status.ends.values())
        self._counts["ends_read"] += len(p.ends)
        if self._counts["jobs"] % TOLD_EVERY == 0:
            self._progress("jobs", self._counts["jobs"])

    def _pictures(self) -> Iterator[JobPicture]:
        """Rows of jobs/, of status/ and of the data, brought together in the order of their folders; then the jobs that
        only an index names."""
        streams = [
            self._folders(keys.JOBS),
            self._folders(keys.STATUS),
            *(self._data(room) for room in DATA),
        ]
        alive: JobId | None = None
        for _, parts in groupby(heapq.merge(*streams, key=lambda part: part[0]), key=lambda part: part[0]):
            p: JobPicture | None = None
            for _, j, room, rows in parts:
                if p is None:
                    p = self._begun(j)
                if room == keys.JOBS:
                    p.is_there = True
                elif room == keys.STATUS:
                    p.status = load.listed_of(j, rows)
                else:
                    p.traces.data.add(f"{room}{j.folder}/")
            assert p is not None
            if p.is_there and not p.is_dying:
                if alive is not None and (alive.workspace, alive.name) == (p.id.workspace, p.id.name):
                    self._twice.append((alive, p.id))
                alive = p.id
            yield p
        for j in sorted(self._traces):
            yield self._begun(j)

    def _begun(self, j: JobId) -> JobPicture:
        traces = self._traces.pop(j, None) or Traces()
        traces.buried = j in self._buried
        return JobPicture(j, traces=traces)

    def _folders(self, room: str) -> Iterator[tuple[str, JobId, str, Sequence[Row]]]:
        """The rows of jobs/ or status/, job by job. Both end a folder's name with a letter that sorts before any that
        a longer name could have there, so their orders agree."""
        for j, rows in groupby(self._walk.rows(room), key=lambda row: self._owner(room, row)):
            if j is not None:
                yield f"{j.folder}/", j, room, list(rows) if room == keys.STATUS else ()

    def _owner(self, room: str, row: Row) -> JobId | None:
        try:
            self._walk.judge_size(row)
            if room == keys.JOBS:
                return keys.parse_job(row.key)
            workspace, name, *rest = row.key[len(room) :].split("/")
            if not rest:
                raise BadRecord(f"{row.key!r} is no key of a job's status")
            return JobId.parse(f"{workspace}.{name}")
        except (BadRecord, ValueError) as bad:
            self._walk.foreign(row.key, str(bad))
            return None

    def _data(self, room: str) -> Iterator[tuple[str, JobId, str, Sequence[Row]]]:
        for folder, j in self._walk.jobs_with_data(room):
            yield f"{folder}/", j, room, ()

    # ---- suspects

    def _fresh(self, one: _Suspect) -> JobPicture:
        return picture.fresh(self._bucket, one.id, one.traces, every_end=self._audit)

    def _confirm(self, settle_s: float, since_s: float) -> list[Finding]:
        """Look at every suspect again until two looks agree; what only one of them shows is no finding."""
        left: list[Finding] = []
        waiting = self._suspects
        for look in range(LOOKS_MOST):
            if not waiting:
                break
            ambient = self._bucket.ambient
            wait_s = settle_s - (ambient.boot_s() - since_s)
            if wait_s > 0:
                ambient.sleep(wait_s)
            since_s = ambient.boot_s()
            moving: list[_Suspect] = []
            for n, one in enumerate(waiting):
                if n % TOLD_EVERY == 0:
                    self._progress("suspects", n)
                now = set(self._judge(self._fresh(one)))
                if now <= one.findings or look == LOOKS_MOST - 1:
                    left += now & one.findings
                else:
                    moving.append(_Suspect(one.id, one.traces, now))
            waiting = moving
        return left

    def _repair(self, done: Checked) -> None:
        for n, one in enumerate(self._suspects):
            if n % TOLD_EVERY == 0:
                self._progress("suspects", n)
            outcome = repair_job(self._bucket, lambda one=one: self._fresh(one), self._judge)  # type: ignore[misc]
            done.findings += outcome.left
            done.repaired += outcome.done
        done.repaired.sort()

    def _alive_twice(self) -> Findings:
        for older, newer in self._twice:
            here = (keys.job(older), keys.job(newer), keys.tombstone(older), keys.tombstone(newer))
            if self._bucket.present(*here) == [True, True, False, False]:
                yield found(
                    "name-alive-twice", keys.job(newer), f"{older} and {newer} are two lives of one name at once"
                )
