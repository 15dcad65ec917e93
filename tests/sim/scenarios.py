"""Every transition of the protocol as a scene: what stands before it, and the hand that makes it.

`act` is what the hand does; after its death it is done again by its restarted self (with what it had on its disk), or
by nobody: then the coordinator and other workers carry on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stado_coordinator.tick import Tick
from stado_like.bucket import end, entries
from stado_like.errors import TickHeld
from stado_like.job import keys
from stado_like.job.budget import Ended
from stado_like.job.records import Pointer, Tombstone
from stado_like.job.states import Cause
from stado_like.job.terms import terms_of
from stado_like.store.protocol import list_all
from tests.sim.play import Hand, Outcomes, Play, document, id_of, unless_over

ONE, ARRAY = "train", "arr"


def _all_of_it(end: dict[str, Any]) -> dict[str, Any]:
    return end


@dataclass(frozen=True)
class Scene:
    """`hand`: whose store calls are counted and struck. `ticks`: it is the coordinator itself that acts. `alike`: what
    of an end (`Play.result`) must be as in an undisturbed run."""

    name: str
    setup: Callable[[Play, Hand], None]
    act: Callable[[Play, Hand], None]
    outcomes: Outcomes = field(default_factory=dict, hash=False)
    alike: Callable[[dict[str, Any]], dict[str, Any]] = field(default=_all_of_it, hash=False)


def _submitted(play: Play, *, tasks: int = 0, width: int = 0, name: str = "") -> None:
    play.submit(play.bucket("ada"), document(name or (ARRAY if tasks else ONE), tasks, width), request_id=f"r-{tasks}")


def _entry(play: Play, rank: int = 0, index: str = keys.QUEUED_OPEN) -> str:
    return next(key for key in play.shared.contents() if key.startswith(index) and f".{rank:05d}." in key)


def _take(play: Play, hand: Hand, rank: int = 0) -> None:
    assert hand.take(_entry(play, rank))


def _attempt(hand: Hand, rank: int = 0) -> keys.AttemptId:
    return next(a for a in hand.disk if a.rank == rank)


# ---- submit


def _nothing(play: Play, hand: Hand) -> None:
    """An empty bucket."""


def submit_one(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, document(ONE), request_id="mine")


def submit_several(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, document(ARRAY, 3, 2), request_id="mine")


def _name_was_used(play: Play, hand: Hand) -> None:
    _submitted(play)
    other = play.hand("w0")
    other.work_all()
    play.delete(play.bucket("ada"), id_of(ONE))


def _name_was_used_by_several(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=2, name=ONE)
    play.hand("w0").work_all()
    play.delete(play.bucket("ada"), id_of(ONE))


# ---- claim


def _queued(play: Play, hand: Hand) -> None:
    _submitted(play)


def _queued_array(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=5, width=2)


def _queued_uncapped(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=5)


def claim_first(play: Play, hand: Hand) -> None:
    if hand.disk:
        hand.resume()
    else:
        hand.take(_entry(play))


def undo(play: Play, hand: Hand) -> None:
    for a in list(hand.disk):
        hand.undo(a)


# ---- end and settle


def _running(play: Play, hand: Hand) -> None:
    _submitted(play)
    _take(play, hand)


def _running_array(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=5, width=2)
    _take(play, hand, 0)


def _last_of_array(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=2, width=2)
    _take(play, hand, 0)
    play.hand("w0").work_all()


def _two_of_array_running(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=5, width=2)
    _take(play, hand, 0)
    _take(play, play.hand("w0"), 1)


def ends(cause: Cause) -> Callable[[Play, Hand], None]:
    def act(play: Play, hand: Hand) -> None:
        for a in list(hand.disk):
            hand.end(a, cause)

    return act


def _stray_entry(cause: Cause, tasks: int = 0) -> Callable[[Play, Hand], None]:
    """An attempt ended and was settled; the PUT of its entry is delivered again, hours later."""

    def setup(play: Play, hand: Hand) -> None:
        _submitted(play, tasks=tasks, width=2 if tasks else 0)
        key = _entry(play)
        body = play.shared.peek(key)
        assert body is not None
        other = play.hand("w0")
        assert other.take(key)
        other.end(_attempt(other), cause)
        other.bucket.store.put(key, body)

    return setup


def claim_stray(play: Play, hand: Hand) -> None:
    if hand.disk:
        hand.resume()
    else:
        hand.take(_entry(play))


def _end_only(hand: Hand, cause: Cause) -> None:
    """The end record, and then nothing: its author is gone before settling it."""
    a = _attempt(hand)
    job = hand.bucket.job(a.job)
    assert job is not None
    seen = end.Seen(worker=hand.name, by=hand.name)
    end.end_attempt(hand.bucket, a, terms_of(job.document), Ended(cause, "why"), seen)


def _ended_unsettled(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=5, width=2)
    other = play.hand("w0")
    assert other.take(_entry(play))
    _end_only(other, Cause.NONE)


# ---- cancel, stop


def cancel_one(play: Play, hand: Hand) -> None:
    unless_over(lambda: play.cancel(hand.bucket, id_of(ONE)))


def cancel_array(play: Play, hand: Hand) -> None:
    unless_over(lambda: play.cancel(hand.bucket, id_of(ARRAY)))


def cancel(name: str) -> Callable[[Play, Hand], None]:
    return lambda play, hand: unless_over(lambda: play.cancel(hand.bucket, id_of(name)))


def stop_rank(rank: int, name: str = ARRAY) -> Callable[[Play, Hand], None]:
    return lambda play, hand: unless_over(lambda: play.stop(hand.bucket, id_of(name), rank))


def _running_elsewhere(play: Play, hand: Hand) -> None:
    _submitted(play)
    _take(play, play.hand("w0"))


def _array_in_all_states(play: Play, hand: Hand) -> None:
    """Of five ranks in two lanes: one runs, one waits for its retry, the others were never released."""
    _submitted(play, tasks=5, width=2)
    _take(play, play.hand("w0"), 0)
    other = play.hand("w9")
    _take(play, other, 1)
    other.end(_attempt(other, 1), Cause.FAILURE)


def _waits_for_retry(play: Play, hand: Hand) -> None:
    _submitted(play)
    other = play.hand("w0")
    _take(play, other)
    other.end(_attempt(other), Cause.FAILURE)


def _retry_is_due(play: Play, hand: Hand) -> None:
    _waits_for_retry(play, hand)
    play.world.advance(11.0)


def move_due(play: Play, hand: Hand) -> None:
    for row in list(list_all(hand.bucket.store, keys.QUEUED_LATER)):
        entries.move_due(hand.bucket, keys.parse_later(row.key))


# ---- delete


def _over(play: Play, hand: Hand) -> None:
    _submitted(play)
    play.hand("w0").work_all()


def _array_over(play: Play, hand: Hand) -> None:
    _submitted(play, tasks=3, width=2)
    worker = play.hand("w0")
    worker.work_all()
    worker.work_all()


def delete_job(name: str) -> Callable[[Play, Hand], None]:
    return lambda play, hand: unless_over(lambda: play.delete(hand.bucket, id_of(name)))


# ---- the tick


def tick(play: Play, hand: Hand) -> None:
    """A coordinator's tick. Another process cannot take its lock before ten minutes are over."""
    try:
        Tick(hand.bucket).step()
    except TickHeld:
        play.world.advance(601.0)
        Tick(hand.bucket).step()


def _machine_died(play: Play, hand: Hand) -> None:
    """Its heartbeats stopped long ago, and a first tick has armed it."""
    _submitted(play)
    _take(play, play.hand("w0"))
    play.world.advance(40.0)
    play.tick()
    play.world.advance(20.0)


def _claimer_died(play: Play, hand: Hand) -> None:
    _submitted(play)
    other = play.hand("w0")
    _take(play, other)
    other.bucket.drop(keys.heartbeat(_attempt(other)))
    play.world.advance(40.0)
    play.tick()
    play.world.advance(20.0)


def _machine_died_under_verdict(play: Play, hand: Hand) -> None:
    _machine_died(play, hand)
    play.cancel(play.bucket("ada"), id_of(ONE))


def _submitter_died(play: Play, hand: Hand) -> None:
    """jobs/ and open/ stand; of the entries, none."""
    _submitted(play, tasks=3, width=2)
    bucket = play.bucket("ada")
    bucket.drop(*(key for key in play.shared.contents() if key.startswith("queued/")))


def _deleter_died(play: Play, hand: Hand) -> None:
    _array_over(play, hand)
    bucket = play.bucket("ada")
    bucket.ensure(keys.open_index(id_of(ARRAY)), Pointer(what="deletion"))
    bucket.ensure(keys.tombstone(id_of(ARRAY)), Tombstone(nonce="t"))


FAILING: Outcomes = {(ARRAY, 1, 1): Cause.FAILURE}

SCENES: tuple[Scene, ...] = (
    Scene("submit one", _nothing, submit_one),
    Scene("submit several", _nothing, submit_several),
    Scene("submit a name that was deleted", _name_was_used, submit_one),
    Scene("submit a name that several tasks had", _name_was_used_by_several, submit_one),
    Scene("claim", _queued, claim_first),
    Scene("claim of a capped array", _queued_array, claim_first),
    Scene("claim of an uncapped array", _queued_uncapped, claim_first),
    Scene("claim after the end, final", _stray_entry(Cause.NONE), claim_stray),
    Scene("claim after the end, retry", _stray_entry(Cause.FAILURE), claim_stray),
    Scene("claim after the end, array", _stray_entry(Cause.NONE, 5), claim_stray),
    Scene("undo", _running, undo),
    Scene("end", _running, ends(Cause.NONE)),
    Scene("end, retry later", _running, ends(Cause.FAILURE)),
    Scene("end, retry at once", _running, ends(Cause.BARRIER)),
    Scene("end, time limit", _running, ends(Cause.TIME_LIMIT)),
    Scene("end of an array's rank", _running_array, ends(Cause.NONE)),
    Scene("end of an array's rank, retry", _running_array, ends(Cause.MACHINE_LOST)),
    Scene("end of an array's last rank", _last_of_array, ends(Cause.NONE)),
    Scene("end that fails an array", _two_of_array_running, ends(Cause.TIME_LIMIT)),
    Scene("cancel, queued", _queued, cancel_one),
    Scene("cancel, running", _running_elsewhere, cancel_one),
    Scene("cancel, waiting for its retry", _waits_for_retry, cancel_one),
    Scene("cancel an array", _array_in_all_states, cancel_array),
    Scene("stop, queued", _queued, stop_rank(0, ONE)),
    Scene("stop, running", _running_elsewhere, stop_rank(0, ONE)),
    Scene("stop, waiting for its retry", _array_in_all_states, stop_rank(1)),
    Scene("stop, never released", _array_in_all_states, stop_rank(3)),
    Scene("move a retry that is due", _retry_is_due, move_due),
    Scene("delete", _over, delete_job(ONE)),
    Scene("delete an array", _array_over, delete_job(ARRAY)),
    Scene("tick reaps", _machine_died, tick),
    Scene("tick reaps a claim that never started", _claimer_died, tick),
    Scene("tick reaps under a verdict", _machine_died_under_verdict, tick),
    Scene("tick moves a retry", _retry_is_due, tick),
    Scene("tick mends a submit", _submitter_died, tick),
    Scene("tick mends a deletion", _deleter_died, tick),
    Scene("tick settles", _ended_unsettled, tick),
)
