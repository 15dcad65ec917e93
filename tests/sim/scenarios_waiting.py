"""Scenes of jobs that wait for others, of children whose parents end, of tasks that wait too long, and of runs that are
over with one of their groups."""

from __future__ import annotations

from stado_like.bucket import claim
from stado_like.job import codec, keys
from stado_like.job.records import Claim
from stado_like.job.states import Cause
from stado_like.reading.shapes import iso
from tests.sim.play import TIMEOUT_S, Hand, Play, child_of, document, finishing, id_of, impatient, waiting
from tests.sim.scenarios import (
    ONE,
    Scene,
    _entry,
    _nothing,
    _over,
    _running_elsewhere,
    _submitted,
    _take,
    cancel,
    claim_first,
    delete_job,
    ends,
    stop_rank,
    tick,
)

NEXT, CHILD, GRANDCHILD, SOON, RUN = "next", "child", "grandchild", "soon", "run"


# ---- jobs that wait for others


def _waits(play: Play, hand: Hand, *, tasks: int = 0, state: str = "Completed") -> None:
    """The awaited job is queued."""
    _submitted(play)
    play.submit(play.bucket("ada"), waiting(NEXT, ONE, state, tasks), request_id="r-next")


def _may_go(play: Play, hand: Hand) -> None:
    _waits(play, hand)
    play.hand("w0").work_all()


def _several_may_go(play: Play, hand: Hand) -> None:
    _waits(play, hand, tasks=4)
    play.hand("w0").work_all()


def _awaited_was_cancelled(play: Play, hand: Hand) -> None:
    _waits(play, hand)
    play.cancel(play.bucket("ada"), id_of(ONE))


def _awaited_was_deleted(play: Play, hand: Hand) -> None:
    _may_go(play, hand)
    play.delete(play.bucket("ada"), id_of(ONE))


def _was_released(play: Play, hand: Hand) -> None:
    _may_go(play, hand)
    play.tick()


def _runs_after(play: Play, hand: Hand) -> None:
    _was_released(play, hand)
    _take(play, hand)


def _several_run_after(play: Play, hand: Hand) -> None:
    """Rank 0 of a released array runs, and the awaited job has been deleted since."""
    _several_may_go(play, hand)
    play.tick()
    _take(play, hand, 0)
    play.delete(play.bucket("ada"), id_of(ONE))


def _waited_in_vain(play: Play, hand: Hand) -> None:
    _awaited_was_cancelled(play, hand)
    play.tick()


def submit_waiter(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, waiting(NEXT, ONE), request_id="mine")


# ---- children


def _family(play: Play, hand: Hand) -> None:
    """A parent runs, its child runs, and the child's child waits for a machine."""
    _running_elsewhere(play, hand)
    bucket = play.bucket("ada")
    play.submit(bucket, child_of(ONE, CHILD), request_id="r-child")
    _take(play, hand, 0)
    play.submit(bucket, child_of(CHILD, GRANDCHILD), request_id="r-grandchild")


def _parent_was_cancelled(play: Play, hand: Hand) -> None:
    _family(play, hand)
    play.cancel(play.bucket("ada"), id_of(ONE))


def _parent_ended_before(play: Play, hand: Hand) -> None:
    """The child runs here."""
    _submitted(play)
    play.submit(play.bucket("ada"), child_of(ONE, CHILD), request_id="r-child")
    other = play.hand("w0")
    _take(play, other)
    assert hand.take(_entry(play))
    other.finish_all()


def _parent_ended(play: Play, hand: Hand) -> None:
    _submitted(play)
    play.hand("w0").work_all()
    play.submit(play.bucket("ada"), child_of(ONE), request_id="r-child")


def _parent_never_was(play: Play, hand: Hand) -> None:
    play.submit(play.bucket("ada"), child_of("nobody"), request_id="r-child")


def submit_child(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, child_of(ONE), request_id="mine")


# ---- too late


def submit_impatient(play: Play, hand: Hand) -> None:
    play.submit(hand.bucket, impatient(SOON), request_id="mine")


def _is_late(play: Play, hand: Hand) -> None:
    play.submit(play.bucket("ada"), impatient(SOON), request_id="r-soon")
    play.world.advance(TIMEOUT_S + 1.0)


def _is_past_its_deadline(play: Play, hand: Hand) -> None:
    """However often it goes back to waiting, it is late."""
    late = document(SOON)
    late["spec"]["deadline"] = iso(play.world.now_s + TIMEOUT_S)
    play.submit(play.bucket("ada"), late, request_id="r-soon")
    play.world.advance(TIMEOUT_S + 1.0)


def _rank_is_late(play: Play, hand: Hand) -> None:
    """One rank runs, one waits for a machine, the others for their lanes."""
    play.submit(play.bucket("ada"), impatient(SOON, 4), request_id="r-soon")
    _take(play, play.hand("w0"), 0)
    play.world.advance(TIMEOUT_S + 1.0)


def _released_is_late(play: Play, hand: Hand) -> None:
    """It waited for another job, and then too long for a machine. No claimer can tell the second from the first."""
    _submitted(play)
    late = waiting(NEXT, ONE)
    late["spec"]["scheduling_timeout_seconds"] = TIMEOUT_S
    play.submit(play.bucket("ada"), late, request_id="r-next")
    play.hand("w0").work_all()
    play.tick()
    play.world.advance(TIMEOUT_S + 1.0)


def _tick_died_over_it(play: Play, hand: Hand) -> None:
    """A tick had taken it, and died before it ended it."""
    _is_late(play, hand)
    key = _entry(play)
    a = keys.parse_entry(key).attempt
    taken = Claim(nonce="t", attempt=str(a), worker="", since=0.0, queue_key=key, overdue="too late")
    assert claim.send(play.bucket("tick-0"), a, codec.encode(taken), key) is None


# ---- a run that is over with one of its groups


def _serves_and_works(play: Play, hand: Hand) -> None:
    """The server runs elsewhere, the worker here."""
    play.submit(play.bucket("ada"), finishing(RUN), request_id="r-run")
    _take(play, play.hand("w0"), 0)
    _take(play, hand, 1)


def _server_here(play: Play, hand: Hand) -> None:
    play.submit(play.bucket("ada"), finishing(RUN), request_id="r-run")
    _take(play, hand, 0)
    _take(play, play.hand("w0"), 1)


def end_here(play: Play, hand: Hand) -> None:
    for a in list(hand.disk):
        hand.end(a, Cause.TIME_LIMIT if a.rank == 0 else Cause.NONE)


SCENES: tuple[Scene, ...] = (
    Scene("submit a waiter", _running_elsewhere, submit_waiter),
    Scene("tick releases a waiter", _may_go, tick),
    Scene("tick releases several that waited", _several_may_go, tick),
    Scene("tick gives a waiter up", _awaited_was_cancelled, tick),
    Scene("tick gives up who waits for a deleted job", _awaited_was_deleted, tick),
    Scene("claim of a released waiter", _was_released, claim_first),
    Scene("end of a released waiter, retry", _runs_after, ends(Cause.FAILURE)),
    Scene("end of a released rank, the awaited job deleted", _several_run_after, ends(Cause.NONE)),
    Scene("cancel a waiter", _waits, cancel(NEXT)),
    Scene("stop a waiting rank", lambda play, hand: _waits(play, hand, tasks=4), stop_rank(0, NEXT)),
    Scene("delete who waited in vain", _waited_in_vain, delete_job(NEXT)),
    Scene("submit a child", _running_elsewhere, submit_child),
    Scene("submit a child too late", _over, submit_child),
    Scene("tick ends a child", _parent_ended_before, tick),
    Scene("tick ends a child of nobody", _parent_never_was, tick),
    Scene("claim of a child whose parent ended", _parent_ended, claim_first),
    Scene("submit what may wait only so long", _nothing, submit_impatient),
    Scene("tick ends what waited too long", _is_late, tick),
    Scene("tick ends a rank that waited too long", _rank_is_late, tick),
    Scene("tick ends a waiter that waited too long", _released_is_late, tick),
    Scene("tick goes on where another died", _tick_died_over_it, tick),
    Scene("claim too late", _is_past_its_deadline, claim_first),
    Scene("end completes a run", _serves_and_works, end_here),
    Scene("end without which a run cannot finish", _server_here, end_here),
)
