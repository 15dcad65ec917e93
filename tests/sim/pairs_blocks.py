"""Pairs around arrays in blocks."""

from __future__ import annotations

from tests.sim import scenarios as scene
from tests.sim import scenarios_blocks as blocks
from tests.sim.pairs import Pair, by_a, exit_0, go_on, settle_last, take_any, tick, tick_in_spite
from tests.sim.pairs import _claim_sent as claim_slept
from tests.sim.play import Hand, Play
from tests.sim.scenarios_blocks import GOES_ON, LOST, MIXED, UNIT, finish_all


def _slept(play: Play, hand: Hand) -> None:
    """It holds a block, its heartbeats stopped a minute ago, and a tick has armed it."""
    blocks._running(play, hand)
    blocks._silent(play)


def _claim_sent(play: Play, hand: Hand) -> None:
    """The claim of a block stands; its worker has slept since."""
    blocks._queued(play, hand)
    claim_slept(play, hand, UNIT)


def take_unit(play: Play, hand: Hand) -> None:
    keys_there = [key for key in play.shared.contents() if key.startswith("queued/open") and f".{UNIT:05d}." in key]
    for key in keys_there:
        hand.take(key)


cancel, stop_one, stop_first = scene.cancel_array, scene.stop_rank(1), scene.stop_rank(0)
queued, running = by_a(blocks._queued), by_a(blocks._running)
slept, unsettled = by_a(_slept), by_a(blocks._ended_unsettled)
ENDED = {"Completed", "Cancelled"}
DONE = {rank: {"Completed"} for rank in range(5)}
CANCELLED = {rank: {"Cancelled"} for rank in range(5)}
EITHER = {**dict.fromkeys(range(5), ENDED), 1: {"Cancelled", "Failed"}}
"""The second of them fails: under a verdict, or its own stop, it is not tried again."""

PAIRS: tuple[Pair, ...] = (
    Pair("claimers of a block", queued, take_any, take_any, DONE),
    Pair("claimer of a block, canceller", queued, take_any, cancel, CANCELLED),
    Pair("claimer of a block, stopper", queued, take_any, stop_one, {1: {"Cancelled"}, 0: {"Completed"}}),
    Pair("claimer of a block, stopper of its first", queued, take_any, stop_first, {0: ENDED, 1: {"Completed"}}),
    Pair("claimer of a strange rank, claimer of its block", by_a(blocks._strange_rank), blocks.claim_rank, take_unit),
    Pair("holder of a block ends, canceller", running, exit_0, cancel, EITHER, MIXED),
    Pair("holder of a block ends, stopper", running, exit_0, stop_one, {1: {"Cancelled", "Failed"}}, MIXED),
    Pair("holder of a block ends, stopper of what is given back", running, exit_0, scene.stop_rank(2), {}, MIXED),
    Pair("holder of a block ends, claimer", running, exit_0, take_any, DONE, MIXED),
    Pair("holder of a block ends, reaper", slept, exit_0, tick, DONE, MIXED),
    Pair("a rank goes on, canceller", running, exit_0, cancel, {}, GOES_ON),
    Pair("a rank goes on, its stopper", running, exit_0, stop_one, {1: ENDED}, GOES_ON),
    Pair("a rank goes on, reaper", slept, exit_0, tick, DONE, GOES_ON),
    Pair("a rank goes on, tick", running, exit_0, tick, DONE, GOES_ON),
    Pair("a rank goes on, claimer", running, exit_0, take_any, DONE, GOES_ON),
    Pair("a rank is lost in its block, claimer", running, exit_0, take_any, DONE, LOST),
    Pair("two settlers of a block", unsettled, settle_last, settle_last, DONE, MIXED),
    Pair("settler of a block, canceller", unsettled, settle_last, cancel, {}, MIXED),
    Pair("settler of a block, claimer", unsettled, settle_last, take_any, DONE, MIXED),
    Pair("settler of a block, tick", unsettled, settle_last, tick, DONE, MIXED),
    Pair("settler of a block, stopper", unsettled, settle_last, scene.stop_rank(2), {2: {"Cancelled"}}, MIXED),
    Pair("tick that mends blocks, claimer", by_a(blocks._entries_lost), tick, take_any, DONE, MIXED),
    Pair("two ticks mend blocks", by_a(blocks._entries_lost), tick, tick_in_spite, DONE, MIXED),
    Pair("two ticks reap a block", by_a(blocks._died_between_claim_and_end), tick, tick_in_spite, {}, GOES_ON),
    Pair("two stoppers of a block", queued, stop_one, stop_first, {0: {"Cancelled"}, 1: {"Cancelled"}}),
    Pair("stopper of a rank, canceller", queued, stop_one, cancel, CANCELLED),
    Pair("holder under a stop, reaper", by_a(blocks._one_was_stopped_while_it_runs), finish_all, tick, {1: ENDED}),
    Pair("block claimed long ago, reaper", by_a(_claim_sent), go_on, tick, DONE),
    Pair("block claimed long ago, stopper", by_a(_claim_sent), go_on, stop_one, {1: {"Cancelled"}}),
)
