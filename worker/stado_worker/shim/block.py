"""A block under a supervisor: what stands beside `Control` and `Io` when the attempt is a unit of several ranks.

    Control ── BlockRunner ── one rank after the other          Io ── BlockIo ── the block's end
                    └── the rank that goes on: RankOn ── its own Control, and after the block's end its own Io

To both it looks like one command. Everything of a process comes through `make`, so that the simulator drives the very
same blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stado_like.ambient import Ambient
from stado_like.bucket.bucket import Bucket
from stado_like.job import blocks, keys
from stado_like.job.budget import Ended
from stado_like.job.states import Cause
from stado_worker.shim import block_report
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.block_goes_on import Place, RankOn
from stado_worker.shim.block_ran import RanFile
from stado_worker.shim.block_runner import BlockRunner
from stado_worker.shim.heartbeat import Io
from stado_worker.shim.life import Life, Over
from stado_worker.shim.ordered import read_order
from stado_worker.shim.report import Composed, Facts, facts_of, keep, send
from stado_worker.shim.runner import Runner
from stado_worker.shim.task import Read


def is_block(read: Read) -> bool:
    return blocks.is_unit(read.whole, read.a.rank)


class Block:
    """`make`: the runner of one rank. `handed_over` is called by the I/O thread once the block is settled and one of
    its ranks goes on. `rank`: that one, made by control before the block is over."""

    def __init__(
        self,
        read: Read,
        folder: AttemptDir,
        life: Life,
        bucket: Bucket,
        ambient: Ambient,
        make: Callable[[int], Runner],
        group: str = "",
        handed_over: Callable[[RankOn], None] = lambda rank: None,
    ) -> None:
        self._place = Place(read, folder, life, bucket, ambient, group)
        ranks = blocks.ranks_of(read.whole, read.a.rank)
        self._ran = RanFile(read.a, ranks, folder)
        self.runner = BlockRunner(ranks, make, self._ran, life, ambient)
        self._shipping = block_report.BlockShipping(bucket, read, folder, self._ran)
        self.rank: RankOn | None = None
        self._handed_over = handed_over
        self._hurried = False
        self._facts: Facts | None = None
        self._composed: Composed | None = None

    def io(self) -> BlockIo:
        """What the other thread drives."""
        place = self._place
        unit = Io(
            place.read,
            place.life,
            place.bucket,
            place.folder,
            self._shipping,
            place.ambient,
            saved=self.ready,
            block=self,
        )
        return BlockIo(unit, self)

    # ---- control

    def stop_file(self) -> Path:
        """Of the rank that runs: it was told of this one."""
        rank = self.runner.rank
        return self._ran.folder_of(rank).stop if rank is not None else self._place.folder.stop

    def close(self, over: Over) -> None:
        """Before the other thread hears that the block is over."""
        self.runner.close(over)
        goes_on = self.runner.goes_on
        if goes_on is not None and self.rank is None:
            self.rank = RankOn(self._place, goes_on, self._ran.folder_of(goes_on.rank))

    # ---- I/O

    def hurry(self) -> None:
        self._hurried = True
        self.runner.hurry()
        self._place.life.wake_control()

    def ready(self) -> bool:
        """Whether the block's end can be composed. Raises `StoreUnavailable`."""
        rank = self.rank
        if rank is None:
            return True
        self._pass_on(rank)
        return rank.is_decided()

    def _pass_on(self, rank: RankOn) -> None:
        """What is asked of the block is asked of the one that is left of it."""
        order = read_order(self._place.folder)
        if order is not None:
            rank.life.ask_stop(order.cause, order.reason)
        stop = self._place.life.stop
        if stop is not None:
            rank.life.ask_stop(stop.cause, stop.reason)

    def report(self, over: Over, notes: tuple[str, ...]) -> None:
        """Compose once, send until the answer is definite, settle. Raises `StoreUnavailable`."""
        place, rank = self._place, self.rank
        if self._facts is None:
            facts = facts_of(place.read, place.life, over)
            self._facts = replace(facts, notes=(*facts.notes, *notes))
        if self._composed is None:
            self._composed = self._compose(self._facts)
        send(place.bucket, place.read, place.folder, self._composed)
        standing, ours = place.bucket.end(place.read.a), self._composed.end
        at = place.life.now()
        kept = {*self._ran.kept, *((rank.a.rank,) if rank is not None and not rank.claimed else ())}
        block_report.close_folders(place.read, place.folder, kept, at)
        if rank is None or not rank.claimed:
            return
        if standing is not None and ours is not None and standing.nonce == ours.nonce:
            self._pass_on(rank)
            rank.handed_over = True
            if self._hurried:
                rank.life.nudge()  # perhaps it is the one that is waited for
            self._handed_over(rank)

    def _compose(self, facts: Facts) -> Composed:
        place, rank, ran = self._place, self.rank, self._ran
        claimed = rank is not None and rank.claimed
        if rank is not None and not claimed and rank.a.rank not in ran.ran.ended:
            ran.ended(rank.end())
            ran.flush()
        for one in ran.long:
            ran.ran.ended[one] = replace(ran.ran.ended[one], log=self._shipping.uploaded(one))
        stop = place.life.stop
        stopped = Ended(stop.cause, stop.reason) if stop is not None and stop.cause is Cause.REQUESTED else None
        end, body = block_report.compose(
            place.bucket,
            place.read,
            facts,
            ran.ran,
            place.folder.path.parent,
            goes_on=rank.a.rank if rank is not None and claimed else None,
            stopped=stopped,
        )
        facts = replace(facts, record=body.decode())
        place.bucket.ahead(keys.end(place.read.a), body)
        keep(place.folder, facts, fsync=place.read.task.fsync)
        return Composed(facts, end)


class BlockIo:
    """The I/O of a block, and then of the rank that goes on."""

    def __init__(self, unit: Io, block: Block) -> None:
        self._unit = unit
        self._block = block
        self._unit_over = False

    @property
    def due_s(self) -> float:
        return self._unit.due_s

    @property
    def ends_at_once(self) -> bool:
        return self._block.rank is None and self._unit.ends_at_once

    def follow(self, until: float) -> None:
        self._unit.follow(until)
        if self._block.rank is not None:
            self._block.rank.follow(until)

    def step(self) -> float | None:
        if not self._unit_over:
            waiting_s = self._unit.step()
            if waiting_s is not None:
                return waiting_s
            self._unit_over = True
        rank = self._block.rank
        return rank.step() if rank is not None else None
