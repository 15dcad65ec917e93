"""Scripted processes in the place of real ones: how long a command runs, how it exits, whether it listens to signals.

A command says so itself: `["sim", "12.5", "fails=2", "exit=3", "deaf"]` runs 12.5 s, exits 3 in its first two
attempts and 0 after, and ignores every signal but SIGKILL. With `"third=40"` every third rank runs 40 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stado_like.job.keys import AttemptId
from stado_worker.shim.exit_status import Exit
from stado_worker.shim.preparing import Prepared
from stado_worker.shim.runner import Gone
from stado_worker.shim.task import Read
from tests.sim.world import World

REACTS_IN_S = 0.5
NEVER_S = float("inf")


@dataclass(frozen=True, slots=True)
class Script:
    runs_s: float
    fails: int = 0
    exit_code: int = 0
    deaf: bool = False

    @classmethod
    def of(cls, command: tuple[str, ...], rank: int = 0) -> Script:
        runs_s, fails, exit_code, deaf = float(command[1]), 0, 0, False
        for word in command[2:]:
            name, _, value = word.partition("=")
            if name == "fails":
                fails, exit_code = int(value), exit_code or 1
            elif name == "exit":
                exit_code = int(value)
            elif name == "third" and rank % 3 == 2:
                runs_s = float(value)
            deaf = deaf or name == "deaf"
        return cls(runs_s, fails or (1_000 if exit_code else 0), exit_code, deaf)

    def exit_of(self, n: int) -> int:
        return self.exit_code if n <= self.fails else 0


@dataclass
class Process:
    """A process tree on a machine. It lives on when its supervisor dies, until somebody kills it or it is done."""

    world: World
    attempt: AttemptId
    script: Script
    began_s: float
    ends_at_s: float
    exit: Exit | None = None
    frozen_at_s: float | None = None
    out_of_memory: bool = False
    devices: tuple[str, ...] = ()
    """The GPUs that it was given."""
    on_end: Callable[[], None] = lambda: None

    def look(self) -> Exit | None:
        if self.exit is None and self.frozen_at_s is None and self.world.now_s >= self.ends_at_s:
            self._end(Exit(self.script.exit_of(self.attempt.n)))
        return self.exit

    @property
    def is_alive(self) -> bool:
        return self.look() is None

    def left_s(self) -> float:
        return NEVER_S if self.frozen_at_s is not None else max(0.0, self.ends_at_s - self.world.now_s)

    def term(self) -> None:
        if self.is_alive and not self.script.deaf:
            self.ends_at_s = min(self.ends_at_s, self.world.now_s + REACTS_IN_S)
            self.script = Script(self.script.runs_s, 1_000, 143)

    def kill(self) -> bool:
        """True: it had still lived."""
        if self.look() is not None:
            return False
        self._end(Exit(137, "SIGKILL"))
        return True

    def freeze(self) -> None:
        if self.is_alive and self.frozen_at_s is None:
            self.frozen_at_s = self.world.now_s

    def thaw(self) -> None:
        if self.frozen_at_s is not None:
            self.ends_at_s += self.world.now_s - self.frozen_at_s
            self.frozen_at_s = None

    def _end(self, how: Exit) -> None:
        self.exit = how
        self.world.say(f"process {self.attempt} ended {how.exit_code}")
        self.on_end()


@dataclass
class ScriptedRunner:
    """The `Runner` of the simulator. `begin` puts the process on its machine, and may refuse."""

    world: World
    read: Read
    begin: Callable[[Read], Process]
    process: Process | None = None
    notes: list[str] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)

    def prepared(self, ready: Prepared) -> None:
        """A script needs nothing."""

    def tell(self, variables: Mapping[str, str]) -> None:
        self.told = dict(variables)

    def start(self) -> None:
        self.process = self.begin(self.read)

    @property
    def leader(self) -> tuple[int, int | None] | None:
        return None

    def leader_exit(self) -> Exit | None:
        return self.process.look() if self.process is not None else None

    def others_alive(self) -> bool:
        return False

    def signal(self, name: str) -> None:
        if self.process is not None:
            self.process.term()

    def finish(self, within_s: float) -> Gone:
        if self.process is None:
            return Gone(None)
        self.process.kill()
        return Gone(self.process.exit, out_of_memory=self.process.out_of_memory)

    def freeze(self) -> None:
        if self.process is not None:
            self.process.freeze()

    def thaw(self) -> None:
        if self.process is not None:
            self.process.thaw()

    def wait_fd(self) -> int | None:
        return None

    def left_s(self) -> float:
        return self.process.left_s() if self.process is not None and self.process.exit is None else NEVER_S
