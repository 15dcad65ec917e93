"""The crash matrix: every store operation of a scene, struck in every way, carried on by the same actor or by others.

Whatever happens, when all has come to rest the bucket says what an uninterrupted run would have said; or, where the
actor never got its acknowledgement, what would have been said had it never come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from stado_like.errors import StoreError
from tests.sim.faults import WRITES, At, Fault, Kind, NoFaults
from tests.sim.play import Hand, Play, stubborn
from tests.sim.scenarios import Scene
from tests.sim.world import Crash

STRIKES = (Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.LOST, Kind.OWN_REJECTED)
STRIKES_ON_A_READ = (Kind.CRASH_BEFORE, Kind.LOST)
"""A read leaves nothing behind, so a crash after it is one before it, and it has no success to be refused by."""
SAME, ANOTHER = "same actor restarts", "another carries on"
ACTOR = "w1"


@dataclass(frozen=True)
class Case:
    scene: Scene
    number: int
    kind: Kind
    after: str

    def __str__(self) -> str:
        return f"{self.scene.name}, operation {self.number}, {self.kind}, {self.after}"


@dataclass(frozen=True)
class Right:
    """How a scene may end. `done`: the transition was made and its actor lives on; `died`: it was made, then the
    actor died; `never`: the actor died before it did anything. `operations`: what the transition asks of the store,
    one after the other, when nothing goes wrong."""

    operations: tuple[str, ...]
    done: dict[str, Any]
    died: dict[str, Any]
    never: dict[str, Any]


@cache
def right(scene: Scene) -> Right:
    operations, done = _undisturbed(scene, acts=True, lives=True)
    _, died = _undisturbed(scene, acts=True, lives=False)
    _, never = _undisturbed(scene, acts=False, lives=False)
    return Right(operations, done, died, never)


def _undisturbed(scene: Scene, *, acts: bool, lives: bool) -> tuple[tuple[str, ...], dict[str, Any]]:
    play, hand = _stage(scene)
    log = play.shared.log = []
    try:
        if acts:
            scene.act(play, hand)
        play.shared.log = None
        if lives:
            play.keep(hand)
        play.drain()
        return tuple(op.kind for op in log if op.actor == ACTOR), play.result()
    finally:
        play.close()


def _stage(scene: Scene) -> tuple[Play, Hand]:
    play = Play(outcomes=scene.outcomes)
    hand = play.hand(ACTOR)
    scene.setup(play, hand)
    _store(hand).number = 0
    return play, hand


def _store(hand: Hand) -> Any:
    return hand.bucket.store


def try_every(scene: Scene, check: Callable[[Case], bool]) -> int:
    """Every case of the scene that is none of the others. Returns how many there were.

    `check` tries a case and returns whether the strike stopped the actor: where it did not, nobody has to carry on.
    """
    count = 0
    for number, operation in enumerate(right(scene).operations):
        for kind in STRIKES if operation in WRITES else STRIKES_ON_A_READ:
            count += 1
            if check(Case(scene, number, kind, SAME)):
                count += 1
                check(Case(scene, number, kind, ANOTHER))
    return count


def run(case: Case) -> bool:
    """Whether the actor was stopped. Raises AssertionError when a rule was broken or the end is not a right one."""
    scene = case.scene
    play, hand = _stage(scene)
    try:
        play.shared.faults = At(ACTOR, case.number, Fault(case.kind))
        done = _act(lambda: scene.act(play, hand))
        was_stopped = not done
        play.shared.faults = NoFaults()
        if case.after == SAME and not done:
            hand = hand.restarted()
            assert stubborn(lambda: scene.act(play, hand)), "the restarted actor never came to its end"
            done = True
        if done:
            play.keep(hand)
        _judge_end(case, play, hand, done)
        return was_stopped
    except AssertionError as broken:
        raise AssertionError(f"{case}\n{broken}") from None
    finally:
        play.close()


_judged: set[tuple[object, ...]] = set()


def _judge_end(case: Case, play: Play, hand: Hand, done: bool) -> None:
    """From here on all is undisturbed, so of equal buckets with equal histories only the first need be brought to its
    end."""
    play.judge.verify()
    seen = play.judge.seen
    history = (frozenset(seen.acknowledged), frozenset(seen.cancelled), frozenset(seen.stopped), frozenset(seen.starts))
    known = (case.scene.name, done, tuple(sorted(hand.disk)), history, *play.shared.contents().items())
    if known in _judged:
        return
    play.drain()
    found = case.scene.alike(play.result())
    ends = right(case.scene)
    allowed = [case.scene.alike(one) for one in ([ends.done] if done else [ends.done, ends.died, ends.never])]
    assert found in allowed, f"came to\n  {found}\nshould be\n  " + "\nor\n  ".join(map(str, allowed))
    _judged.add(known)


def _act(act: Callable[[], None]) -> bool:
    """Whether the actor came to its end and would say so."""
    try:
        act()
        return True
    except (Crash, StoreError):
        return False
