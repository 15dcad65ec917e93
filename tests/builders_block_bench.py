"""A unit of four ranks under `Control` and its I/O, both driven by hand: scripted ranks, a store in memory, a clock of
the test's own, and real folders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End
from stado_like.job.states import Cause, Outcome
from stado_worker.shim.attempt_dir import AttemptDir
from stado_worker.shim.block import Block, BlockIo
from stado_worker.shim.control import Control
from stado_worker.shim.could_not_start import CouldNotStart
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.life import Life
from stado_worker.shim.preparing import Prepared
from stado_worker.shim.runner import Gone, Runner
from stado_worker.shim.task import Task, read_of
from tests.builders_jobs import Clock, make_bucket, submit

TASKS = 4


@dataclass
class Script:
    """One rank. It runs until it is told how it exits, or killed."""

    rank: int
    exits: Exit | None = None
    refuses: CouldNotStart | None = None
    stuck: tuple[int, ...] = ()
    did: list[str] = field(default_factory=list)

    def prepared(self, ready: Prepared) -> None:
        raise AssertionError(ready)

    def tell(self, variables: object) -> None:
        raise AssertionError(variables)

    def start(self) -> None:
        self.did.append("start")
        if self.refuses is not None:
            raise self.refuses

    @property
    def leader(self) -> tuple[int, int | None] | None:
        return None

    def leader_exit(self) -> Exit | None:
        return self.exits

    def others_alive(self) -> bool:
        return False

    def signal(self, name: str) -> None:
        self.did.append(name)

    def finish(self, within_s: float) -> Gone:
        self.did.append("finish")
        self.exits = self.exits or Exit(137, "SIGKILL")
        return Gone(self.exits, stuck=self.stuck)

    def freeze(self) -> None:
        self.did.append("freeze")

    def thaw(self) -> None:
        self.did.append("thaw")

    def wait_fd(self) -> int | None:
        return self.rank + 1000


class Bench:
    """A unit of four ranks, claimed, its supervisor's two sides driven by hand."""

    def __init__(self, place: Path, **template: object) -> None:
        self.clock = Clock()
        self.bucket = make_bucket(self.clock)
        self.j: JobId = submit(self.bucket, array={"size": TASKS, "block": TASKS}, template=template)
        self.a = AttemptId(self.j, TASKS, 1)
        claim = Claim(nonce="unit", attempt=str(self.a), worker="w1", since=self.clock.now_s)
        self.bucket.decide_bytes(keys.running(self.a), codec.encode(claim))
        job = self.bucket.job(self.j)
        assert job is not None
        task = Task(
            attempt=str(self.a),
            store="memory://x",
            worker="w1",
            claim=claim,
            job=job,
            claimed_boot_s=self.clock.boot_s(),
            claimed_at=self.clock.now_s,
            fsync=False,
        )
        self.attempts = place / "attempts"
        self.folder = AttemptDir.make(self.attempts, str(self.a))
        self.scripts = {rank: Script(rank) for rank in range(TASKS)}
        self.made: list[int] = []
        self.handed_over: list[str] = []
        self.life = Life(self.clock, task.claimed_at, task.claimed_boot_s)
        self.block = Block(
            read_of(task), self.folder, self.life, self.bucket, self.clock, self._make, "", self._on_handed_over
        )
        self.control = Control(
            read_of(task), self.life, self.block.runner, self.block.stop_file, self.clock, self.block.close
        )
        self.io: BlockIo = self.block.io()

    def _make(self, rank: int) -> Runner:
        self.made.append(rank)
        AttemptDir.make(self.attempts, str(AttemptId(self.j, rank, 1)))
        return self.scripts[rank]

    def _on_handed_over(self, rank: object) -> None:
        self.handed_over.append(str(self.block.rank.a) if self.block.rank else "")

    def step(self, *exits: int) -> None:
        """Ranks end one after the other with these codes, and control looks after each."""
        self.control.step()
        for code in exits:
            rank = self.block.runner.rank
            assert rank is not None
            self.scripts[rank].exits = Exit(code)
            self.control.step()

    def pass_s(self, seconds: float) -> None:
        self.clock.now_s += seconds
        self.control.step()

    def report(self) -> End:
        """The I/O until it has nothing left to do, or waits."""
        self.drive()
        end = self.bucket.end(self.a)
        assert end is not None
        return end

    def drive(self) -> bool:
        for _ in range(20):
            waiting_s = self.io.step()
            rank = self.block.rank
            if rank is not None and not rank.control.is_over:
                rank.control.step()
            if waiting_s is None:
                return True
            if waiting_s > 0:
                self.clock.now_s += min(waiting_s, 0.5)
        return False

    def ends(self) -> dict[int, tuple[Outcome, Cause]]:
        found = {}
        for rank in range(TASKS):
            end = self.bucket.end(AttemptId(self.j, rank, 1))
            if end is not None:
                found[rank] = (end.outcome, end.cause)
        return found

    def rank_folder(self, rank: int) -> AttemptDir:
        return AttemptDir(self.attempts / str(AttemptId(self.j, rank, 1)))
