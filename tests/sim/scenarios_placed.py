"""Scenes of placement: a tick gives out work, splits a total, stops what is less urgent; a worker claims what it was
given; a gang meets at the barrier, and ends."""

from __future__ import annotations

from typing import Any

from stado_like.job import keys
from stado_like.job.states import Cause
from stado_like.job.workspace import Quota, Workspace
from tests.sim.placed_hand import announce, take_given
from tests.sim.play import TTL_S, Hand, Play, document
from tests.sim.scenarios import Scene, tick

GANG, GIVEN, TOTAL, URGENT = "gang", "given", "total", "urgent"


def gang(name: str = GANG, tasks: int = 2, **spec: Any) -> dict[str, Any]:
    """Its members fit on one machine."""
    resources = {"node_selection": {"mode": "Any", "count": tasks}}
    task = {"command": "true", "heartbeat_ttl_seconds": TTL_S, "requested_resources": resources}
    spec = {"start": "Gang", "task_template": task, **spec}
    return {"metadata": {"name": name, "workspace": "default"}, "spec": spec}


def _machine(play: Play, name: str = "w0") -> Hand:
    """A worker that has spoken, and goes on working whatever happens."""
    play.places = True
    hand = play.hand(name)
    announce(hand)
    play.keep(hand)
    return hand


def gang_waits(play: Play, hand: Hand) -> None:
    play.submit(play.bucket("ada"), gang(), request_id="r-gang")
    _machine(play)


def one_waits(play: Play, hand: Hand) -> None:
    """Of a workspace with a quota, which only ticks keep."""
    limit = Workspace(name="default", nonce="n", quota=Quota(max_cpus=1))
    play.bucket("ada").put(keys.workspace("default"), limit)
    play.submit(play.bucket("ada"), document(GIVEN), request_id="r-given")
    _machine(play)


def total_waits(play: Play, hand: Hand) -> None:
    doc = gang(TOTAL)
    doc["spec"]["task_template"]["requested_resources"] = {"node_selection": {"mode": "All"}}
    play.submit(play.bucket("ada"), doc, request_id="r-total")
    _machine(play)


def urgent_waits(play: Play, hand: Hand) -> None:
    """The machine is full of batch work, and obeys the hold."""
    for n in range(2):
        play.submit(play.bucket("ada"), document(f"batch{n}"), request_id=f"r-{n}")
    other = _machine(play)
    for row in other.bucket.store.list(keys.QUEUED_OPEN).rows:
        other.take(row.key)
    announce(other)
    urgent = document(URGENT)
    urgent["spec"]["priority"] = 10
    play.submit(play.bucket("ada"), urgent, request_id="r-urgent")
    play.tick()
    announce(other)


def was_given(play: Play, hand: Hand) -> None:
    """A tick gave the gang to this worker."""
    play.places = True
    play.submit(play.bucket("ada"), gang(), request_id="r-gang")
    announce(hand)
    play.tick()


def claim_given(play: Play, hand: Hand) -> None:
    hand.resume()
    take_given(hand)
    hand.resume()


def gang_runs(play: Play, hand: Hand) -> None:
    was_given(play, hand)
    claim_given(play, hand)
    assert len(play.judge.seen.starts) == 2, "the gang did not start"


def end_all(play: Play, hand: Hand) -> None:
    hand.resume()
    hand.obey()
    hand.finish_all()


FAILS = {(GANG, 0, 1): Cause.FAILURE}

SCENES: tuple[Scene, ...] = (
    Scene("tick places a gang", gang_waits, tick),
    Scene("tick places one", one_waits, tick),
    Scene("tick splits a total", total_waits, tick),
    Scene("claim of what was given", was_given, claim_given),
    Scene("a gang's member fails", gang_runs, end_all, FAILS),
)
