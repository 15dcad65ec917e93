"""The reads of a tick: bucket -> `World`, with care about what an answer proves.

A listing shows who is there, never who is not; a read that failed is kept as "unread" or "unknown" with its reason.
What a listing's row shows unchanged is not read again: `Memory` keeps bodies by key and etag, and the places where the
slow sweeps go on (`sweeping`). A tick that starts with an empty memory is right, it only asks more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stado_like.bucket import groups, watched
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.look import look_at
from stado_like.bucket.row_reader import RowReader
from stado_like.bucket.tick_memory import Memory as Memory
from stado_like.bucket.tick_memory import Mending as Mending
from stado_like.errors import BadRecord, NewerRecord, StoreError
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Capacity, Claim, Observed
from stado_like.job.spec.limits import DEFAULT_HEARTBEAT_TTL_S
from stado_like.planning import liveness
from stado_like.planning.groups import Gathering
from stado_like.planning.world import Broadcast, Held, Look, OpenJob, SetAside, World
from stado_like.store.protocol import Row, Stat, Unchanged

LONG_QUEUE_FOR = 20
HEADS_AT_ONCE = 64
TTLS_REMEMBERED = 10_000


def load_world(bucket: Bucket, memory: Memory, *, young_s: float = 0.0) -> World:
    """Read what a plan needs beside the board and the sweep. Raises nothing for a failed read: the view says what it
    could not see. `young_s`: rows of open/ younger than this are left to their submitter.
    """
    reading = Reading(bucket, memory)
    reading.cursors()
    reading.list_ahead(keys.RUNNING, keys.CANCELS, keys.OPEN)
    memory.queue.forget_listings()
    held = reading.claims()
    broadcasts, silent = reading.broadcasts(wanted=bool(held))
    looks = reading.looks(held, broadcasts, silent)
    index = reading.whole_queue()
    later = reading.later(index)
    cancels = reading.parsed("cancels", keys.CANCELS, lambda row: keys.parse_cancel_index(row.key))
    opened = reading.parsed("open", keys.OPEN, lambda row: OpenJob(keys.parse_open_index(row.key), row.last_modified))
    for settled in memory.cancels.keys() - {keys.cancel_index(j, rank) for j, rank in cancels}:
        del memory.cancels[settled]
    now = bucket.now()
    opened_long = tuple(one for one in opened if now - one.since >= young_s)
    judged = {j for j, rank in cancels if rank is None}
    seen = watched.look(bucket, [one.job for one in opened_long if one.job not in judged], memory.watching, memory.jobs)
    reading.unread.update(seen.unread)
    reading.set_aside.extend(SetAside(*one) for one in seen.set_aside)
    gatherings = reading.gatherings(opened_long, judged)
    observed = reading.observed()
    if "open" not in reading.unread:
        _forget_jobs(memory, {one.job for one in opened})
    return World(
        now=now,
        looks=looks,
        broadcasts=broadcasts,
        later=later,
        cancels=cancels,
        open_jobs=tuple(_looked_after(memory, one) for one in opened_long),
        young=len(opened) - len(opened_long),
        gatherings=gatherings,
        waiters=tuple(seen.waiters),
        children=tuple(seen.children),
        late=tuple(seen.late),
        observed=observed,
        armed_here_s=_armed_here(bucket, memory, observed, looks),
        unread=reading.unread,
        set_aside=tuple(reading.set_aside),
        index=index,
    )


def _looked_after(memory: Memory, one: OpenJob) -> OpenJob:
    last = memory.last_mending(one.job)
    return replace(one, looked_at=last.looked_at, had_claims=last.had_claims) if last is not None else one


def _forget_jobs(memory: Memory, opened: set[JobId]) -> None:
    """Jobs that left open/ need no place in a sweep of their ranks."""
    for j in [j for j in memory.mended if j not in opened]:
        del memory.mended[j]
    for j in [j for j in memory.gathered if j not in opened]:
        del memory.gathered[j]
    memory.watching.forget_others(opened)
    places = (memory.cursors or {}).get("ranks")
    if isinstance(places, dict):
        names = {str(j) for j in opened}
        for name in [name for name in places if name not in names]:
            del places[name]


def _armed_here(bucket: Bucket, memory: Memory, observed: Observed, looks: tuple[Look, ...]) -> dict[str, float]:
    """For how long this process has seen each arming stand unchanged; what another process armed is not in it."""
    now_s = bucket.ambient.boot_s()
    kept: dict[str, tuple[tuple[str, float], float]] = {}
    signatures = {name: (one.etag, one.last_modified) for name, one in observed.armed.items()}
    for name, signature in signatures.items():
        known = memory.armed_here.get(name)
        if known is not None and known[0] == signature:
            kept[name] = known
    stood = {name: now_s - since for name, (_, since) in kept.items()}
    for look in looks:
        name = str(look.attempt)
        if not look.unknown and liveness.is_stale(look) and signatures.get(name) != look.signature:
            kept[name] = (look.signature, now_s)  # this tick arms it
            stood.pop(name, None)
    memory.armed_here = kept
    return stood


class Reading(RowReader):
    """The reads of one load."""

    def __init__(self, bucket: Bucket, memory: Memory) -> None:
        super().__init__(bucket, memory)
        self.words_read_at = bucket.ambient.boot_s()

    def claims(self) -> list[Held]:
        rows = self.rows("running", keys.RUNNING)
        self.forget_others(keys.RUNNING, rows)
        self.read_ahead(Claim, rows)
        found: list[Held] = []
        for row, now in rows:
            try:
                attempt = keys.parse_running(row.key)
                claim = self.body(Claim, row)
            except BadRecord as bad:
                self.set_aside.append(SetAside(row.key, bad.message))
                continue
            except StoreError as failed:
                self.unread["running"] = failed.message  # a claim whose holder is not known cannot be judged
                return []
            if claim is not None:
                found.append(Held(attempt, claim, row.etag, row.last_modified, now))
        return found

    def broadcasts(self, *, wanted: bool) -> tuple[dict[str, Broadcast], dict[str, str]]:
        """What each worker last said, and of which workers that could not be read, with why."""
        if not wanted:
            return {}, {}
        self.words_read_at = self.bucket.ambient.boot_s()
        rows = self.rows("capacity", keys.CAPACITY)
        self.forget_others(keys.CAPACITY, rows)
        self.read_ahead(Capacity, rows)
        found: dict[str, Broadcast] = {}
        failing: dict[str, str] = {}
        for row, now in rows:
            try:
                worker = keys.parse_capacity(row.key)
            except BadRecord as bad:
                self.set_aside.append(SetAside(row.key, bad.message))
                continue
            try:
                capacity = self.body(Capacity, row)
            except StoreError as failed:
                failing[worker] = failed.message
                continue
            if capacity is not None:
                found[worker] = Broadcast(worker, capacity, row.last_modified, now)
        return found, failing

    def looks(self, held: list[Held], broadcasts: dict[str, Broadcast], failing: dict[str, str]) -> tuple[Look, ...]:
        found = {one.attempt: Look(one, vouched=True) for one in held if liveness.is_vouched(one, broadcasts)}
        rest = [one for one in held if one.attempt not in found]
        for at in range(0, len(rest), HEADS_AT_ONCE):
            some = rest[at : at + HEADS_AT_ONCE]
            for one, ended in zip(some, self._ends(some), strict=True):
                found[one.attempt] = self._look(one, ended, failing.get(one.claim.worker, ""))
        return tuple(found[one.attempt] for one in held)

    def _ends(self, some: list[Held]) -> list[Stat | StoreError | None]:
        wanted = [keys.end(one.attempt) for one in some]
        try:
            return list(self.bucket.store.heads(wanted))
        except StoreError:
            return [self._end(key) for key in wanted]  # one by one: a single one that fails blinds nobody else

    def _end(self, key: str) -> Stat | StoreError | None:
        try:
            return self.bucket.store.head(key)
        except StoreError as failed:
            return failed

    def _look(self, one: Held, ended: Stat | StoreError | None, silent: str) -> Look:
        if isinstance(ended, StoreError):
            return Look(one, unknown=ended.message)
        try:
            look = look_at(self.bucket, one, self._ttl, ended=ended)
        except (StoreError, BadRecord) as failed:
            return Look(one, unknown=failed.message)
        if silent and liveness.is_stale(look):
            return Look(one, unknown=f"the broadcast of {one.claim.worker} could not be read: {silent}")
        # A look is as old as the oldest signal in it, and the workers' words were read before all looks.
        return replace(look, read_at=min(look.read_at, self.words_read_at))

    def _ttl(self, a: AttemptId) -> float:
        known = self.memory.ttls.get(a)
        if known is None:
            if len(self.memory.ttls) >= TTLS_REMEMBERED:
                self.memory.ttls.clear()
            of = self.memory.jobs.known(self.bucket, a.job)
            known = float(of.terms.for_rank(a.rank).ttl_s if of is not None else DEFAULT_HEARTBEAT_TTL_S)
            self.memory.ttls[a] = known
        return known

    def gatherings(self, opened: Iterable[OpenJob], cancelled: set[JobId]) -> tuple[Gathering, ...]:
        """The jobs with groups that wait for others."""
        found = []
        for one in opened:
            if one.job in cancelled or not self.memory.watching.has_dependent_group(one.job):
                continue  # its verdict stands, and releases nothing
            try:
                seen = groups.look_at(self.bucket, one.job, self.memory.gathered)
            except BadRecord as bad:
                self.set_aside.append(SetAside(str(one.job), bad.message))
                continue
            except StoreError as failed:
                self.unread["groups"] = failed.message
                break
            if seen is not None:
                found.append(seen)
        return tuple(found)

    def whole_queue(self) -> tuple[tuple[str, float], ...] | None:
        """Every row of queued/, where one page holds them all; None: it does not, or could not be had. A long queue is
        not asked again until its turn comes, by whatever process: its indexes are listed one by one."""
        places = self.memory.places
        if isinstance(left := places.pop("long", 0), int) and left > 0:
            places["long"] = left - 1
            return None
        try:
            page = self.bucket.store.list(keys.QUEUED)
        except StoreError:
            return None  # whoever lists an index finds out whether it can be had
        if page.more:
            places["long"] = LONG_QUEUE_FOR
            return None
        return tuple((row.key, row.last_modified) for row in page.rows)

    def later(self, index: tuple[tuple[str, float], ...] | None) -> tuple[keys.LaterEntry, ...]:
        """Retries in order of their times: every one that is due, and the rest of the page."""
        if index is not None:
            rows = (Row(key, "", 0, at) for key, at in index if key.startswith(keys.QUEUED_LATER))
            return self.parse(rows, lambda row: keys.parse_later(row.key))
        found: list[keys.LaterEntry] = []
        start_after = ""
        while True:
            try:
                page = self.bucket.store.list(keys.QUEUED_LATER, start_after=start_after)
            except StoreError as failed:
                self.unread["later"] = failed.message
                return tuple(found)
            found.extend(self.parse(page.rows, lambda row: keys.parse_later(row.key)))
            if not page.more or not page.rows or (found and found[-1].due_ms > page.now * 1000):
                return tuple(found)
            start_after = page.rows[-1].key

    def observed(self) -> Observed:
        etag, known = self.memory.observed
        try:
            answer = (
                self.bucket.store.get_if_changed(keys.OBSERVED, etag) if etag else self.bucket.store.get(keys.OBSERVED)
            )
            if isinstance(answer, Unchanged):
                return known
            if answer is None:
                known, etag = Observed(), ""
            else:
                known, etag = codec.decode(Observed, answer.body, keys.OBSERVED), answer.etag
        except NewerRecord as newer:
            self.unread["observed"] = newer.message  # not ours to overwrite
            return Observed()
        except BadRecord as bad:
            self.set_aside.append(SetAside(keys.OBSERVED, bad.message))
            return Observed()  # every arming is lost: deaths are decided a TTL later, and the record is written anew
        except StoreError as failed:
            self.unread["observed"] = failed.message
            return Observed()
        self.memory.observed = (etag, known)
        return known
