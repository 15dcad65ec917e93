"""Who is declared dead, in worlds made by hand: every signal, every age, the arming, the clock's jumps, what could not
be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stado_like.job.records import Armed, Observed
from stado_like.job.records import Held as Named
from stado_like.planning import liveness
from stado_like.planning.liveness import judge
from stado_like.planning.world import Beat
from tests.builders_tick import T0, TTL_S, armed, attempt, look, said, world

OLD = 2 * TTL_S + 15 + 1


def names(judged: liveness.Judged) -> list[str]:
    return [str(reap.attempt) for reap in judged.reaps]


@pytest.mark.parametrize(
    ("age_s", "stale"), [(0, False), (TTL_S, False), (TTL_S + 15, False), (TTL_S + 15.1, True), (10_000, True)]
)
def test_heartbeat_age_decides_stale(age_s: float, stale: bool) -> None:
    assert liveness.is_stale(look(beat_age_s=age_s)) is stale


def test_stale_for_the_first_time_arms_and_does_not_kill() -> None:
    one = look(beat_age_s=10 * OLD)
    judged = judge(world(one))
    assert judged.reaps == () and judged.remember is not None
    assert judged.remember.armed == (str(one.attempt),)
    assert judged.remember.observed.armed == {
        str(one.attempt): Armed(etag="beat-etag", last_modified=T0 - 10 * OLD, first_seen=T0)
    }


@pytest.mark.parametrize(("armed_s", "down"), [(0, False), (TTL_S - 1, False), (TTL_S, True), (3600, True)])
def test_armed_unchanged_for_a_ttl_is_down(armed_s: float, down: bool) -> None:
    judged = judge(world(look(beat_age_s=OLD), armed_s=armed_s))
    assert bool(judged.reaps) is down
    assert judged.brake is None and judged.deferred == ()


def test_heartbeat_since_the_arming_arms_anew() -> None:
    """ "Seen twice" means the same silence: a heartbeat in between, itself late by now, begins another."""
    one = look(beat_age_s=TTL_S + 20)
    before = replace(armed(one, 500), last_modified=T0 - 600)
    judged = judge(world(one, observed=Observed(armed={str(one.attempt): before})))
    assert judged.reaps == ()
    assert judged.remember is not None
    assert judged.remember.observed.armed[str(one.attempt)] == armed(one, 0)


def test_fresh_sighting_removes_the_arming() -> None:
    one = look(beat_age_s=1)
    judged = judge(world(one, armed_s=500))
    assert judged.reaps == () and judged.remember is not None
    assert judged.remember.observed.armed == {} and judged.remember.cleared == (str(one.attempt),)


def test_claim_that_is_gone_loses_its_arming() -> None:
    gone = look(attempt("gone"), beat_age_s=OLD)
    judged = judge(world(observed=Observed(armed={str(gone.attempt): armed(gone, 500)})))
    assert judged.remember is not None and judged.remember.observed.armed == {}


def test_nothing_changed_writes_nothing() -> None:
    one = look(beat_age_s=TTL_S + 30)
    assert judge(world(one, armed_s=10)).remember is None
    assert judge(world(look(beat_age_s=3))).remember is None


def test_claim_without_any_heartbeat_counts_as_one_and_is_undelivered() -> None:
    """Preemption count 250 against 3 real: undelivered work is charged to nobody."""
    fresh = look(beat_age_s=None, claim_age_s=TTL_S)
    assert judge(world(fresh, armed_s=TTL_S)).reaps == ()
    old = look(beat_age_s=None, claim_age_s=OLD)
    (reap,) = judge(world(old, armed_s=TTL_S)).reaps
    assert reap.undelivered


@pytest.mark.parametrize(
    ("beat_age_s", "blob_age_s", "stale"),
    [
        (600, 10, False),  # an upload starves the heartbeat
        (600, 80, True),
        (1800, 1, False),
        (1800 + 74, 1, False),  # a blob counts as far as 30 minutes beyond the heartbeat
        (1800 + 76, 1, True),
        (86_400, 1, True),
    ],
)
def test_own_checkpoint_is_a_sign_of_life_for_half_an_hour(beat_age_s: float, blob_age_s: float, stale: bool) -> None:
    assert liveness.is_stale(look(beat_age_s=beat_age_s, blob_age_s=blob_age_s)) is stale


@pytest.mark.parametrize(
    ("nonce", "alive", "age_s", "cleared"),
    [
        ("claim-1", True, 0, True),
        ("claim-1", True, 34, True),  # its promise of 20 s, and 15 s of grace
        ("claim-1", True, 36, False),
        ("claim-1", False, 0, False),
        ("claim-0", True, 0, False),  # another life of the same attempt's id
    ],
)
def test_workers_word_clears_only_the_claim_it_names(nonce: str, alive: bool, age_s: float, cleared: bool) -> None:
    held = look().held
    word = said("w1", Named(attempt=str(held.attempt), nonce=nonce, alive=alive), age_s=age_s)
    assert liveness.is_vouched(held, {"w1": word}) is cleared


def test_word_of_another_worker_clears_nothing() -> None:
    held = look(worker="w1").held
    word = said("w2", Named(attempt=str(held.attempt), nonce="claim-1", alive=True))
    assert not liveness.is_vouched(held, {"w2": word})


def test_broadcast_that_does_not_name_it_neither_clears_nor_condemns() -> None:
    fresh, dead = look(attempt("a"), beat_age_s=1), look(attempt("b"), beat_age_s=OLD)
    judged = judge(world(fresh, dead, armed_s=TTL_S, broadcasts={"w1": said("w1")}))
    assert names(judged) == [str(dead.attempt)]


def test_promise_far_in_the_future_is_not_believed() -> None:
    assert liveness.is_fresh(said("w1", age_s=500, next_by_s=1e9))
    assert not liveness.is_fresh(said("w1", age_s=700, next_by_s=1e9))


def test_vouched_attempt_is_not_judged() -> None:
    one = look(beat_age_s=OLD, vouched=True)
    assert judge(world(one, armed_s=TTL_S)).reaps == ()


def test_ended_attempt_is_not_reaped() -> None:
    one = look(beat_age_s=OLD, ended_at=T0 - 500)
    assert judge(world(one, armed_s=TTL_S)).reaps == ()


def test_read_that_failed_keeps_the_arming_and_says_so() -> None:
    """Healthy job cancelled because its status could not be read: the tick defers and says for how many."""
    lost = look(attempt("a"), beat_age_s=None, claim_age_s=OLD, unknown="503 for 10 minutes")
    judged = judge(world(lost, look(attempt("b")), armed_s=500))
    assert judged.reaps == ()
    (said_so,) = judged.deferred
    assert said_so.why == "liveness unknown for 1 jobs (1 attempts); the first: 503 for 10 minutes"
    assert judged.remember is not None and list(judged.remember.observed.armed) == [str(lost.attempt)]


@pytest.mark.parametrize("room", ["running", "observed"])
def test_listing_that_failed_kills_nobody_and_forgets_nothing(room: str) -> None:
    judged = judge(world(look(beat_age_s=OLD), armed_s=TTL_S, unread={room: "timed out"}))
    assert judged.reaps == () and judged.remember is None
    assert "liveness unknown" in judged.deferred[0].why


def test_unread_broadcasts_leave_the_silent_unknown() -> None:
    fresh, silent = look(attempt("a"), beat_age_s=1), look(attempt("b"), beat_age_s=OLD)
    judged = judge(world(fresh, silent, armed_s=TTL_S, unread={"capacity": "timed out"}))
    assert judged.reaps == () and len(judged.deferred) == 1
    assert judged.remember is not None and list(judged.remember.observed.armed) == [str(silent.attempt)]


def test_clock_that_jumps_ahead_arms_and_finds_the_next_heartbeat() -> None:
    jumped = T0 + 3600
    one = look(beat_age_s=3600, now=jumped)
    first = judge(world(one, now=jumped))
    assert first.reaps == () and first.remember is not None
    again = replace(one, beat=Beat("beat-2", jumped + 5, jumped + 90, None))
    second = judge(world(again, now=jumped + 90, observed=first.remember.observed))
    assert second.reaps == ()
    assert second.remember is None or next(iter(second.remember.observed.armed.values())).first_seen == jumped + 90


def test_clock_that_jumps_while_armed_is_caught_by_our_own() -> None:
    """The store's clock says that the arming is an hour old, this process knows that it is two seconds old."""
    one = look(beat_age_s=3700)
    state = world(one, armed_s=3600, armed_here_s={str(one.attempt): 2.0})
    assert judge(state).reaps == ()
    assert judge(replace(state, armed_here_s={str(one.attempt): TTL_S})).reaps


def test_clock_set_back_makes_nobody_old() -> None:
    one = look(beat_age_s=-500)
    assert not liveness.is_stale(one)
    late = look(beat_age_s=OLD)
    from_the_future = replace(armed(late, 0), first_seen=T0 + 900)
    judged = judge(world(late, observed=Observed(armed={str(late.attempt): from_the_future})))
    assert judged.reaps == () and judged.remember is not None
    assert judged.remember.observed.armed[str(late.attempt)].first_seen == T0
