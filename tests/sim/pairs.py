"""Two actors at every interleaving point: one makes i store operations, the other j, then each goes on to its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stado_coordinator.tick import Tick
from stado_like.bucket import claim
from stado_like.bucket.settle import settle
from stado_like.errors import Conflict, TickHeld
from stado_like.job import codec, keys
from stado_like.job.records import Claim
from stado_like.job.states import Cause
from tests.sim import scenarios as scene
from tests.sim import scenarios_groups as groups
from tests.sim.faults import WRITES, Op
from tests.sim.play import Hand, Kept, Outcomes, Play, document, held
from tests.sim.scenarios import ARRAY, ONE
from tests.sim.scenarios_groups import GANG, GROUPS
from tests.sim.world import Turns

Act = Callable[[Play, Hand], None]
A, B = "w1", "w2"


@dataclass(frozen=True)
class Pair:
    """`states`: what the tasks of the one job may come to, by rank; nothing said: anything that the rules allow."""

    name: str
    setup: Callable[[Play, Hand, Hand], None]
    a: Act
    b: Act
    states: dict[int, set[str]] = field(default_factory=dict, hash=False)
    outcomes: Outcomes = field(default_factory=dict, hash=False)


def by_a(setup: Act) -> Callable[[Play, Hand, Hand], None]:
    """What the first actor has done before."""
    return lambda play, a, b: setup(play, a)


def by_both(first: Act, second: Act) -> Callable[[Play, Hand, Hand], None]:
    def setup(play: Play, a: Hand, b: Hand) -> None:
        first(play, a)
        second(play, b)

    return setup


# ---- acts that pairs need beside the scenes'


def take_any(play: Play, hand: Hand) -> None:
    """Look at the queue and claim the first entry."""
    rows = hand.bucket.store.list(keys.QUEUED_OPEN).rows
    if rows:
        hand.take(rows[0].key)


def take_all(play: Play, hand: Hand) -> None:
    for row in hand.bucket.store.list(keys.QUEUED_OPEN).rows:
        hand.take(row.key)


def go_on(play: Play, hand: Hand) -> None:
    for a in list(hand.disk):
        hand.go_on(a)


def settle_last(play: Play, hand: Hand) -> None:
    """Settle again what was settled, or what nobody has settled yet, as a mender does."""
    for a, record in sorted(play.judge.seen.end_records.items()):
        if play.judge.seen.holds(keys.end(a)):
            settle(hand.bucket, a, record, mending=True)


def tick(play: Play, hand: Hand) -> None:
    try:
        Tick(hand.bucket, cache=play.shared.disk).step()
    except TickHeld:
        return


def tick_in_spite(play: Play, hand: Hand) -> None:
    """A tick beside another one: a person removed the other's lock."""
    hand.bucket.drop(keys.TICK_LOCK)
    tick(play, hand)


def submit_as(request_id: str, tasks: int = 0) -> Act:
    def act(play: Play, hand: Hand) -> None:
        try:
            play.submit(hand.bucket, document(ONE, tasks, 2 if tasks else 0), request_id=request_id)
        except Conflict:
            return

    return act


def _claim_sent(play: Play, hand: Hand, rank: int = 0) -> None:
    """The claim stands; its worker has slept since, and a tick has armed it."""
    key = scene._entry(play, rank)
    a = keys.parse_entry(key).attempt
    record = Claim(nonce=hand.bucket.token(), attempt=str(a), worker=hand.name, boot_id="b", queue_key=key)
    hand.disk[a] = Kept(record, codec.encode(record), hand.bucket.now())
    assert claim.send(hand.bucket, a, hand.disk[a].body, key) is None
    play.world.advance(40.0)
    play.tick()
    play.world.advance(20.0)


def _slept_after_claim(play: Play, hand: Hand) -> None:
    scene._queued(play, hand)
    _claim_sent(play, hand)


def _slept_running(play: Play, hand: Hand) -> None:
    """It runs, its heartbeats stopped a minute ago, and a tick has armed it."""
    scene._running(play, hand)
    play.world.advance(40.0)
    play.tick()
    play.world.advance(20.0)


def _rank(rank: int) -> Act:
    return lambda play, hand: scene._take(play, hand, rank)


def _two_ranks(tasks: int) -> Callable[[Play, Hand, Hand], None]:
    def setup(play: Play, a: Hand, b: Hand) -> None:
        scene._submitted(play, tasks=tasks, width=2)
        scene._take(play, a, 0)
        scene._take(play, b, 1)

    return setup


def _stray(play: Play, hand: Hand) -> None:
    scene._stray_entry(Cause.NONE)(play, hand)


def _ended_retry_unsettled(play: Play, hand: Hand) -> None:
    """Ended with a retry; the supervisor died before it settled."""
    scene._submitted(play)
    other = play.hand("w0")
    scene._take(play, other)
    scene._end_only(other, Cause.BARRIER)


def _engine_of_mine(play: Play, hand: Hand) -> None:
    groups._grouped(play)
    scene._take(play, hand)


def _submit_held(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, held(GANG), request_id="r")


OVER = {"Completed", "Cancelled"}
exit_0, retry, retry_at_once = scene.ends(Cause.NONE), scene.ends(Cause.FAILURE), scene.ends(Cause.BARRIER)
fails_for_good = scene.ends(Cause.TIME_LIMIT)
cancel, cancel_array = scene.cancel_one, scene.cancel_array
stop_one, delete_one, delete_array = scene.stop_rank(0, ONE), scene.delete_job(ONE), scene.delete_job(ARRAY)
queued, running = by_a(scene._queued), by_a(scene._running)

PAIRS: tuple[Pair, ...] = (
    Pair("claimer, claimer", queued, take_any, take_any, {0: {"Completed"}}),
    Pair("claimer, canceller", queued, take_any, cancel, {0: {"Cancelled"}}),
    Pair("claimer, stopper", queued, take_any, stop_one, {0: {"Cancelled"}}),
    Pair("claimers of a capped array", by_a(scene._queued_array), take_all, take_all),
    Pair("claimers of an uncapped array", by_a(scene._queued_uncapped), take_any, take_any),
    Pair("claimer, canceller of an uncapped array", by_a(scene._queued_uncapped), take_any, cancel_array),
    Pair("claimer, stopper of its lane's next rank", by_a(scene._queued_uncapped), take_any, scene.stop_rank(2)),
    Pair("ender, canceller", running, exit_0, cancel, {0: OVER}),
    Pair("ender with a retry, canceller", running, retry, cancel, {0: {"Cancelled", "Failed"}}),
    Pair("ender with a retry at once, canceller", running, retry_at_once, cancel, {0: {"Cancelled"}}),
    Pair("ender with a retry, stopper", running, retry_at_once, stop_one, {0: {"Cancelled"}}),
    Pair("ender with a retry, claimer", running, retry_at_once, take_any, {0: {"Completed"}}),
    Pair("ender, reaper", by_a(_slept_running), exit_0, tick, {0: {"Completed"}}),
    Pair("ender with a retry, reaper", by_a(_slept_running), retry, tick, {0: {"Completed"}}),
    Pair("claimer that slept, reaper", by_a(_slept_after_claim), go_on, tick, {0: {"Completed"}}),
    Pair("claimer that slept, canceller", by_a(_slept_after_claim), go_on, cancel, {0: {"Cancelled"}}),
    Pair("canceller, reaper", by_a(_slept_running), cancel, tick),
    Pair("two settlers of a retry", by_a(_ended_retry_unsettled), settle_last, settle_last, {0: {"Completed"}}),
    Pair("settler of a retry, claimer", by_a(_ended_retry_unsettled), settle_last, take_any, {0: {"Completed"}}),
    Pair("settler of a retry, canceller", by_a(_ended_retry_unsettled), settle_last, cancel, {0: {"Cancelled"}}),
    Pair("settler of a retry, tick", by_a(_ended_retry_unsettled), settle_last, tick, {0: {"Completed"}}),
    Pair("two settlers of an array", by_a(scene._ended_unsettled), settle_last, settle_last),
    Pair("settler of an array, canceller", by_a(scene._ended_unsettled), settle_last, cancel_array),
    Pair("the last two ranks end", _two_ranks(2), exit_0, exit_0, {0: {"Completed"}, 1: {"Completed"}}),
    Pair("a rank fails, another ends", _two_ranks(5), fails_for_good, exit_0),
    Pair("a rank fails, another is claimed", by_a(scene._running_array), fails_for_good, take_any),
    Pair("a rank ends, its lane's next is stopped", by_a(scene._running_array), exit_0, scene.stop_rank(2)),
    Pair("a rank ends, the array is cancelled", by_a(scene._running_array), exit_0, cancel_array),
    Pair("the last rank ends, the array is cancelled", by_a(scene._last_of_array), exit_0, cancel_array),
    Pair("the last rank ends, tick", by_a(scene._last_of_array), exit_0, tick),
    Pair("two cancellers", queued, cancel, cancel, {0: {"Cancelled"}}),
    Pair("canceller, stopper of an array", by_a(scene._array_in_all_states), cancel_array, scene.stop_rank(1)),
    Pair("two movers", by_a(scene._retry_is_due), scene.move_due, scene.move_due, {0: {"Completed"}}),
    Pair("mover, canceller", by_a(scene._retry_is_due), scene.move_due, cancel, {0: {"Cancelled"}}),
    Pair("mover, claimer", by_a(scene._retry_is_due), scene.move_due, take_any, {0: {"Completed"}}),
    Pair("deleter, claimer", by_a(_stray), delete_one, take_any),
    Pair("two deleters", by_a(scene._over), delete_one, delete_one),
    Pair("deleter of an array, tick", by_a(scene._array_over), delete_array, tick),
    Pair("deleter, submitter of the name", by_a(scene._over), delete_one, submit_as("again")),
    Pair("deleter, canceller", by_a(scene._over), delete_one, cancel),
    Pair("submitter, tick", by_a(scene._nothing), submit_as("r"), tick, {0: {"Completed"}}),
    Pair("submitter of several, tick", by_a(scene._nothing), submit_as("r", 3), tick),
    Pair("submitter, claimer", by_a(scene._nothing), submit_as("r"), take_any, {0: {"Completed"}}),
    Pair("two submitters of one name", by_a(scene._nothing), submit_as("r"), submit_as("s"), {0: {"Completed"}}),
    Pair("one request sent twice", by_a(scene._nothing), submit_as("r", 3), submit_as("r", 3)),
    Pair("two submitters of a used name", by_a(scene._name_was_used), submit_as("r"), submit_as("s")),
    Pair("two ticks reap", by_a(_slept_running), tick, tick_in_spite, {0: {"Completed"}}),
    Pair("two ticks mend a submit", by_a(scene._submitter_died), tick, tick_in_spite),
    Pair("two ticks mend a deletion", by_a(scene._deleter_died), tick, tick_in_spite),
    Pair("tick that mends, claimer", by_a(scene._submitter_died), tick, take_any),
    Pair("two ticks release a group", by_a(groups._engine_runs), tick, tick_in_spite),
    Pair("tick that releases a group, canceller", by_a(groups._engine_runs), tick, scene.cancel(GROUPS)),
    Pair("tick that releases a group, its stopper", by_a(groups._engine_runs), tick, scene.stop_rank(1, GROUPS)),
    Pair("tick that releases a group, claimer", by_a(groups._engine_runs), tick, take_any),
    Pair("tick that releases a group, the other ends", by_a(_engine_of_mine), retry_at_once, tick),
    Pair("tick that gives up, canceller", by_a(groups._engine_was_lost_for_good), tick, scene.cancel(GROUPS)),
    Pair("two ticks give up", by_a(groups._engine_was_lost_for_good), tick, tick_in_spite),
    Pair("submitter, canceller of what is held", by_a(scene._nothing), _submit_held, scene.cancel(GANG)),
    Pair("tick that sweeps, canceller of what is held", by_a(groups._gang_waits), tick, scene.cancel(GANG)),
    Pair("tick that settles, claimer", by_a(scene._ended_unsettled), tick, take_any),
    Pair("tick that mends, canceller", by_a(scene._submitter_died), tick, cancel_array),
)


# ---- running them


def _stage(pair: Pair) -> tuple[Play, Hand, Hand]:
    play = Play(outcomes=pair.outcomes)
    a, b = play.hand(A), play.hand(B)
    pair.setup(play, a, b)
    return play, a, b


Schedule = tuple[tuple[str, int], ...]
TO_THE_END = 10_000


def explore(pair: Pair, check: Callable[[Schedule], list[Op]], *, stride: int = 1) -> int:
    """Run every schedule "one makes i operations, the other j, then each goes on to its end", both ways round; of
    those that differ only in the order of operations that do not touch each other, one. Returns how many were run.
    `stride`: only every so many of the places where the first is stopped.

    `check` runs a schedule and returns the operations as they came.
    """
    count = 0
    for first, second in ((A, B), (B, A)):
        i = before = 0
        while True:
            # The whole of the second at this place tells where it touches what the first has just made. A stop of the
            # second before that is the same as at the place before.
            whole = check(((first, i), (second, TO_THE_END), (first, TO_THE_END)))
            count += 1
            made, length = _of(first, whole), len(_of(second, whole))
            j = 0 if i == 0 else _after_touch(_of(second, whole), 0, made[before:i])
            while j < length:
                ops = check(((first, i), (second, j), (first, TO_THE_END), (second, TO_THE_END)))
                count += 1
                made, others = _of(first, ops), _of(second, ops)
                length = len(others)
                j = _after_touch(others, j, made[i:])
            if i >= len(made):
                break
            before, i = i, min(i + stride, len(made))
    return count


def _of(actor: str, ops: list[Op]) -> list[Op]:
    return [op for op in ops if op.actor == actor]


def _after_touch(ops: list[Op], since: int, others: list[Op]) -> int:
    """The place after the first operation, from `since` on, that touches one of `others`; the end where none does."""
    touching = (m + 1 for m in range(since, len(ops)) if any(_touch(ops[m], op) for op in others))
    return next(touching, len(ops))


def _touch(one: Op, other: Op) -> bool:
    """Whether the order of two operations can matter. The bell decides nothing."""
    if keys.DOORBELL in (one.key, other.key) or (one.kind not in WRITES and other.kind not in WRITES):
        return False
    if "list" in (one.kind, other.kind):
        listing, write = (one, other) if one.kind == "list" else (other, one)
        return write.key.startswith(listing.key)
    return one.key == other.key


def _body(play: Play, hand: Hand, act: Act) -> Callable[[], None]:
    return lambda: act(play, hand)


_judged: set[tuple[object, ...]] = set()


def run(pair: Pair, schedule: Schedule) -> list[Op]:
    """The operations as they came. Raises AssertionError when a rule was broken."""
    play, a, b = _stage(pair)
    try:
        log = play.shared.log = []
        actors = [play.world.spawn(hand.name, _body(play, hand, act)) for hand, act in ((a, pair.a), (b, pair.b))]
        play.world.chooser = Turns(schedule)
        play.world.run()
        for actor in actors:
            if actor.error is not None:
                raise AssertionError(f"{actor.name} raised {actor.error!r}") from actor.error
        play.judge.verify()
        play.shared.log = None
        if _is_known(pair, play, (a, b)):
            return log
        play.keep(a)
        play.keep(b)
        play.drain()
        _check_states(pair, play)
        return log
    except AssertionError as broken:
        raise AssertionError(f"{pair.name}, {schedule}\n{broken}") from broken
    finally:
        play.close()


def _is_known(pair: Pair, play: Play, hands: tuple[Hand, Hand]) -> bool:
    """Whether an equal bucket with an equal history was already brought to its end."""
    seen = play.judge.seen
    history = (frozenset(seen.acknowledged), frozenset(seen.cancelled), frozenset(seen.stopped), frozenset(seen.starts))
    disks = tuple(tuple(sorted(hand.disk)) for hand in hands)
    known = (pair.name, disks, history, *play.shared.contents().items())
    if known in _judged:
        return True
    _judged.add(known)
    return False


def _check_states(pair: Pair, play: Play) -> None:
    seen = play.judge.seen
    for rank, allowed in pair.states.items():
        for j in seen.jobs:
            last = seen.final_end(j, rank)
            if last is not None and j not in seen.buried:
                state = seen.end_records[last].state.value
                assert state in allowed, f"task {rank} of {j} came to {state}, should be one of {sorted(allowed)}"
