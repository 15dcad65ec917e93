"""Scenes of worker groups that wait for others, and of jobs that only a placement may start."""

from __future__ import annotations

from stado_like.job import keys
from stado_like.job.states import Cause
from tests.sim.play import Hand, Play, grouped, held, id_of, unless_over
from tests.sim.scenarios import SCENES as OTHERS
from tests.sim.scenarios import Scene, _attempt, _entry, _nothing, _take, cancel, delete_job, stop_rank, tick

GROUPS, GANG = "grp", "gang"


def _grouped(play: Play, restart_policy: str = "OnFailure") -> None:
    play.submit(play.bucket("ada"), grouped(GROUPS, restart_policy=restart_policy), request_id="r-groups")


def _held(play: Play) -> None:
    play.submit(play.bucket("ada"), held(GANG), request_id="r-gang")


def submit_groups(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, grouped(GROUPS), request_id="mine")


def submit_and_cancel_held(play: Play, hand: Hand) -> None:
    """Nothing would ever place it here."""
    play.submit(hand.bucket, held(GANG), request_id="mine")
    unless_over(lambda: play.cancel(hand.bucket, id_of(GANG)))


def _engine_runs(play: Play, hand: Hand) -> None:
    _grouped(play)
    _take(play, play.hand("w0"))


def _engine_completed(play: Play, hand: Hand) -> None:
    _grouped(play)
    play.hand("w0").work_all()


def _engine_waits_for_its_retry(play: Play, hand: Hand) -> None:
    """It ran once, and does not run now."""
    _grouped(play)
    other = play.hand("w0")
    _take(play, other)
    other.end(_attempt(other), Cause.FAILURE)


def _engine_was_lost_for_good(play: Play, hand: Hand) -> None:
    _grouped(play, restart_policy="Never")
    other = play.hand("w0")
    _take(play, other)
    other.end(_attempt(other), Cause.MACHINE_LOST)


def _gang_waits(play: Play, hand: Hand) -> None:
    _held(play)


def _gang_was_cancelled(play: Play, hand: Hand) -> None:
    _held(play)
    play.cancel(play.bucket("ada"), id_of(GANG))


def _held_entry_came_late(play: Play, hand: Hand) -> None:
    """The PUT of its entry is delivered again after its job was over."""
    _held(play)
    key = _entry(play, index=keys.QUEUED_HELD)
    body = play.shared.peek(key)
    assert body is not None
    play.cancel(play.bucket("ada"), id_of(GANG))
    play.bucket("late").store.put(key, body)


SCENES: tuple[Scene, ...] = (
    *OTHERS,
    Scene("submit groups", _nothing, submit_groups),
    Scene("submit what is held, cancel it", _nothing, submit_and_cancel_held),
    Scene("cancel, held", _gang_waits, cancel(GANG)),
    Scene("cancel a group that waits", _engine_runs, cancel(GROUPS)),
    Scene("stop, its group not released", _engine_runs, stop_rank(2, GROUPS)),
    Scene("delete what was held", _gang_was_cancelled, delete_job(GANG)),
    Scene("tick releases a group", _engine_runs, tick),
    Scene("tick releases a group whose other completed", _engine_completed, tick),
    Scene("tick releases no group", _engine_waits_for_its_retry, tick),
    Scene("tick gives a job up", _engine_was_lost_for_good, tick),
    Scene("tick sweeps what is held", _held_entry_came_late, tick),
)
