"""Scenes of the queue's indexes and of held room: an entry moved for a quota and back, a hold written and let go."""

from __future__ import annotations

from stado_like.bucket import holding
from stado_like.bucket.place import move
from stado_like.job import keys
from stado_like.job.keys import JobId
from stado_like.planning.board import Hold
from tests.sim.play import Hand, Play
from tests.sim.scenarios import Scene, _entry, _nothing, _submitted, tick

HOLD = Hold(JobId("default", "head", 1), "w0", 1000, 1 << 30, 0, 0, created_ms=1)


def _queued(play: Play, hand: Hand) -> None:
    _submitted(play)


def _queued_array(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=3, width=2)


def _moved(play: Play, hand: Hand) -> None:
    """It lies in `held`, and its workspace has no quota any more."""
    _submitted(play)
    move(play.bucket("tick"), _entry(play), keys.QUEUED_HELD)


def _moved_and_copied(play: Play, hand: Hand) -> None:
    """A tick died between the two writes of a move."""
    _submitted(play)
    key = _entry(play)
    body = play.bucket("ada").store.get(key)
    move(play.bucket("tick"), key, keys.QUEUED_HELD)
    assert body is not None
    play.bucket("tick").store.create(key, body.body)


def move_to_held(play: Play, hand: Hand) -> None:
    for key in [key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN)]:
        move(hand.bucket, key, keys.QUEUED_HELD)


def take_the_copy(play: Play, hand: Hand) -> None:
    """Whoever claims one of two entries deletes both."""
    opened = [key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN)]
    if opened:
        hand.take(opened[0])


def hold_and_let_go(play: Play, hand: Hand) -> None:
    holding.write(hand.bucket, (), (HOLD,))
    holding.write(hand.bucket, (HOLD,), ())


SCENES: tuple[Scene, ...] = (
    Scene("move an entry to held", _queued, move_to_held),
    Scene("move the entries of an array to held", _queued_array, move_to_held),
    Scene("tick moves an entry back", _moved, tick),
    Scene("tick finds an entry in both indexes", _moved_and_copied, tick),
    Scene("claim one of two entries", _moved_and_copied, take_the_copy),
    Scene("hold room, and let it go", _nothing, hold_and_let_go),
)
