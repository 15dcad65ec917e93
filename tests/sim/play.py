"""One bucket, a few hands, a judge: the stage of the crash matrix and of the interleavings.

A `Hand` is a worker reduced to the transitions: it claims, starts, ends and settles through the shipped `bucket/`,
and keeps on its disk what a real one keeps there before each deciding request. Its death loses all but the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stado_coordinator.tick import Tick
from stado_like.bucket import cancel, claim, delete, end, order, submit
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Open, Taken, Unsure
from stado_like.bucket.end import Seen as SeenEnd
from stado_like.bucket.settle import settle
from stado_like.errors import Conflict, NotFound, StoreError, StoreUnavailable, TickHeld
from stado_like.job import codec, keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End, Heartbeat, Job
from stado_like.job.states import Cause, TaskState
from stado_like.job.terms import terms_of
from stado_like.store.protocol import list_all
from tests.sim import block_hand, placed_hand
from tests.sim.ambient import VirtualAmbient
from tests.sim.block_hand import Carried
from tests.sim.checkers import Judge
from tests.sim.fault_store import FaultStore, SharedBucket
from tests.sim.faults import NoFaults
from tests.sim.world import World

TTL_S = 10
TIMEOUT_S = 300
ROUNDS = 80
HELD_ROUNDS = 8
DAY_S = 25 * 3600.0
Outcomes = Mapping[tuple[str, int, int], Cause | Carried]
"""(job name, rank, attempt) -> why it ends, where it is not exit 0; of a block's rank also that it is given back."""


def document(name: str = "train", tasks: int = 0, width: int = 0, **changed: Any) -> dict[str, Any]:
    """A stored specification. `tasks`: an array of so many; `width`: its max_parallel; `changed`: fields of the
    task."""
    spec: dict[str, Any] = {
        "task_template": {"command": "true", "heartbeat_ttl_seconds": TTL_S, **changed},
    }
    if tasks:
        spec["array"] = {"size": tasks, **({"max_parallel": width} if width else {})}
    return {"metadata": {"name": name, "workspace": "default"}, "spec": spec}


def grouped(name: str = "grp", tasks: int = 2, **engine: Any) -> dict[str, Any]:
    """A job of one engine, and `tasks` clients that wait for it to run. `engine`: fields of the engine's task."""
    one = {"command": "true", "heartbeat_ttl_seconds": TTL_S}
    many = {"node_selection": {"mode": "Any", "count": tasks}}
    groups = [
        {"name": "engine", "task_template": {**one, **engine}},
        {
            "name": "client",
            "depends_on": [{"group_name": "engine"}],
            "task_template": {**one, "requested_resources": many},
        },
    ]
    return {"metadata": {"name": name, "workspace": "default"}, "spec": {"task_groups": groups}}


def held(name: str = "gang", tasks: int = 2) -> dict[str, Any]:
    """A job that only a placement may start."""
    task = {"command": "true", "requested_resources": {"machines": tasks}}
    return {"metadata": {"name": name, "workspace": "default"}, "spec": {"start": "Gang", "task_template": task}}


def waiting(name: str = "next", awaited: str = "train", state: str = "Completed", tasks: int = 0) -> dict[str, Any]:
    """A job that starts once the first incarnation of `awaited` came to `state`. `tasks`: an array, capped at two."""
    made = document(name, tasks, 2 if tasks else 0)
    made["spec"]["after"] = [{"job": str(id_of(awaited)), "state": state}]
    return made


def child_of(parent: str = "train", name: str = "child", tasks: int = 0) -> dict[str, Any]:
    made = document(name, tasks, 2 if tasks else 0)
    made["metadata"]["parent"] = str(id_of(parent))
    return made


def impatient(name: str = "soon", tasks: int = 0, timeout_s: int = TIMEOUT_S) -> dict[str, Any]:
    """A job whose tasks wait only so long for a machine."""
    made = document(name, tasks, 2 if tasks else 0)
    made["spec"]["scheduling_timeout_seconds"] = timeout_s
    return made


def finishing(name: str = "run") -> dict[str, Any]:
    """Rank 0 serves, rank 1 works, and the run is over when that one is."""
    one = {"command": "true", "heartbeat_ttl_seconds": TTL_S}
    groups = [{"name": "serve", "task_template": one}, {"name": "work", "task_template": one}]
    spec = {"task_groups": groups, "complete_with": "work"}
    return {"metadata": {"name": name, "workspace": "default"}, "spec": spec}


def id_of(name: str = "train", k: int = 1) -> JobId:
    return JobId("default", name, k)


@dataclass
class Kept:
    """What a hand has on its disk of one attempt."""

    claim: Claim
    body: bytes
    claimed_at: float = 0.0
    job: Job | None = None
    started: bool = False
    end_body: bytes | None = None
    begun: list[int] = field(default_factory=list)
    of: AttemptId | None = None
    """`begun`: of a block, the ranks that were started. `of`: of a rank that is to go on, its block, until that has
    ended."""


class Play:
    def __init__(self, seed: int = 0, outcomes: Outcomes | None = None) -> None:
        self.world = World(seed)
        self.shared = SharedBucket(self.world)
        self.judge = Judge(self.shared)
        self.outcomes: Outcomes = outcomes or {}
        self._ticks = 0
        self.places = False
        """Whether hands say what their machines have, so that ticks place."""
        self.hands: list[Hand] = []

    def close(self) -> None:
        self.world.stop()
        self.shared.close()

    def bucket(self, name: str, process: str = "") -> Bucket:
        """The bucket as `name` sees it. `process`: tells a later process of the same actor from the first."""
        ambient = VirtualAmbient(self.world, name + process)
        return Bucket(FaultStore(self.shared, name), ambient=ambient, budget_s=2.0)

    def hand(self, name: str) -> Hand:
        """A worker. What it still holds when all comes to rest is brought to its end, unless it died or was let go."""
        return Hand(self, name, self.bucket(name))

    def keep(self, hand: Hand) -> None:
        self.hands.append(hand)

    # ---- what people do

    def submit(self, bucket: Bucket, doc: Mapping[str, Any], request_id: str = "req") -> JobId:
        done = submit.submit(bucket, doc, request_id=request_id)
        if isinstance(done, submit.Submitted):
            self.judge.seen.acknowledge(done.id)
        return done.id

    def cancel(self, bucket: Bucket, j: JobId) -> None:
        cancel.cancel_job(bucket, j)
        self.judge.seen.cancel_acknowledged(j)

    def stop(self, bucket: Bucket, j: JobId, rank: int) -> None:
        cancel.stop_task(bucket, j, rank)
        self.judge.seen.cancel_acknowledged(j, rank)

    def requeue(self, bucket: Bucket, j: JobId, rank: int = 0) -> None:
        order.requeue(bucket, j, rank, by="ada")

    def delete(self, bucket: Bucket, j: JobId) -> None:
        delete.delete_job(bucket, j)

    # ---- the coordinator

    def tick(self, name: str = "") -> None:
        """One tick in a process of its own."""
        self._ticks += 1
        Tick(self.bucket(name or f"tick-{self._ticks}"), cache=self.shared.disk).step()

    # ---- to the end

    def drain(self) -> None:
        """Heal, mend and work until nothing is left to do; then judge what came to rest."""
        self.shared.faults = NoFaults()
        drainer = self.hand("drainer")
        resident = Tick(self.bucket("resident"), cache=self.shared.disk)
        for round_number in range(ROUNDS):
            for hand in (drainer, *self.hands) if self.places else ():
                placed_hand.announce(hand)
            try:
                resident.step()
            except TickHeld:
                self.world.advance(601.0)
                continue
            if round_number == HELD_ROUNDS and not self.places:
                self._cancel_what_is_held()
            for hand in (drainer, *self.hands) if self.places else ():
                hand.resume()
                placed_hand.take_given(hand)
            drainer.obey()
            drainer.work_all()
            for hand in self.hands:
                hand.resume()
                hand.obey()
                hand.finish_all()
            if not self._left():
                break
            self.world.advance(DAY_S if round_number == ROUNDS // 2 else 16.0)
        resident.step()
        self.judge.at_rest()
        self.judge.verify()

    def _cancel_what_is_held(self) -> None:
        """Nobody places anything here: a person has waited long enough."""
        seen = self.judge.seen
        for j in sorted(j for j, terms in seen.terms.items() if terms.held):
            if seen.holds(keys.job(j)) and j not in seen.buried:
                unless_over(lambda j=j: self.cancel(self.bucket("ada"), j))  # type: ignore[misc]

    def _left(self) -> bool:
        rooms = ("queued/", "running/", "open/", "cancels/", "inbox/")
        return any(key.startswith(rooms) for key in self.shared.contents())

    def result(self) -> dict[str, Any]:
        """The bucket as it came to rest, without what differs between two right ways there: nonces, times, who did
        it."""
        shown: dict[str, Any] = {}
        seen = self.judge.seen
        for j in sorted(seen.jobs):
            if j in seen.buried:
                shown[str(j)] = "deleted"
                continue
            if not seen.holds(keys.job(j)):
                continue
            tasks = {}
            for rank in sorted(seen.finished[j]):
                last = seen.final_end(j, rank)
                record = seen.end_records[last] if last else None
                tasks[rank] = (record.state.value, vars_of(record)) if record else None
            verdict = self._state(keys.verdict(j))
            shown[str(j)] = {"tasks": tasks, "verdict": verdict, "final": self._state(keys.final(j))}
        return shown

    def _state(self, key: str) -> str | None:
        body = self.shared.peek(key)
        return None if body is None else str(codec.decode_plain(body, key)["state"])


def vars_of(record: End) -> tuple[int, int, int]:
    spent = record.budgets
    return (spent.failures, spent.machine, spent.preemptions)


@dataclass
class Hand:
    """A worker's hand. `crash_to_disk`: what is on `disk` is all that a restarted one has."""

    play: Play
    name: str
    bucket: Bucket
    disk: dict[AttemptId, Kept] = field(default_factory=dict)

    def restarted(self) -> Hand:
        """The same worker after kill -9: a new process over the same disk."""
        return Hand(self.play, self.name, self.play.bucket(self.name, process="again"), self.disk)

    # ---- claim

    def take(self, key: str) -> bool:
        """Claim an entry and start its attempt. Raises `StoreUnavailable` when the store did not say enough."""
        a = keys.parse_entry(key).attempt
        if a in self.disk:
            return False
        record = Claim(nonce=self.bucket.token(), attempt=str(a), worker=self.name, boot_id="b", queue_key=key)
        self.keep_claim(a, record)
        return self.go_on(a)

    def keep_claim(self, a: AttemptId, record: Claim) -> None:
        self.disk[a] = Kept(record, codec.encode(record), self.bucket.now())

    def go_on(self, a: AttemptId) -> bool:
        """From the claim that is on disk to the started process."""
        kept = self.disk[a]
        sent = claim.send(self.bucket, a, kept.body, kept.claim.queue_key)
        if isinstance(sent, Taken):
            del self.disk[a]
            return False
        if isinstance(sent, Unsure):
            raise StoreUnavailable(sent.why)
        opened = claim.gate(self.bucket, a, kept.claim)
        if isinstance(opened, Unsure):
            raise StoreUnavailable(opened.why)
        if not isinstance(opened, Open):
            del self.disk[a]
            return False
        claim.confirm(self.bucket, a, opened, kept.claim)
        kept.job = opened.job
        if placed_hand.must_wait(opened) and not placed_hand.meet(self, a):
            return False
        kept.started = True
        block_hand.start(self, a)
        self.beat(a)
        return True

    def beat(self, a: AttemptId) -> None:
        beat = Heartbeat(
            seq=1, nonce=self.disk[a].claim.nonce, worker=self.name, state=TaskState.RUNNING, ttl_s=TTL_S
        )
        self.bucket.put(keys.heartbeat(a), beat)

    def undo(self, a: AttemptId) -> None:
        claim.undo(self.bucket, a, self.disk[a].claim)
        del self.disk[a]

    # ---- end

    def end(self, a: AttemptId, cause: Cause = Cause.NONE) -> None:
        """End an attempt that this hand started, and settle it: compose, keep on disk, commit, settle, forget."""
        kept = self.disk[a]
        job = kept.job
        assert job is not None, "ended without a start"
        if block_hand.is_block(self, a):
            block_hand.end(self, a, cause)
            return
        if kept.end_body is None:
            seen = SeenEnd(worker=self.name, by=self.name, claimed_at=kept.claimed_at, generation=kept.claim.generation)
            before = end.budgets_before(self.bucket, a)
            ended = Ended(cause, cause.value or "exit 0")
            composed = end.compose(self.bucket, a, terms_of(job.document), before, ended, seen)
            kept.end_body = codec.encode(composed)
        committed = end.commit(self.bucket, a, kept.end_body)
        if isinstance(committed, end.Ours):
            settle(self.bucket, a, committed.end, job=job, queue_key=kept.claim.queue_key)
        del self.disk[a]

    def look(self, a: AttemptId) -> bool:
        """The supervisor's look: whether a verdict or a stop asks it to end."""
        ended, judged, stopped = self.bucket.present(keys.end(a), keys.verdict(a.job), keys.stop(a.job, a.rank))
        if ended:
            self.disk.pop(a, None)
        return not ended and (judged or stopped)

    def obey(self) -> None:
        """Orders in its inbox, as its agent and its supervisors carry them out: a graver stop prevails."""
        for given in order.stops_for(self.bucket, self.name, {}):
            kept = self.disk.get(given.attempt)
            if kept is not None and kept.job is not None:
                stopped = self.look(given.attempt)
                if given.attempt in self.disk:
                    self.end(given.attempt, Cause.REQUESTED if stopped else given.cause)
            if given.attempt not in self.disk:
                self.bucket.drop(given.key)

    # ---- over and over

    def resume(self) -> None:
        """After a restart: what was ended is committed, what was only claimed is asked again. Its processes live on."""
        for a, kept in sorted(self.disk.items()):
            if kept.end_body is not None:
                self.end(a)
            elif not kept.started and kept.of is None:
                self.go_on(a)

    def work_all(self) -> None:
        """Take every entry there is, and bring everything held to its end."""
        for row in list(list_all(self.bucket.store, keys.QUEUED_OPEN)):
            self.take(row.key)
        self.finish_all()

    def finish_all(self) -> None:
        for a in sorted(self.disk):
            self.finish(a)

    def finish(self, a: AttemptId) -> None:
        if a not in self.disk or self.disk[a].of is not None:
            return  # gone with its block, or not yet by itself
        if self.look(a):
            self.end(a, Cause.REQUESTED)
        elif a in self.disk and not self.disk[a].started and self.play.places:
            self.go_on(a)  # at the barrier
        elif a in self.disk:
            self.end(a, block_hand.alone(self.play.outcomes.get((a.job.name, a.rank, a.n), Cause.NONE)))


def unless_over(act: Callable[[], None]) -> None:
    try:
        act()
    except (Conflict, NotFound):
        return  # somebody was faster: nothing to acknowledge


def stubborn(act: Callable[[], None], times: int = 8) -> bool:
    """What a person or a loop does when the store did not answer: the same again. False: it never did."""
    for _ in range(times):
        try:
            act()
            return True
        except StoreError:
            continue
    return False
