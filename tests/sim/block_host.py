"""A block under a simulated supervisor: the shipped `Block`, its ranks run by scripts."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from stado_like.bucket.bucket import Bucket
from stado_like.job.keys import AttemptId
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.block import Block, is_block
from stado_worker.shim.block_goes_on import RankOn
from stado_worker.shim.block_ran import ranks_in, read_ran
from stado_worker.shim.control import Control
from stado_worker.shim.life import Life
from stado_worker.shim.task import Read, carried
from tests.sim.ambient import VirtualAmbient
from tests.sim.processes import NEVER_S, Process, ScriptedRunner

if TYPE_CHECKING:
    from tests.sim.host import Supervisor

__all__ = ["BlockHere", "is_block", "ranks_left"]


class BlockHere:
    """`begin` puts the process of one rank on its machine."""

    def __init__(
        self,
        supervisor: Supervisor,
        read: Read,
        life: Life,
        bucket: Bucket,
        ambient: VirtualAmbient,
        begin: Callable[[Read], Process],
    ) -> None:
        self._supervisor = supervisor
        self._read = read
        self._life = life
        self._begin = begin
        self._runs: ScriptedRunner | None = None
        self._folder = supervisor.folder
        self.block = Block(
            read, self._folder, life, bucket, ambient, self._make, handed_over=lambda rank: self._hand_over(rank)
        )

    def _make(self, rank: int) -> ScriptedRunner:
        read = carried(self._read, rank)
        path = self._folder.path.parent / str(read.a)
        if path.exists():
            assert AttemptDir(path).is_done(), f"{path} is another's"
            shutil.rmtree(path)
        path.mkdir()
        self._runs = ScriptedRunner(self._supervisor.host.grounds.world, read, self._begin)
        return self._runs

    def left_s(self) -> float:
        """Until its script ends, or its block lets it go."""
        due_s = self.block.runner.due_in_s() if self.block.rank is None else NEVER_S
        return min(due_s, self._runs.left_s() if self._runs is not None else NEVER_S)

    def let_go(self, control: Control) -> Control | None:
        """Who controls the rank that goes on, once its block is over; None: nobody, or it is that which is over."""
        rank = self.block.rank
        return None if rank is None or control is rank.control else rank.control

    def nudge(self) -> None:
        rank = self.block.rank
        (rank.life if rank is not None and rank.handed_over else self._life).nudge()

    def attempts(self) -> list[str]:
        """What this process holds: its block, and what goes on from it."""
        rank = self.block.rank
        return [self._folder.attempt_id, *([str(rank.a)] if rank is not None else [])]

    def runs(self, attempt: str) -> bool:
        return self._runs is not None and str(self._runs.read.a) == attempt

    def release(self) -> None:
        """The process is gone: the kernel lets go of the lock of the rank, too."""
        if self.block.rank is not None:
            self.block.rank._release()

    def _hand_over(self, rank: RankOn) -> None:
        """The block is settled, and the rank an attempt of its own: the agent is told."""
        supervisor = self._supervisor
        if not self._folder.is_done():
            return
        if supervisor.lock is not None:
            supervisor.lock.release()
        supervisors = supervisor.host.supervisors
        supervisors.pop(self._folder.attempt_id, None)
        supervisor.folder, supervisor.attempt = rank.folder, rank.a
        supervisors[rank.folder.attempt_id] = supervisor
        supervisor.host.agent_hears(self._folder.attempt_id)


def ranks_left(folder: AttemptDir) -> Iterator[str]:
    """Of a dead supervisor's block: the ranks that may have processes, as the real launcher finds them."""
    ran, ranks = read_ran(folder), ranks_in(folder)
    if ran is None or ranks is None:
        return
    unit = AttemptId.parse(folder.attempt_id)
    for rank in [ran.begun] if ran.whole else [one for one in ranks if one not in ran.ended]:
        if rank is not None:
            yield str(AttemptId(unit.job, rank, 1))
