"""The rank that runs on when its block is over: how it becomes an attempt of its own, in the same process.

    control   another `Control` over the tree that was started already, at once: it waits for no store
    I/O       its files  →  its claim  →  the block's end  →  settled  →  is the claim still ours?  →  looks and beats

Not obvious because of the order. The claim stands before the block's end names the rank: between the two, whoever finds
the claim knows that the block decides about it; after the two it is a claim like any other. If the claim is refused, or
the block turns out to have been ended by others, the rank may be started elsewhere any moment: its tree is killed and
nothing is written of it. If it ends before its claim was sent, there is nothing to claim: its block carries it.

What is on the disk first (`alive`, `launch`, `task.json`, `claim.json`) is what every attempt has, so that an agent
that starts meanwhile takes it for what it is.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace

from stado_like.ambient import Ambient
from stado_like.bucket import entries
from stado_like.bucket.bucket import Bucket
from stado_like.errors import BadRecord, Conflict, StoreError
from stado_like.job import codec, keys, reasons
from stado_like.job.records import Change, Claim, History
from stado_like.job.states import Cause, TaskState
from stado_like.job.terms import Ask
from stado_like.store.conditional import Won
from stado_worker import undying
from stado_worker.holdings import keep_claim
from stado_worker.shim import report
from stado_worker.shim.attempt_dir import BY_SUPERVISOR, AliveLock, AttemptDir
from stado_worker.shim.block_ran import RankEnd
from stado_worker.shim.block_runner import GoesOn
from stado_worker.shim.control import Control
from stado_worker.shim.heartbeat import FENCED_LOOK_S, RETRY_FIRST_S, RETRY_MOST_S, Io
from stado_worker.shim.life import Life, Over
from stado_worker.shim.log_shipping import LogShipping
from stado_worker.shim.runner import Runner
from stado_worker.shim.signs import watch_of
from stado_worker.shim.task import Read, carried


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block runs: what of it does not depend on the rank. `group`: of this supervisor, or empty."""

    read: Read
    folder: AttemptDir
    life: Life
    bucket: Bucket
    ambient: Ambient
    group: str


class RankOn:
    """Made by the control thread. `control`, `runner` and `life` are its from then on, the rest is the other's."""

    def __init__(self, block: Place, one: GoesOn, folder: AttemptDir) -> None:
        self._block = block
        self._bucket = block.bucket
        self.folder = folder
        terms = block.read.whole
        plain = carried(block.read, one.rank)
        self.a = plain.a
        claim = replace(
            plain.task.claim,
            nonce=self._bucket.token(),
            attempt=str(self.a),
            queue_key=entries.open_key(plain.task.job, terms, self.a),
            order="",
        )
        self.read = replace(plain, task=replace(plain.task, claim=claim))
        self._claim = claim
        self._body = codec.encode(claim)
        self.life = _life_of(block, one)
        self.runner: Runner = one.runner
        self.control = Control(self.read, self.life, one.runner, folder.stop, block.ambient, self._keep_exit)
        self.control.take_over(one.running_boot_s)
        self._one = one
        self._alive: AliveLock | None = None
        self._launched = self._sent = self._refused = self._verified = self._forgone = False
        self.claimed = False
        """Its claim stood when its block's end was composed."""
        self.handed_over = False
        """Its block's end stands, and names it."""
        self._retry_s = RETRY_FIRST_S
        self._io: Io | None = None

    def _keep_exit(self, over: Over) -> None:
        undying.note(self.folder, over.stuck, self._block.ambient.boot_id)
        report.keep(self.folder, report.facts_of(self.read, self.life, over), fsync=self.read.task.fsync)

    # ---- before its block's end

    def is_decided(self) -> bool:
        """Whether it is known by now if the block carries it. Raises `StoreUnavailable`: then nothing is known, and the
        same claim is sent again."""
        if self.claimed or self._forgone:
            return True
        if self._refused:
            return self._is_gone()
        if not self._sent:
            if self.life.over is not None:
                self._forgone = True
                return True
            try:
                self._prepare()
            except OSError:
                return False  # a full disk: the block waits for it, and proves life for it
            except Conflict:
                return self._refuse()
        self._sent = True
        if not isinstance(self._bucket.decide_bytes(keys.running(self.a), self._body), Won):
            return self._refuse()
        self.claimed = True
        return True

    def _prepare(self) -> None:
        """Raises OSError, and `Conflict` where another has the attempt here: it cannot be, and then is theirs."""
        folder, block = self.folder, self._block
        if self._alive is None:
            self._alive = folder.take_alive(ambient=block.ambient)
        if not self._launched:
            self._launch()
        folder.write_task(codec.fields_of(self.read.task))
        task, ambient = self.read.task, block.ambient
        keep_claim(folder, self._claim, self._body, self._ask(), task.claimed_boot_s, ambient.boot_id, fsync=task.fsync)

    def _launch(self) -> None:
        """Raises as `_prepare`."""
        try:
            created = self.folder.create_launch(BY_SUPERVISOR + self._block.group)
        except OSError:
            with suppress(OSError):  # one without its text, which is our own: made again when there is room
                os.unlink(f"{self.folder.path}/launch")
            raise
        if not created:
            raise Conflict(f"{self.a} was launched by another", "Nothing to do: that one goes on.")
        self._launched = True

    def _ask(self) -> Ask:
        """The room that was reserved for the block is its own now."""
        plain = self._block.folder.read_claim() or {}
        try:
            return codec.from_plain(Ask, plain["ask"], "claim.json")
        except (BadRecord, KeyError):
            return self.read.terms.ask.on(self._claim.devices)

    def _refuse(self) -> bool:
        """The claim is another's: kill it, and let its block say that it was not delivered."""
        self._refused = True
        self.life.fence()
        return self._is_gone()

    def _is_gone(self) -> bool:
        return self.life.killed or self.life.over is not None

    def end(self) -> RankEnd:
        """How its block carries it, where it does."""
        over, one = self.life.over, self._one
        if over is None:
            over = Over(Cause.UNDELIVERED, reasons.UNDELIVERED, None, self.life.now())
        return RankEnd(
            rank=one.rank,
            cause=over.cause,
            reason=over.reason,
            exit_code=over.exit.exit_code if over.exit else None,
            signal=over.exit.signal_name if over.exit else None,
            started_at=self.life.started_at,
            running_at=self.life.running_at,
            ended_at=over.ended_at,
            notes=over.notes,
        )

    # ---- after it

    def step(self) -> float | None:
        """As `Io.step`."""
        try:
            if not self.handed_over:
                return self._drop()
            if self._io is None:
                self._io = self._make_io()
            if not self._verified:
                self._verify()
        except (StoreError, BadRecord):
            self._retry_s = min(self._retry_s * 2, RETRY_MOST_S)
            return self._block.ambient.uniform(self._retry_s / 4, self._retry_s / 2)
        waiting_s = self._io.step()
        if waiting_s is None:
            self._release()
        return waiting_s

    def follow(self, until: float) -> None:
        if self._io is not None:
            self._io.follow(until)

    def _make_io(self) -> Io:
        block, read, life, bucket = self._block, self.read, self.life, self._bucket
        shipping = LogShipping(bucket, self.a, self.folder.log)
        watch = watch_of(read, life, bucket, self.folder, shipping, block.ambient)
        return Io(read, life, bucket, self.folder, shipping, block.ambient, watch=watch)

    def _verify(self) -> None:
        """Whoever found the claim before its block's end may have dropped it."""
        found = self._bucket.claim(self.a)
        if found is None or found.record.nonce != self._claim.nonce:  # guard: goes on under its own claim
            self.life.fence()
        self._verified = True

    def _drop(self) -> float | None:
        """Its block carries it, or was another's: it is over with it."""
        if not self._is_gone():
            self.life.fence()
            return FENCED_LOOK_S
        if self._sent:
            drop_own_claim(self._bucket, self._claim)
        report.note_done(self.folder, ours=self._forgone, at=self.life.now())
        self._release()
        return None

    def _release(self) -> None:
        if self._alive is not None:
            self._alive.release()


def drop_own_claim(bucket: Bucket, claim: Claim) -> None:
    """A claim that never came to mean anything; never another's. Raises `StoreUnavailable`."""
    a = keys.AttemptId.parse(claim.attempt)
    found = bucket.claim(a)
    if found is not None and found.record.nonce == claim.nonce:  # guard: only our own claim is dropped
        bucket.drop(keys.running(a))


def _life_of(block: Place, one: GoesOn) -> Life:
    """It runs, and has since it was started in its block. Whatever is asked of that is asked of it."""
    task, unit = block.read.task, block.life
    life = Life(
        block.ambient, task.claimed_at, task.claimed_boot_s, wake_io=unit.wake_io, wake_control=unit.wake_control
    )
    life.state, life.reason = TaskState.RUNNING, reasons.RUNNING
    life.started_at, life.running_at = one.started_at, one.running_at
    life.history = History()
    for state, reason, at in (
        (TaskState.PREPARING, reasons.PREPARING, task.claimed_at),
        (TaskState.STARTING, reasons.STARTED, one.started_at),
        (TaskState.RUNNING, reasons.RUNNING, one.running_at),
    ):
        life.history = life.history.add(Change(state=state.value, reason=reason, at=at))
    with unit.lock:
        life.accepted_boot_s, life.looked_boot_s = unit.accepted_boot_s, unit.looked_boot_s
    return life
