"""A world in which time, chance and the order of events are decided by one root seed.

Actors are greenlets. They run real code, and hand control back at every store operation and every sleep; who goes on
is the scheduler's choice. Nothing else moves: the clock advances only when every actor waits. A crash is a
`BaseException` raised inside the actor, so that no `except Exception` of shipped code survives what a killed process
would not.

Outside of any actor (a test that plays one hand after the other) the same code runs without a scheduler: a sleep just
moves the clock.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import greenlet  # type: ignore[import-untyped]

EPOCH_S = 1_790_000_000.0
SHORTEST_S = 1e-6
"""Less than that is lost in a float of seconds since the epoch: whoever waits so long would wake at once, for ever."""
TRACE_KEPT = 400


class Crash(BaseException):
    """The process is gone, at this instruction."""


class Stuck(AssertionError):
    """The world did not come to rest within its bounds."""


@dataclass(eq=False)
class Actor:
    """One process. `wake_at`: it waits until then; None: it is over. `halted`: neither runs nor notices (SIGSTOP, a
    paused machine)."""

    name: str
    greenlet: greenlet.greenlet | None = None
    wake_at: float | None = 0.0
    dead: bool = False
    halted_until: float = 0.0
    error: BaseException | None = None
    operations: int = 0

    @property
    def over(self) -> bool:
        return self.wake_at is None


Chooser = Callable[[list[Actor]], Actor]


class World:
    """Virtual time, seeded chance, actors, and events that happen at a time of their own (late requests)."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now_s = EPOCH_S
        self.actors: list[Actor] = []
        self.errors: list[Actor] = []
        self.trace: deque[str] = deque(maxlen=TRACE_KEPT)
        self.steps = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbered = 0
        self._main = greenlet.getcurrent()
        self._current: Actor | None = None
        self.chooser: Chooser = self._any
        self.after_step: Callable[[], bool] = lambda: False

    # ---- what actors do

    def current(self) -> Actor | None:
        return self._current if greenlet.getcurrent() is not self._main else None

    def pause(self, seconds: float) -> None:
        """The current actor waits; without one, time passes."""
        actor = self.current()
        if actor is None:
            self.advance(seconds)
            return
        if actor.dead:
            raise Crash
        actor.wake_at = self.now_s + (max(seconds, SHORTEST_S) if seconds > 0 else 0.0)
        self._main.switch()
        if actor.dead:
            raise Crash

    def say(self, line: str) -> None:
        """One line of the trace; all of them together are the run's fingerprint."""
        whole = f"{self.now_s - EPOCH_S:.3f} {line}"
        self._digest.update(whole.encode())
        self.trace.append(whole)

    @property
    def fingerprint(self) -> str:
        return self._digest.hexdigest()

    # ---- what happens to them

    def spawn(self, name: str, body: Callable[[], None]) -> Actor:
        actor = Actor(name, wake_at=self.now_s)

        def run() -> None:
            try:
                if not actor.dead:
                    body()
            except Crash:
                self.say(f"{name} crashed")
            except BaseException as error:
                actor.error = error
                self.errors.append(actor)
                self.say(f"{name} raised {type(error).__name__}")
            finally:
                actor.wake_at = None

        actor.greenlet = greenlet.greenlet(run, parent=self._main)
        self.actors.append(actor)
        return actor

    def kill(self, actor: Actor) -> None:
        """kill -9: it never runs again; its `finally` blocks meet a store that is gone."""
        if actor.dead:
            return
        actor.dead = True
        if actor.greenlet is not None and actor.greenlet is not greenlet.getcurrent():
            if actor.greenlet and not actor.greenlet.dead:
                killer, self._current = self._current, actor
                actor.greenlet.parent = greenlet.getcurrent()
                actor.greenlet.throw(Crash)
                self._current = killer
            actor.wake_at = None

    def wake(self, actor: Actor) -> None:
        """What it waits for has happened."""
        if actor.wake_at is not None:
            actor.wake_at = min(actor.wake_at, self.now_s)

    def halt(self, actor: Actor, seconds: float) -> None:
        actor.halted_until = max(actor.halted_until, self.now_s + seconds)

    def at(self, when_s: float, event: Callable[[], None]) -> None:
        self._numbered += 1
        heapq.heappush(self._events, (when_s, self._numbered, event))

    def arrive_all(self) -> None:
        """Whatever is still under way arrives now, in its order."""
        while self._events:
            _, _, event = heapq.heappop(self._events)
            event()

    def advance(self, seconds: float) -> None:
        """Time passes without anybody acting; what was under way arrives."""
        self._until(self.now_s + max(0.0, seconds))

    def _until(self, when_s: float) -> None:
        while self._events and self._events[0][0] <= when_s:
            at_s, _, event = heapq.heappop(self._events)
            self.now_s = max(self.now_s, at_s)
            event()
        self.now_s = max(self.now_s, when_s)

    # ---- the scheduler

    def _any(self, ready: list[Actor]) -> Actor:
        return ready[0] if len(ready) == 1 else self.random.choice(ready)

    def _due(self, actor: Actor) -> float:
        return max(actor.wake_at or 0.0, actor.halted_until)

    def run(self, *, until_s: float = float("inf"), most_steps: int = 1_000_000) -> None:
        """Until every actor is over, or `until_s`, or `after_step` says stop."""
        for _ in range(most_steps):
            waiting = self.actors = [actor for actor in self.actors if not actor.over]
            if not waiting:
                return
            first_s = min(self._due(actor) for actor in waiting)
            if self._events and self._events[0][0] < first_s:
                first_s = self._events[0][0]
            if first_s > until_s:
                self._until(until_s)
                return
            self._until(first_s)
            ready = [actor for actor in waiting if self._due(actor) <= self.now_s]
            if ready:
                actor = self.chooser(ready)
                self.steps += 1
                assert actor.greenlet is not None
                self._current = actor
                actor.greenlet.switch()
            if self.after_step():
                return
        raise Stuck(f"{most_steps} steps and still going: {[actor.name for actor in self.actors if not actor.over]}")

    def stop(self) -> None:
        """End every actor that is left, so that no greenlet survives its test."""
        for actor in list(self.actors):
            if not actor.over:
                self.kill(actor)
        self.actors.clear()


@dataclass
class Turns:
    """A chooser that plays a script: `(name, operations)` in turn; the last named goes on to its end, then whoever is
    left."""

    script: Iterable[tuple[str, int]]
    _rest: Iterator[tuple[str, int]] = field(init=False)
    _turn: tuple[str, int] | None = field(init=False, default=None)
    _until: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._rest = iter(self.script)

    def __call__(self, ready: list[Actor]) -> Actor:
        by_name = {actor.name: actor for actor in ready}
        while True:
            if self._turn is None:
                self._turn = next(self._rest, None)
                if self._turn is None:
                    return ready[0]
                name, count = self._turn
                self._until = (by_name[name].operations if name in by_name else 0) + count
            actor = by_name.get(self._turn[0])
            if actor is None or actor.operations >= self._until:
                self._turn = None
                continue
            return actor
