"""The records that concern placement, as the board that it decides upon.

Requests: none of its own while nothing waits and the queue is short. Else the listings of `capacity/`, `workers/`,
`inbox/` and `config/workspaces/` too, and of those and of jobs, open entries and ends only what has changed since the
last board that this process made.

A listing that failed gives no board: nothing is concluded from what could not be seen. A record that cannot be used is
set aside, and the rest goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from stado_like.bucket import holding, ordered_place, pausing
from stado_like.bucket.board_spots import Promise, spots
from stado_like.bucket.board_units import Lying, Reader
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.known_jobs import Known
from stado_like.bucket.load_world import Memory, Reading
from stado_like.bucket.queue_memory import given_of, unsplit_of
from stado_like.errors import BadRecord, StoreError
from stado_like.job import codec, keys
from stado_like.job.held_room import Holds
from stado_like.job.ids import AttemptId, JobId
from stado_like.job.keys import Order
from stado_like.job.records import Order as OrderRecord
from stado_like.job.wanted import Wanted
from stado_like.job.workspace import Workspace
from stado_like.planning.board import Board, Hold, Quota, Spot
from stado_like.planning.queue import Queue
from stado_like.planning.world import SetAside, World
from stado_like.store.protocol import Row, Unchanged

OPEN_LOOKED_AT = 1000
TEND_AGAIN_S = 60.0
NOBODY = Holds(nonce="")

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Given:
    """An order in an inbox. `refused`: why its worker will not; `devices`: the only GPUs it may take."""

    order: Order
    last_modified: float
    now: float
    refused: str = ""
    devices: tuple[str, ...] = ()

    @property
    def is_late(self) -> bool:
        return bool(self.refused) or self.now - self.last_modified > ordered_place.CLAIMED_WITHIN_S


def with_queue(
    bucket: Bucket, memory: Memory, world: World, *, whole: bool = False, supposed: tuple[JobId, Known] | None = None
) -> World:
    """The world with what waits on it (`World.queue`), or why that cannot be told (`World.unread`).

    `whole`: however many jobs are read for it; a tick leaves some to the next. `supposed`: as if this job had been
    submitted now.
    """
    if "running" in world.unread:
        return world  # said already
    loading = _Loading(bucket, memory, world, whole=whole, supposed=supposed)
    try:
        queue = loading.queue()
    except StoreError as failed:
        return replace(world, unread={**world.unread, "place": failed.message})
    return replace(
        world, queue=queue, on_queue=loading.on_queue(), set_aside=(*world.set_aside, *loading.reading.set_aside)
    )


def load_board(bucket: Bucket, memory: Memory, world: World) -> Board:
    """Raises `StoreError` where it cannot be told what waits."""
    return _Loading(bucket, memory, world).queue().board


class _Loading:
    """The reads of one board."""

    def __init__(
        self,
        bucket: Bucket,
        memory: Memory,
        world: World,
        *,
        whole: bool = False,
        supposed: tuple[JobId, Known] | None = None,
    ) -> None:
        self.whole = whole
        self.supposed = supposed
        self.bucket = bucket
        self.memory = memory
        self.world = world
        self.reading = Reading(bucket, memory)
        self.claimed = frozenset(look.attempt for look in world.looks)

    def queue(self) -> Queue:
        """Raises `StoreError`."""
        if "running" in self.world.unread:
            raise _unseen("running", self.world.unread["running"])
        now = self.world.now
        held, opened = self._entries(self._held()), self._entries(self._open())
        given = given_of(self.memory.cursors, now)
        quiet = not held and not opened and self.supposed is None
        holds = self._holds(quiet=quiet)
        nonce = (self.memory.queue.holds or NOBODY).nonce
        if quiet:
            return Queue(Board(now, (), (), holds=holds, holds_nonce=nonce), tended=self._tended())
        words = () if self.world.broadcasts else (keys.CAPACITY,)
        self.reading.list_ahead(keys.WORKSPACES, keys.INBOX, keys.WANTED, *words)
        workspaces = self._bodies("workspaces", keys.WORKSPACES, Workspace, keys.parse_workspace)
        orders = self._orders()
        standing = [one for one in orders if one.order.kind == "place" and not one.is_late]
        ordered = {one.order.attempt for one in orders}
        standing += self._claimed_meanwhile(given, ordered, workspaces)  # guard: no order is missed
        reader = Reader(
            bucket=self.bucket,
            memory=self.memory.queue,
            now=now,
            workspaces=workspaces,
            given=given,
            unsplit=unsplit_of(self.memory.cursors, now),
            passed_over=self.claimed | {one.order.attempt for one in standing},
            released=self._released(),
            busy=bool(holds),
        )
        if self.whole:
            reader.jobs_left = reader.bodies_left = len(held) + len(opened)
        reader.held(held)
        reader.opened(opened)
        if self.supposed is not None:
            reader.suppose(*self.supposed)
        board = Board(
            now=now,
            spots=self._spots(reader, standing, frozenset(one.order.attempt for one in orders if _stops(one.order))),
            units=tuple(reader.found.units),
            quotas={name: _quota(one) for name, one in workspaces.items() if one.quota.limits},
            holds=holds,
            holds_nonce=nonce,
            queue_paused=self._paused(),
        )
        self.memory.queue.forget_others((entry.key for entry, _ in opened), self.claimed)
        self.reading.set_aside += reader.found.set_aside
        late = [one.order for one in orders if one.order.kind == "place" and one.is_late]
        return Queue(
            board=board,
            held_at=self.memory.queue.holds.at if self.memory.queue.holds is not None else 0.0,
            misplaced=tuple(reader.found.misplaced),
            late=tuple(one for one in late if one.attempt not in self.claimed),
            keys=reader.found.keys,
            first=reader.found.first,
            said=reader.found.said,
            gangs=reader.found.gangs,
            tended=self._tended(reader.found.resting),
        )

    def on_queue(self) -> dict[JobId, dict[int, int]]:
        """Of the jobs in open/, which ranks lie there."""
        opened = {one.job for one in self.world.open_jobs}
        found: defaultdict[JobId, dict[int, int]] = defaultdict(dict)
        for a in self.memory.queue.seen if opened else ():
            if a.job in opened:
                found[a.job][a.rank] = max(a.n, found[a.job].get(a.rank, 0))
        return found

    # ---- listings

    def _rows(self, room: str, prefix: str) -> list[tuple[Row, float]]:
        rows = self.reading.rows(room, prefix)
        if room in self.reading.unread:
            raise _unseen(room, self.reading.unread[room])
        return rows

    def _held(self) -> list[tuple[str, float]]:
        if self.world.index is None:
            return [(row.key, row.last_modified) for row, _ in self._rows("held", keys.QUEUED_HELD)]
        return [one for one in self.world.index if one[0].startswith(keys.QUEUED_HELD)]

    def _open(self) -> list[tuple[str, float]]:
        if self.world.index is None:
            rows = self.bucket.store.list(keys.QUEUED_OPEN, limit=OPEN_LOOKED_AT).rows
            return [(row.key, row.last_modified) for row in rows]
        return [one for one in self.world.index if one[0].startswith(keys.QUEUED_OPEN)]

    def _entries(self, rows: list[tuple[str, float]]) -> list[Lying]:
        found = []
        for key, written_at in rows:
            try:
                found.append((keys.parse_entry(key), written_at))
            except BadRecord as bad:
                self.reading.set_aside.append(SetAside(key, bad.message))
        self.memory.queue.seen += [entry.attempt for entry, _ in found]
        return found

    def _bodies(self, room: str, prefix: str, kind: type[R], parse: Callable[[str], str]) -> dict[str, R]:
        found: dict[str, R] = {}
        rows = self._rows(room, prefix)
        self.reading.read_ahead(kind, rows)
        for row, _ in rows:
            try:
                name = parse(row.key)
            except BadRecord as bad:
                self.reading.set_aside.append(SetAside(row.key, bad.message))
                continue
            body = self.reading.body(kind, row)
            if body is not None:
                found[name] = body
        return found

    def _orders(self) -> list[Given]:
        found = []
        rows = self._rows("inbox", keys.INBOX)
        self.memory.queue.inbox = [row for row, _ in rows]
        for row, now in rows:
            try:
                parsed = keys.parse_order(row.key)
            except BadRecord as bad:
                self.reading.set_aside.append(SetAside(row.key, bad.message))
                continue
            said = self.reading.body(OrderRecord, row) if parsed.kind == "place" else None
            refused, devices = (said.refused, said.devices) if said is not None else ("", ())
            found.append(Given(parsed, row.last_modified, now, refused, devices))
        return found

    def _claimed_meanwhile(
        self, given: Mapping[str, Mapping[str, float]], ordered: Set[AttemptId], workspaces: Mapping[str, Workspace]
    ) -> list[Given]:
        """Claims that came after running/ was listed, of orders that were gone before the inboxes were: they are in
        neither listing, and their workspace's quota would not count them. As the orders that they were. (Of room the
        machines say themselves what they hold.)"""
        accounted, now = self.memory.queue.accounted, self.world.now
        newest = {name: max((at, worker) for worker, at in workers.items()) for name, workers in given.items()}
        accounted &= {(name, at) for name, (at, _) in newest.items()}
        asked = []
        for name, (at, worker) in newest.items():
            a = AttemptId.parse(name)
            workspace = workspaces.get(a.job.workspace)
            if workspace is None or not workspace.quota.limits or a in ordered or (name, at) in accounted:
                continue
            accounted.add((name, at))  # from now on it is claimed where running/ says so
            if a not in self.claimed:
                asked.append((a, worker))
        there = self.bucket.present(*(keys.running(a) for a, _ in asked)) if asked else ()
        rows = [each for each, claimed in zip(asked, there, strict=True) if claimed]
        return [Given(keys.parse_order(keys.order(worker, "place", a, 1)), now, now) for a, worker in rows]

    # ---- single records

    def _holds(self, *, quiet: bool) -> tuple[Hold, ...]:
        """The holds that stand. `quiet`: nothing waits, and where this process last read that nothing is held, it is
        not asked again."""
        memory, store = self.memory.queue, self.bucket.store
        if quiet and memory.holds is not None and not memory.holds.holds:
            return ()
        answer = store.get_if_changed(keys.HOLDS, memory.holds_etag) if memory.holds_etag else store.get(keys.HOLDS)
        if answer is None:
            memory.holds, memory.holds_etag = NOBODY, ""
        elif not isinstance(answer, Unchanged):
            try:
                memory.holds, memory.holds_etag = codec.decode(Holds, answer.body, keys.HOLDS), answer.etag
            except BadRecord as bad:
                self.reading.set_aside.append(SetAside(keys.HOLDS, bad.message))
                memory.holds, memory.holds_etag = NOBODY, ""  # written anew, as if nothing were held
        return holding.on_board(memory.holds or NOBODY)

    def _paused(self) -> str:
        pause = pausing.read(self.bucket)
        return pause.why if pause is not None else ""

    def _released(self) -> frozenset[JobId]:
        """Jobs that waited for others, and may go."""
        return frozenset((*self.memory.watching.let_go, *(one.job for one in self.world.waiters if one.released)))

    def _tended(self, resting: Container[JobId] = ()) -> tuple[JobId, ...]:
        """Gangs that are looked after now: each tick while not all of their tasks are claimed, else once a minute. Of
        those that rest there is nothing to look after."""
        now_s = self.bucket.ambient.boot_s()
        claims = Counter(look.attempt.job for look in self.world.looks if not look.ended_at)
        tended, found = self.memory.queue.tended, []
        for one in self.world.open_jobs:
            known = self.memory.watching.known.get(one.job)
            if known is None or not known[0].gang or one.job in resting:
                continue
            if claims[one.job] >= known[0].tasks and now_s - tended.get(one.job, -TEND_AGAIN_S) < TEND_AGAIN_S:
                continue
            tended[one.job] = now_s
            found.append(one.job)
        opened = {one.job for one in self.world.open_jobs}
        for j in [j for j in tended if j not in opened]:
            del tended[j]
        return tuple(found)

    # ---- machines

    def _spots(self, reader: Reader, standing: list[Given], stopping: frozenset[AttemptId]) -> tuple[Spot, ...]:
        broadcasts = self.world.broadcasts
        if not broadcasts:
            broadcasts, _ = self.reading.broadcasts(wanted=True)
        for unread in (self.world.unread, self.reading.unread):
            if "capacity" in unread:
                raise _unseen("capacity", unread["capacity"])
        promises = [
            Promise(
                one.order.attempt, one.order.worker, one.last_modified + ordered_place.CLAIMED_WITHIN_S, one.devices
            )
            for one in standing
            if one.order.attempt not in self.claimed
        ]
        wanted = self._bodies("workers", keys.WANTED, Wanted, keys.parse_wanted)
        looks, memory = self.world.looks, self.memory.queue
        return spots(self.bucket, memory, broadcasts, wanted, looks, promises, stopping, reader.known)


def _stops(order: Order) -> bool:
    return order.kind == "stop"


def _quota(workspace: Workspace) -> Quota:
    said = workspace.quota
    return Quota(
        gpus=said.max_gpus,
        cpu_millis=said.max_cpus * 1000 if said.max_cpus is not None else None,
        memory_bytes=said.max_memory_bytes,
        running_jobs=said.max_running_jobs,
    )


def _unseen(room: str, why: str) -> StoreError:
    return StoreError(f"{room} could not be listed: {why}", "The next tick looks again.")
