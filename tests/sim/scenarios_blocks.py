"""Scenes of arrays in blocks: ranks 0, 1, 2 are carried by unit 5, ranks 3 and 4 by unit 6."""

from __future__ import annotations

from stado_like.bucket import blocks as carrying
from stado_like.bucket import cancel as cancelling
from stado_like.bucket import entries
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Pointer, Stop
from stado_like.job.states import Cause
from stado_like.job.terms import terms_of
from tests.sim import block_hand
from tests.sim.block_hand import Carried, blocked
from tests.sim.play import Hand, Outcomes, Play, id_of
from tests.sim.scenarios import (
    ARRAY,
    Scene,
    _attempt,
    _entry,
    _nothing,
    _take,
    cancel_array,
    delete_job,
    ends,
    stop_rank,
    tick,
    undo,
)

UNIT, NEXT_UNIT = 5, 6
MIXED: Outcomes = {(ARRAY, 1, 1): Cause.FAILURE, (ARRAY, 2, 1): Carried.GIVEN_BACK}
GOES_ON: Outcomes = {(ARRAY, 0, 1): Cause.FAILURE, (ARRAY, 1, 1): Carried.GOES_ON}
LOST: Outcomes = {(ARRAY, 1, 1): Cause.MACHINE_LOST, (ARRAY, 2, 1): Carried.GIVEN_BACK}
FATAL: Outcomes = {(ARRAY, 1, 1): Cause.TIME_LIMIT, (ARRAY, 2, 1): Carried.GIVEN_BACK}


def submit_blocks(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, blocked(ARRAY), request_id="mine")


def _queued(play: Play, hand: Hand) -> None:
    play.submit(play.bucket("ada"), blocked(ARRAY), request_id="r-blocks")


def _running(play: Play, hand: Hand) -> None:
    _queued(play, hand)
    _take(play, hand, UNIT)


def _running_elsewhere(play: Play, hand: Hand) -> None:
    _running(play, play.hand("w0"))


def _ended_elsewhere(play: Play, hand: Hand) -> None:
    """As its outcomes say, and settled; nothing has been taken since."""
    other = play.hand("w0")
    _running(play, other)
    other.end(_attempt(other, UNIT))


def _goes_on_elsewhere(play: Play, hand: Hand) -> None:
    """The rank that outlasted its block runs on; its holder lives."""
    other = play.hand("w0")
    _running(play, other)
    other.end(_attempt(other, UNIT))
    play.keep(other)


def _goes_on_here(play: Play, hand: Hand) -> None:
    _running(play, hand)
    hand.end(_attempt(hand, UNIT))


def _one_was_stopped(play: Play, hand: Hand) -> None:
    """Whoever stopped it died before looking whether anybody holds its block."""
    _queued(play, hand)
    bucket, j = play.bucket("ada"), id_of(ARRAY)
    job, stop = bucket.job(j), Stop(nonce="s", reason="why", at=bucket.now())
    assert job is not None
    bucket.decide(keys.stop(j, 1), stop)
    carrying.mark(bucket, AttemptId(j, 1, 1), terms_of(job.document), stop)
    bucket.ensure(keys.cancel_index(j, 1), Pointer(what=stop.reason, at=stop.at))
    play.judge.seen.cancel_acknowledged(j, 1)


def _one_was_stopped_while_it_runs(play: Play, hand: Hand) -> None:
    _running(play, hand)
    play.stop(play.bucket("ada"), id_of(ARRAY), 1)


def _cancelled_while_it_runs(play: Play, hand: Hand) -> None:
    _running(play, hand)
    play.cancel(play.bucket("ada"), id_of(ARRAY))


def finish_all(play: Play, hand: Hand) -> None:
    hand.resume()
    hand.finish_all()


def _over(play: Play, hand: Hand) -> None:
    _queued(play, hand)
    worker = play.hand("w0")
    for _ in range(3):
        worker.work_all()


def _stray_rank(play: Play, hand: Hand) -> None:
    """Its block has carried it; then comes an entry of its first attempt, written by one who knows no blocks."""
    _ended_elsewhere(play, hand)
    _strange_entry(play)


def _strange_rank(play: Play, hand: Hand) -> None:
    """... or comes before its block was ever claimed."""
    _queued(play, hand)
    _strange_entry(play)


def _strange_entry(play: Play, rank: int = 0) -> None:
    old = play.bucket("old")
    job = old.job(id_of(ARRAY))
    assert job is not None
    entries.enqueue(old, job, terms_of(job.document), AttemptId(id_of(ARRAY), rank, 1))


def claim_block(play: Play, hand: Hand) -> None:
    if hand.disk:
        hand.resume()
    else:
        hand.take(_entry(play, UNIT))


def claim_rank(play: Play, hand: Hand) -> None:
    if hand.disk:
        hand.resume()
    else:
        hand.take(_entry(play, 0))


# ---- what ticks find


def _silent(play: Play) -> None:
    """Its heartbeats stopped long ago, and a first tick has armed it."""
    play.world.advance(40.0)
    play.tick()
    play.world.advance(20.0)


def _held_elsewhere(play: Play) -> tuple[Hand, AttemptId]:
    """One block of two: what a tick does with more is the same, and takes long to try in every way."""
    play.submit(play.bucket("ada"), blocked(ARRAY, 2, 2), request_id="r-blocks")
    other = play.hand("w0")
    _take(play, other, 2)
    return other, _attempt(other, 2)


def _machine_died(play: Play, hand: Hand) -> None:
    _held_elsewhere(play)
    _silent(play)


def _claimer_died(play: Play, hand: Hand) -> None:
    other, unit = _held_elsewhere(play)
    other.bucket.drop(keys.heartbeat(unit))
    _silent(play)


def _died_between_claim_and_end(play: Play, hand: Hand) -> None:
    """The claim of the rank that was to go on stands, the block's end does not."""
    other, unit = _held_elsewhere(play)
    block_hand.begin(other, unit, 2)
    assert block_hand._claim(other, unit, 1)
    _silent(play)


def _ended_unsettled(play: Play, hand: Hand) -> None:
    """The end of a block, and then nothing: its author is gone before settling it."""
    other = play.hand("w0")
    _running(play, other)
    unit = _attempt(other, UNIT)
    body = block_hand._compose(other, unit, Cause.NONE)
    other.bucket.decide_bytes(keys.end(unit), body)


def _canceller_died(play: Play, hand: Hand) -> None:
    """The block that nobody held has its end, and its entry as well."""
    _queued(play, hand)
    entry = _entry(play, UNIT)
    body = play.shared.peek(entry)
    assert body is not None
    cancelling.cancel_job(play.bucket("ada"), id_of(ARRAY))
    play.bucket("ada").store.put(entry, body)


def _entries_lost(play: Play, hand: Hand) -> None:
    """The next unit, the rank given back and the retry were settled, and their entries are nowhere."""
    _ended_elsewhere(play, hand)
    bucket = play.bucket("ada")
    bucket.drop(*(key for key in play.shared.contents() if key.startswith("queued/")))


SCENES: tuple[Scene, ...] = (
    Scene("submit blocks", _nothing, submit_blocks),
    Scene("claim of a block", _queued, claim_block),
    Scene("claim of a block of which one is stopped", _one_was_stopped, claim_block),
    Scene("claim of a rank that its block carried", _stray_rank, claim_rank),
    Scene("claim of a rank before its block's", _strange_rank, claim_rank),
    Scene("undo of a block", _running, undo),
    Scene("end of a block", _running, ends(Cause.NONE)),
    Scene("end of a block, mixed", _running, ends(Cause.NONE), MIXED),
    Scene("end of a block, one goes on", _running, ends(Cause.NONE), GOES_ON),
    Scene("end of a block, lost in part", _running, ends(Cause.NONE), LOST),
    Scene("end of a block that fails its job", _running, ends(Cause.NONE), FATAL),
    Scene("end of a block under a stop", _one_was_stopped_while_it_runs, finish_all),
    Scene("end of a block under a verdict", _cancelled_while_it_runs, finish_all),
    Scene("end of the rank that goes on", _goes_on_here, ends(Cause.FAILURE), GOES_ON),
    Scene("cancel, block queued", _queued, cancel_array),
    Scene("cancel, block running", _running_elsewhere, cancel_array),
    Scene("cancel, block ended", _ended_elsewhere, cancel_array, MIXED),
    Scene("cancel, one goes on", _goes_on_elsewhere, cancel_array, GOES_ON),
    Scene("stop, block queued", _queued, stop_rank(1)),
    Scene("stop, block not released", _queued, stop_rank(3)),
    Scene("stop, block running", _running_elsewhere, stop_rank(1)),
    Scene("stop, given back", _ended_elsewhere, stop_rank(2), MIXED),
    Scene("stop, one goes on", _goes_on_elsewhere, stop_rank(1), GOES_ON),
    Scene("delete blocks", _over, delete_job(ARRAY), MIXED),
    Scene("tick reaps a block", _machine_died, tick),
    Scene("tick reaps a block that never started", _claimer_died, tick),
    Scene("tick reaps a block and a rank's claim", _died_between_claim_and_end, tick, GOES_ON),
    Scene("tick settles a block", _ended_unsettled, tick, MIXED),
    Scene("tick settles a block, one went on", _ended_unsettled, tick, GOES_ON),
    Scene("tick mends blocks", _entries_lost, tick, MIXED),
    Scene("tick finishes a cancel of blocks", _canceller_died, tick),
)
