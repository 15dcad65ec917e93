"""Scenes of orders and of what people want: a task put back, an order obeyed, a machine closed, the queue paused."""

from __future__ import annotations

from collections.abc import Callable

from stado_like.bucket import order, pausing, workers
from stado_like.job import keys
from stado_like.job.states import Cause
from tests.sim.play import Hand, Play, id_of, unless_over
from tests.sim.scenarios import (
    ARRAY,
    ONE,
    Scene,
    _array_in_all_states,
    _attempt,
    _nothing,
    _running,
    _running_elsewhere,
    _waits_for_retry,
    tick,
)


def requeue(name: str = ONE, rank: int = 0) -> Callable[[Play, Hand], None]:
    def act(play: Play, hand: Hand) -> None:
        unless_over(lambda: play.requeue(hand.bucket, id_of(name), rank))

    return act


def obey(play: Play, hand: Hand) -> None:
    hand.resume()
    hand.obey()


def _ordered(cause: Cause) -> Callable[[Play, Hand], None]:
    def setup(play: Play, hand: Hand) -> None:
        _running(play, hand)
        order.give_stop(play.bucket("tick"), hand.name, _attempt(hand), cause, "why")

    return setup


def _ordered_under_verdict(play: Play, hand: Hand) -> None:
    _ordered(Cause.MOVED)(play, hand)
    play.cancel(play.bucket("ada"), id_of(ONE))


def _ordered_and_ended(play: Play, hand: Hand) -> None:
    """Its worker ended and settled the attempt, and died before it looked into its inbox."""
    other = play.hand("w0")
    _running(play, other)
    a = _attempt(other)
    order.give_stop(play.bucket("tick"), other.name, a, Cause.MOVED, "why")
    other.end(a)


def close_machine(play: Play, hand: Hand) -> None:
    workers.cordon(hand.bucket, "w0", by="ada")
    workers.drain(hand.bucket, "w0", by="ada")


def open_machine(play: Play, hand: Hand) -> None:
    workers.uncordon(hand.bucket, "w0", by="ada")


def pause(play: Play, hand: Hand) -> None:
    pausing.pause(hand.bucket, by="ada")
    assert hand.bucket.store.head(keys.PAUSE) is not None
    pausing.resume(hand.bucket)


SCENES: tuple[Scene, ...] = (
    Scene("requeue, running", _running_elsewhere, requeue()),
    Scene("requeue, waiting for its retry", _waits_for_retry, requeue()),
    Scene("requeue of an array's rank", _array_in_all_states, requeue(ARRAY, 1)),
    Scene("requeue of a rank not released", _array_in_all_states, requeue(ARRAY, 3)),
    Scene("obey a requeue", _ordered(Cause.REQUEUED), obey),
    Scene("obey a move", _ordered(Cause.MOVED), obey),
    Scene("obey a move under a verdict", _ordered_under_verdict, obey),
    Scene("tick drops an order", _ordered_and_ended, tick),
    Scene("drain a machine", _running_elsewhere, close_machine),
    Scene("open a machine", _nothing, open_machine),
    Scene("pause and resume", _nothing, pause),
)
