"""Traces that broke the transitions once, found by reading them against the contract."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stado_like.bucket import submit
from stado_like.job import keys
from stado_like.job.spec import limits
from stado_like.job.states import Cause
from tests.sim.play import Play, document, id_of
from tests.sim.world import Turns


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    monkeypatch.setattr(limits, "LANES_WITHOUT_A_CAP", 2)
    stage = Play()
    yield stage
    stage.close()


def test_request_repeated_after_its_later_incarnation_was_deleted_runs_no_second_time(play: Play) -> None:
    """The name was used before; the request made its second incarnation, whose acknowledgement was lost; it ran and was
    deleted. The repetition found only the first tombstone, and submitted a third."""
    ada, worker = play.bucket("ada"), play.hand("w1")
    for k, request in ((1, "first"), (2, "second")):
        assert play.submit(ada, document(), request_id=request) == id_of(k=k)
        worker.work_all()
        play.delete(ada, id_of(k=k))
    again = submit.submit(ada, document(), request_id="second")
    assert again == submit.DoneAndDeleted(id_of(k=2))
    other = submit.submit(ada, document(), request_id="third")
    assert isinstance(other, submit.Submitted) and other.id == id_of(k=3)
    later = submit.submit(ada, document(), request_id="second")
    assert later == submit.DoneAndDeleted(id_of(k=2))


def test_claim_of_a_retry_releases_no_rank_a_second_time(play: Play) -> None:
    """Every claim of every retry wrote the entry of its lane's next rank again, long after that rank was over."""
    ada, worker = play.bucket("ada"), play.hand("w1")
    j = play.submit(ada, document("arr", 3))
    first = next(key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN) and ".00000." in key)
    worker.take(first)
    again = play.hand("w2")
    released = [key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN) and ".00002." in key]
    assert len(released) == 1
    again.take(released[0])
    for a in list(again.disk):
        again.end(a)
    worker.end(keys.AttemptId(j, 0, 1), Cause.BARRIER)
    retry = next(key for key in play.shared.contents() if ".00000.000002." in key)
    worker.take(retry)
    assert not [key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN) and ".00002." in key]
    play.keep(worker)
    play.drain()


def test_gate_that_meets_a_deletion_under_way_leaves_no_claim(play: Play) -> None:
    """The gate saw the end and read the job; then the job was deleted whole; the claim stayed in running/ for ever."""
    ada = play.bucket("ada")
    play.submit(ada, document())
    stray = next(key for key in play.shared.contents() if key.startswith(keys.QUEUED_OPEN))
    play.hand("w0").work_all()
    ada.store.put(stray, b'{"v":1,"attempt":"default.train.1.00000.000001","cpu_millis":1000,"memory_bytes":1}')
    claimer = play.hand("w1")
    play.world.spawn("w1", lambda: _ignore(claimer.take(stray)))
    play.world.spawn("deleter", lambda: play.delete(ada, id_of()))
    seen_the_job = 6  # create, four looks, the job
    play.world.chooser = Turns((("w1", seen_the_job), ("deleter", 10_000), ("w1", 10_000)))
    play.world.run()
    play.drain()


def _ignore(started: bool) -> None:
    assert not started
