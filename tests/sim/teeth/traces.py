"""Single traces, played by hand, for guards that matter only in one order of events."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from stado_coordinator.lock import Lock
from stado_coordinator.tick import Tick
from stado_like.bucket.apply import apply
from stado_like.bucket.load_world import Memory
from stado_like.errors import TickHeld
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Capacity, Held
from stado_like.job.states import Cause
from tests.sim import scenarios as scene
from tests.sim import scenarios_groups as groups
from tests.sim import scenarios_waiting as waits
from tests.sim.faults import At, Fault, Kind
from tests.sim.play import Hand, Play, document, id_of, unless_over
from tests.sim.scenarios import ARRAY, ONE
from tests.sim.world import Turns


@contextmanager
def stage() -> Iterator[Play]:
    play = Play()
    try:
        yield play
        play.judge.verify()
    finally:
        play.close()


def claim_refused_by_its_own_success_is_won() -> None:
    """The first PUT landed, its answer was lost, the second was refused by it."""
    with stage() as play:
        scene._submitted(play)
        hand = play.hand("w1")
        play.shared.faults = At("w1", 0, Fault(Kind.OWN_REJECTED))
        assert hand.take(scene._entry(play)), "the winner was told that it had lost"


def failing_task_under_an_acknowledged_cancel_is_not_retried() -> None:
    with stage() as play:
        scene._submitted(play)
        hand = play.hand("w1")
        scene._take(play, hand)
        play.cancel(play.bucket("ada"), id_of(ONE))
        a = scene._attempt(hand)
        hand.end(a, Cause.FAILURE)
        assert play.judge.seen.end_records[a].is_final, "retried under a verdict"


def end_under_an_acknowledged_cancel_releases_nothing() -> None:
    with stage() as play:
        scene._submitted(play, tasks=5, width=2)
        hand = play.hand("w1")
        scene._take(play, hand, 0)
        play.cancel(play.bucket("ada"), id_of(ARRAY))
        hand.end(scene._attempt(hand, 0), Cause.REQUESTED)
        assert 2 not in play.judge.seen.released[id_of(ARRAY)], "a rank was released under a verdict"


def tick_mends_no_lane_before_its_time() -> None:
    """Of two lanes, one rank waits for its retry: its lane's next must wait for its final end."""
    with stage() as play:
        scene._array_in_all_states(play, play.hand("w1"))
        play.tick()


def group_is_not_released_before_the_other_runs() -> None:
    """The engine is queued, and nobody has claimed it."""
    with stage() as play:
        groups._grouped(play)
        play.tick()


def waiter_is_not_released_before_the_other_ended() -> None:
    with stage() as play:
        waits._waits(play, play.hand("w1"))
        play.tick()


def released_waiter_is_not_given_up_by_a_later_look() -> None:
    """One tick looked before the awaited job was deleted, the other after that; both carry out what they planned."""
    with stage() as play:
        waits._may_go(play, play.hand("w1"))
        plans = []
        for name in ("early", "late"):
            bucket = play.bucket(name)
            plans.append((bucket, Tick(bucket).look()[1]))
            unless_over(lambda: play.delete(play.bucket("ada"), id_of(ONE)))
        for bucket, planned in plans:
            for action in planned.actions:
                apply(bucket, action, Memory())


def child_of_a_parent_that_goes_on_is_left_alone() -> None:
    with stage() as play:
        waits._family(play, play.hand("w1"))
        play.tick()


def child_of_a_parent_that_ended_does_not_start() -> None:
    with stage() as play:
        waits._parent_ended(play, play.hand("w1"))
        play.hand("w1").take(scene._entry(play))


def job_back_after_its_deletion_is_not_run() -> None:
    """Both the PUT of its object and that of its entry are delivered again, hours after it was deleted."""
    with stage() as play:
        scene._submitted(play)
        key, job = scene._entry(play), keys.job(id_of(ONE))
        bodies = {name: play.shared.peek(name) for name in (key, job)}
        play.hand("w0").work_all()
        play.delete(play.bucket("ada"), id_of(ONE))
        late = play.bucket("late")
        for name, body in bodies.items():
            assert body is not None
            late.store.put(name, body)
        play.hand("w1").take(key)


def machine_that_wakes_after_the_deletion_leaves_nothing() -> None:
    with stage() as play:
        zombie = play.hand("w0")
        scene._submitted(play)
        scene._take(play, zombie)
        for _ in range(4):
            play.world.advance(30.0)
            play.tick()
        play.world.advance(20.0)
        play.tick()
        play.hand("w1").work_all()
        play.delete(play.bucket("ada"), id_of(ONE))
        zombie.end(scene._attempt(zombie), Cause.FAILURE)
        play.drain()


def _stale_but_alive(play: Play) -> tuple[Hand, AttemptId]:
    """It runs; the store was away for a minute and a half, so no heartbeat came through."""
    scene._submitted(play)
    hand = play.hand("w1")
    scene._take(play, hand)
    play.world.advance(90.0)
    return hand, scene._attempt(hand)


def first_tick_after_an_outage_kills_nobody() -> None:
    with stage() as play:
        _, a = _stale_but_alive(play)
        play.tick()
        assert a not in play.judge.seen.ends, "reaped by the first tick that saw it"


def most_machines_dead_at_once_is_our_own_blindness() -> None:
    """Four machines, one task each; nothing of any was heard for a minute; two looks, a TTL apart."""
    with stage() as play:
        play.submit(play.bucket("ada"), document(ARRAY, 4, 4))
        hands = [play.hand(f"w{n}") for n in range(4)]
        for rank, hand in enumerate(hands):
            scene._take(play, hand, rank)
        resident = Tick(play.bucket("resident"))
        for _ in range(6):
            play.world.advance(30.0)
            resident.step()
        assert not play.judge.seen.ends, f"reaped {sorted(map(str, play.judge.seen.ends))}"


def sign_of_life_while_a_tick_is_slow_saves() -> None:
    """A tick has read that a task is Down, and takes a quarter of a minute for its next request; it beats meanwhile."""
    with stage() as play:
        hand, a = _stale_but_alive(play)
        play.tick()
        play.world.advance(20.0)
        verdict_looked_for = _number_of_look(play, a)
        actor = play.world.spawn("slow", lambda: _tick(play, "slow"))
        play.world.chooser = Turns((("slow", verdict_looked_for), ("hand", 0), ("slow", 10_000)))
        play.world.after_step = lambda: actor.operations >= verdict_looked_for
        play.world.run()
        hand.beat(a)
        play.world.halt(actor, 15.0)
        play.world.after_step = lambda: False
        play.world.run()
        assert a not in play.judge.seen.ends, "reaped by reads of a quarter of a minute ago"


def _tick(play: Play, name: str) -> None:
    Tick(play.bucket(name)).step()


def _number_of_look(play: Play, a: AttemptId) -> int:
    """How many requests a tick makes before it looks for a verdict on the attempt that it is about to end."""
    with stage() as other:
        _, same = _stale_but_alive(other)
        other.tick()
        other.world.advance(20.0)
        log = other.shared.log = []
        _tick(other, "slow")
        assert same == a
        return next(number for number, op in enumerate(log) if op.key == keys.verdict(a.job))


def word_for_another_claim_saves_nobody() -> None:
    """The worker's id is another machine's now: it names the attempt as alive, but under a claim that never stood."""
    with stage() as play:
        scene._submitted(play)
        hand = play.hand("w1")
        scene._take(play, hand)
        a = scene._attempt(hand)
        bucket, resident = play.bucket("w1"), Tick(play.bucket("resident"))
        for _ in range(12):
            now = bucket.now()
            held = (Held(attempt=str(a), nonce="another claim", alive=True),)
            bucket.put(keys.capacity("w1"), Capacity(nonce="c", worker="w1", at=now, next_by=now + 25.0, held=held))
            resident.step()
            play.world.advance(20.0)
        assert a in play.judge.seen.ends, "a dead attempt is kept alive by a word about another claim"


def two_takeovers_of_one_dead_lock() -> None:
    """Case: two ticks see the same stale lock: exactly one gets it."""
    with stage() as play:
        dead = Lock(play.bucket("dead"))
        dead.acquire()
        play.world.advance(700.0)
        locks = [Lock(play.bucket(name)) for name in ("one", "two")]
        for name, lock in zip(("one", "two"), locks, strict=True):
            play.world.spawn(name, partial(_acquire, lock))
        play.world.chooser = Turns((("one", 2), ("two", 2), ("one", 10_000), ("two", 10_000)))
        play.world.run()
        assert [lock.is_held for lock in locks].count(True) == 1, "both took it"


def _acquire(lock: Lock) -> None:
    try:
        lock.acquire()
    except TickHeld:
        return
