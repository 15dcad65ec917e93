"""The crash matrix: every store operation of a scene, struck in every way, carried on by the same actor or by others.

Whatever happens, when all has come to rest the bucket says what an uninterrupted run would have said; or, where the
actor never got its acknowledgement, what would have been said had it never come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from stado_like.errors import StoreError
from tests.sim.faults import At, Fault, Kind, NoFaults
from tests.sim.play import Hand, Play, stubborn
from tests.sim.scenarios import Scene
from tests.sim.world import Crash

STRIKES = (Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.LOST, Kind.OWN_REJECTED)
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
    actor died; `never`: the actor died before it did anything. `operations`: store operations of the actor when
    nothing goes wrong."""

    operations: int
    done: dict[str, Any]
    died: dict[str, Any]
    never: dict[str, Any]


@cache
def right(scene: Scene) -> Right:
    operations, done = _undisturbed(scene, acts=True, lives=True)
    _, died = _undisturbed(scene, acts=True, lives=False)
    _, never = _undisturbed(scene, acts=False, lives=False)
    return Right(operations, done, died, never)


def _undisturbed(scene: Scene, *, acts: bool, lives: bool) -> tuple[int, dict[str, Any]]:
    play, hand = _stage(scene)
    try:
        if acts:
            scene.act(play, hand)
        if lives:
            play.keep(hand)
        count = _store(hand).number
        play.drain()
        return count, play.result()
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


def cases_of(scene: Scene) -> Iterator[Case]:
    for number in range(right(scene).operations):
        for kind in STRIKES:
            for after in (SAME, ANOTHER):
                yield Case(scene, number, kind, after)


def run(case: Case) -> None:
    """Raises AssertionError when a rule was broken or the end is not a right one."""
    scene = case.scene
    play, hand = _stage(scene)
    try:
        play.shared.faults = At(ACTOR, case.number, Fault(case.kind))
        done = _act(lambda: scene.act(play, hand))
        play.shared.faults = NoFaults()
        if case.after == SAME and not done:
            hand = hand.restarted()
            assert stubborn(lambda: scene.act(play, hand)), "the restarted actor never came to its end"
            done = True
        if done:
            play.keep(hand)
        _judge_end(case, play, hand, done)
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
