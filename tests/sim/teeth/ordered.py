"""Probes of orders and of what a person wants of a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stado_like.bucket import pausing, workers
from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.records import Order
from stado_like.job.states import Cause
from tests.sim import scenarios as scene
from tests.sim.faults import Fault, Kind, Op
from tests.sim.fleet import Fleet
from tests.sim.play import Play
from tests.sim.teeth.below import _one_machine, _submit
from tests.sim.teeth.traces import stage


@dataclass
class Unreadable:
    """Whatever begins so does not answer."""

    prefix: str

    def choose(self, op: Op) -> Fault | None:
        return Fault(Kind.TIMEOUT, 0.5) if op.key.startswith(self.prefix) else None


def order_of_ten_minutes_ago_stops_nothing() -> None:
    """Its request was on its way for ten minutes, and whoever sent it has given up."""
    with stage() as play:
        scene._submitted(play)
        hand = play.hand("w1")
        scene._take(play, hand)
        a = scene._attempt(hand)
        sender = play.bucket("tick")
        made = Order(nonce="o", attempt=str(a), kind="stop", cause=Cause.MOVED, reason="why", decided_at=sender.now())
        play.world.advance(600.0)
        sender.put(keys.order("w1", "stop", a, 1), made)
        hand.obey()


def machine_that_starts_again_asks_first_what_is_wanted_of_it() -> None:
    """It was cordoned, its worker restarts, and what is wanted of it cannot be read for a minute."""
    _claims_nothing_while(keys.WANTED, lambda fleet: workers.cordon(_ada(fleet), fleet.hosts[0].name))


def machine_whose_record_nobody_understands_takes_nothing_at_its_start() -> None:
    """A newer version wrote it: perhaps it says that the machine is cordoned."""
    record = b'{"v": 99, "cordoned": "since tomorrow"}'
    _claims_nothing_while("nothing/", lambda fleet: _ada(fleet).store.put(keys.wanted(fleet.hosts[0].name), record))


def worker_that_starts_again_asks_first_whether_the_queue_is_paused() -> None:
    _claims_nothing_while(keys.PAUSE, lambda fleet: pausing.pause(_ada(fleet)))


def worker_that_has_heard_of_a_pause_claims_nothing() -> None:
    _claims_nothing_while("nothing/", lambda fleet: pausing.pause(_ada(fleet)))


def _ada(fleet: Fleet) -> Bucket:
    return Play.bucket(fleet, "operator", process=f"#{fleet.world.now_s}")  # type: ignore[arg-type]


def _claims_nothing_while(unreadable: str, close: Callable[[Fleet], object]) -> None:
    with _one_machine() as fleet:
        host = fleet.hosts[0]
        fleet._go(fleet.world.now_s + 10.0)
        close(fleet)
        fleet._go(fleet.world.now_s + 70.0)
        a = _submit(fleet, "5")
        host.kill_agent()
        fleet.shared.faults = Unreadable(unreadable)
        host.start_agent()
        fleet._go(fleet.world.now_s + 60.0)
        assert not fleet.judge.seen.starts[a], f"{a} was started on a machine that was to take nothing"
