"""Scenes of placement: a tick gives out work, splits a total, stops what is less urgent; a worker claims what it was
given; a gang meets at the barrier, and ends."""

from __future__ import annotations

from typing import Any

from stado_like.job import keys
from stado_like.job.states import Cause
from stado_like.job.workspace import Quota, Workspace
from stado_like.planning.queue import RENEWED_AFTER_S
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


def total_of_one_waits(play: Play, hand: Hand) -> None:
    """Its one task is any worker's once it is split."""
    doc = document(TOTAL, requested_resources={"node_selection": {"mode": "All", "names": ["w0"]}})
    play.submit(play.bucket("ada"), doc, request_id="r-total")
    _machine(play)


def urgent_waits(play: Play, hand: Hand) -> None:
    """The machine is full of batch work, and obeys the hold."""
    _urgent_waits_for(play, _machine(play))


def urgent_waits_under_a_fading_hold(play: Play, hand: Hand) -> None:
    """No tick came for minutes: the hold is renewed before anybody is stopped."""
    other = _machine(play)
    _urgent_waits_for(play, other)
    play.world.advance(RENEWED_AFTER_S + 60.0)
    for a in other.disk:
        other.beat(a)
    announce(other)


def urgent_waits_here(play: Play, hand: Hand) -> None:
    """A tick has told the only task of this worker to stop for it."""
    play.places = True
    announce(hand)
    _urgent_waits_for(play, hand, batch=1, cores=2)
    play.tick()
    assert any(key.startswith(keys.inbox(hand.name)) for key in play.shared.contents()), "nobody was stopped"


def urgent_has_room(play: Play, hand: Hand) -> None:
    urgent_waits_here(play, hand)
    hand.obey()
    announce(hand)


def _urgent_waits_for(play: Play, other: Hand, batch: int = 2, cores: int = 1) -> None:
    asked: dict[str, Any] = {"requested_resources": {"cpu_cores": cores, "memory_bytes": 1 << 30}}
    for n in range(batch):
        play.submit(play.bucket("ada"), document(f"batch{n}", **asked), request_id=f"r-{n}")
    for row in other.bucket.store.list(keys.QUEUED_OPEN).rows:
        other.take(row.key)
    announce(other)
    urgent = document(URGENT, **asked)
    urgent["spec"]["priority"] = 10
    play.submit(play.bucket("ada"), urgent, request_id="r-urgent")
    play.tick()
    announce(other)


def preempted_or_not(end: dict[str, Any]) -> dict[str, Any]:
    """A tick that comes again later may find that the batch work has ended by itself. Twice is once too often."""

    def told(task: Any) -> Any:
        state, (failures, machine, preemptions) = task
        return state, (failures, machine, max(0, preemptions - 1))

    return {
        job: {**one, "tasks": {rank: told(each) for rank, each in one["tasks"].items()}} for job, one in end.items()
    }


def obey(play: Play, hand: Hand) -> None:
    hand.resume()
    hand.obey()


def claim_the_head(play: Play, hand: Hand) -> None:
    hand.resume()
    for key in [key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN)]:
        if keys.attempt_of_entry(key).job.name == URGENT:
            hand.take(key)


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
    Scene("tick leaves a total of one task to any worker", total_of_one_waits, tick),
    Scene("tick stops batch work", urgent_waits, tick, alike=preempted_or_not),
    Scene("tick renews a hold and stops batch work", urgent_waits_under_a_fading_hold, tick, alike=preempted_or_not),
    Scene("a victim ends for the head", urgent_waits_here, obey),
    Scene("the head is claimed after its victim", urgent_has_room, claim_the_head),
    Scene("claim of what was given", was_given, claim_given),
    Scene("a gang's member fails", gang_runs, end_all, FAILS),
)
