"""What a person wants of machines and of the queue: records that stand, several people at once, and how readers tell
it."""

from __future__ import annotations

import pytest

from stado_like.bucket import pausing, workers
from stado_like.bucket.bucket import Bucket
from stado_like.fsck.check import check
from stado_like.job import codec, keys
from stado_like.job.records import Doorbell, Held
from stado_like.job.wanted import Wanted
from stado_like.reading.listing import Wanted as Asked
from stado_like.reading.listing import list_jobs
from stado_like.reading.queue import queue_status
from stado_like.reading.surroundings import Surroundings
from stado_like.reading.view import read_job
from tests.builders_jobs import Clock, attempt, make_bucket, run, submit, worker


@pytest.fixture
def bucket() -> Bucket:
    return make_bucket(Clock())


def bell(bucket: Bucket) -> list[tuple[str, str]]:
    found = bucket.read(Doorbell, keys.DOORBELL)
    return [(event.kind, event.what) for event in found.record.events] if found else []


# ---- machines


def test_cordon_drain_and_uncordon_edit_one_record(bucket: Bucket) -> None:
    assert workers.read(bucket, "w1") == Wanted()
    made = workers.cordon(bucket, "w1", reason="a fan", by="ada")
    assert (made.cordoned, made.drain, made.why, made.by) == (True, False, "a fan", "ada")
    drained = workers.drain(bucket, "w1", by="bob")
    assert (drained.cordoned, drained.drain, drained.why, drained.by) == (True, True, "a fan", "bob")
    free = workers.uncordon(bucket, "w1", by="ada")
    assert (free.cordoned, free.drain, free.why) == (False, False, "")
    assert workers.read(bucket, "w1") == free
    assert len({made.nonce, drained.nonce, free.nonce}) == 3
    assert bell(bucket) == [("drain", "w1")] * 3


def test_cordon_without_a_reason_says_by_whom(bucket: Bucket) -> None:
    assert workers.cordon(bucket, "w1", by="ada").why == "by ada"
    assert workers.cordon(bucket, "w2").why == "no reason was given"


def test_edit_keeps_what_it_does_not_speak_of(bucket: Bucket) -> None:
    """Labels, and whatever a newer version wrote into the record."""
    body = {**codec.to_plain(Wanted(nonce="n", labels={"pool": "a"})), "of_tomorrow": 7}
    bucket.store.put(keys.wanted("w1"), codec.encode(body))
    workers.cordon(bucket, "w1")
    found = workers.read(bucket, "w1")
    assert dict(found.labels) == {"pool": "a"} and found.extra["of_tomorrow"] == 7


def test_cordoned_machine_is_told_to_whoever_waits_before_it_has_heard(bucket: Bucket) -> None:
    worker(bucket, "w1")
    workers.cordon(bucket, "w1", reason="a fan")
    j = submit(bucket)
    view = read_job(bucket, j)
    assert view.reason == "No machine fits: 0 of 1 machines ready"
    assert {one.name: one.reasons for one in view.nodes} == {"w1": ("machine is cordoned: a fan",)}
    workers.uncordon(bucket, "w1")
    assert read_job(bucket, j).reason == "Waiting for workers to start"


def test_machine_that_closed_itself_says_so_in_its_own_words(bucket: Bucket) -> None:
    worker(bucket, "w1", accepting=False, why_not="no process could be started here, 10 times in a row")
    (node,) = read_job(bucket, submit(bucket)).nodes
    assert node.reasons == ("machine does not accept runs: no process could be started here, 10 times in a row",)


def test_machine_has_let_go_only_when_it_has_heard_and_holds_nothing(bucket: Bucket) -> None:
    drained = workers.drain(bucket, "w1")
    held = (Held(attempt="x", nonce="n", alive=True),)
    for more, expected in (
        ({"wanted": ""}, False),
        ({"wanted": drained.nonce, "held": held}, False),
        ({"wanted": drained.nonce}, True),
    ):
        worker(bucket, "w1", **more)
        (view,) = Surroundings(bucket).workers
        assert view.has_let_go is expected, more


def test_record_that_cannot_be_read_is_set_aside(bucket: Bucket) -> None:
    worker(bucket, "w1")
    bucket.store.put(keys.wanted("w1"), b"{")
    around = Surroundings(bucket)
    assert around.workers[0].is_ready
    assert list(around.set_aside) == ["workers/w1.json"]


def test_drain_of_the_host_of_a_completed_job_makes_no_new_attempt(bucket: Bucket) -> None:
    """Case: a finished batch job starts again when its node is toggled."""
    j = submit(bucket)
    run(bucket, attempt(j))
    before = sorted(row.key for row in bucket.store.list("").rows if not row.key.startswith(("workers/", "state/")))
    for _ in range(2):
        workers.drain(bucket, "w1")
        workers.uncordon(bucket, "w1")
    after = sorted(row.key for row in bucket.store.list("").rows if not row.key.startswith(("workers/", "state/")))
    assert after == before


def test_check_names_records_that_cannot_be_read(bucket: Bucket) -> None:
    workers.drain(bucket, "w1")
    pausing.pause(bucket)
    assert check(bucket, audit=True).findings == []
    bucket.store.put(keys.wanted("w2"), b"{")
    bucket.store.put(keys.PAUSE, b'{"v": 99}')
    found = {(one.key, one.code) for one in check(bucket, audit=True).findings}
    assert found == {("workers/w2.json", "record-unreadable"), ("queue/pause.json", "record-newer")}


# ---- the queue


def test_pause_stands_until_it_is_resumed(bucket: Bucket) -> None:
    worker(bucket, "w1")
    j = submit(bucket)
    made, ours = pausing.pause(bucket, reason="a new switch", by="ada")
    assert ours and pausing.read(bucket) == made
    again, ours = pausing.pause(bucket, reason="another", by="bob")
    assert (again, ours) == (made, False)
    assert queue_status(bucket).paused == made
    assert read_job(bucket, j).reason == "The queue is paused: a new switch"
    assert [row.reason for row in list_jobs(bucket, Asked()).rows] == ["The queue is paused: a new switch"]
    assert pausing.resume(bucket) and not pausing.resume(bucket)
    assert queue_status(bucket).paused is None
    assert read_job(bucket, j).reason == "Waiting for workers to start"
    assert bell(bucket)[-4:] == [("pause", "queue")] * 4


def test_pause_that_arrives_after_it_was_resumed_pauses_nobody() -> None:
    """The network keeps a request for minutes and delivers it then: nobody knows of that pause, or would resume it."""
    clock = Clock()
    bucket = make_bucket(clock)
    made, _ = pausing.pause(bucket, reason="a new switch", by="ada")
    late = codec.encode(made)
    assert pausing.resume(bucket)
    clock.now_s += 121.0
    bucket.store.put(keys.PAUSE, late)
    assert pausing.read(bucket) is None
    standing, ours = pausing.pause(bucket, reason="another", by="bob")
    assert ours and pausing.read(bucket) == standing


def test_pause_that_cannot_be_read_is_one(bucket: Bucket) -> None:
    bucket.store.put(keys.PAUSE, b"{")
    found = pausing.read(bucket)
    assert found is not None and "cannot be read" in found.why
    assert pausing.resume(bucket) and pausing.read(bucket) is None
