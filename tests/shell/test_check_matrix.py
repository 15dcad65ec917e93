"""The crash matrix, with a repair as the first who comes by: it breaks no rule, leaves nothing to find, and all comes
to a right end after it.

The judge of the matrix watches every write of the repair.
"""

from __future__ import annotations

import pytest

from stado_like.errors import StoreError
from stado_like.fsck.check import check
from tests.sim.catalogue import SCENES
from tests.sim.faults import WRITES, At, Fault, Kind, NoFaults
from tests.sim.matrix import ACTOR, Right, right
from tests.sim.play import Play
from tests.sim.scenarios import Scene
from tests.sim.world import Crash


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_repair_carries_on_after_any_crash(scene: Scene) -> None:
    ends = right(scene)
    met: set[tuple[object, ...]] = set()
    _one(scene, 0, Kind.CRASH_BEFORE, ends, met)
    for number, operation in enumerate(ends.operations):
        if operation in WRITES:  # whatever else may strike leaves what the last write has left
            _one(scene, number, Kind.CRASH_AFTER, ends, met)
    _one(scene, len(ends.operations), Kind.CRASH_BEFORE, ends, met)  # strikes nobody


def _one(scene: Scene, number: int, kind: Kind, ends: Right, met: set[tuple[object, ...]]) -> None:
    play = Play(outcomes=scene.outcomes)
    try:
        hand = play.hand(ACTOR)
        scene.setup(play, hand)
        hand.bucket.store.number = 0  # type: ignore[attr-defined]
        play.shared.faults = At(ACTOR, number, Fault(kind))
        done = True
        try:
            scene.act(play, hand)
        except (Crash, StoreError):
            done = False
        play.shared.faults = NoFaults()
        left = (done, *play.shared.contents().items())
        if left in met:
            return
        met.add(left)
        where = f"{scene.name}, operation {number}, {kind}"
        said = check(play.bucket("fsck"), audit=True, repair=True)
        assert said.findings == [], where
        play.judge.verify()
        again = check(play.bucket("fsck"), audit=True)
        assert again.findings == [], where
        if done:
            play.keep(hand)
        play.drain()
        allowed = [ends.done] if done else [ends.done, ends.died, ends.never]
        assert play.result() in allowed, (where, said.repaired)
    finally:
        play.close()
