"""Uploads as proof of life, cleaning up beside an attempt that was thought dead, and where a new job may go on from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from stado_coordinator.tick import Tick
from stado_like import Client
from stado_like.bucket import checkpoints
from stado_like.errors import NotFound, Refused
from stado_like.job import keys
from stado_like.job.checkpoint import Manifest, Ref
from stado_like.job.checkpoint_keys import Shelf
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.states import Outcome
from stado_like.store.protocol import Write
from stado_worker.checkpoints.sending import Sender, Sizes
from tests import builders_jobs as build
from tests.builders_jobs import Clock
from tests.builders_tick import TTL_S, Stage

PARTS = 40
PART_S = 45.0


class Slow:
    """A store to which one part takes a while, whatever happens meanwhile."""

    def __init__(self, stage: Stage, meanwhile: Callable[[], object]) -> None:
        self._put, self._stage, self._meanwhile = stage.store.put_file, stage, meanwhile

    def __call__(self, key: str, file: BinaryIO) -> Write:
        self._stage.clock.pass_s(PART_S)
        answer = self._put(key, file)
        self._meanwhile()
        return answer


@pytest.fixture
def stage() -> Stage:
    return Stage()


def sender(stage: Stage, a: AttemptId, folder: Path) -> Sender:
    shelf = Shelf(a.job, a.rank)
    return Sender(stage.bucket, shelf, a, os.fsencode(folder), 2, lambda s: False, sizes=Sizes(small=1, part=100))


def running(stage: Stage) -> AttemptId:
    a = AttemptId(stage.submit(), 0, 1)
    stage.claim(a)
    stage.beat(a, running_at=stage.bucket.now())
    return a


def test_upload_of_many_parts_that_starves_the_heartbeat_is_not_reaped(stage: Stage, tmp_path: Path) -> None:
    """Large uploads make healthy tasks look dead: each part that arrives is a sign of life, for half an hour."""
    a = running(stage)
    (tmp_path / "large").write_bytes(os.urandom(100 * PARTS))
    tick = Tick(stage.bucket)
    stage.store.put_file = Slow(stage, tick.step)  # type: ignore[method-assign]
    assert sender(stage, a, tmp_path).save(still=True) == Ref(1, 1)
    assert stage.clock.at_s >= PARTS * PART_S > 20 * TTL_S
    assert stage.keys(keys.end(a)) == []
    stage.clock.pass_s(TTL_S + 16)
    tick.step()
    stage.clock.pass_s(TTL_S)
    tick.step()
    found = stage.bucket.end(a)
    assert found is not None and found.outcome is Outcome.DOWN  # silent now, checkpoint or not


def test_uploads_of_another_attempt_prove_nothing(stage: Stage, tmp_path: Path) -> None:
    a = running(stage)
    (tmp_path / "large").write_bytes(os.urandom(100 * PARTS))
    tick = Tick(stage.bucket)
    stage.store.put_file = Slow(stage, tick.step)  # type: ignore[method-assign]
    sender(stage, a.next, tmp_path).save(still=True)
    found = stage.bucket.end(a)
    assert found is not None and found.outcome is Outcome.DOWN


def test_attempt_that_was_ended_while_it_published_removes_nothing(stage: Stage, tmp_path: Path) -> None:
    a = running(stage)
    one = sender(stage, a, tmp_path)
    for step in range(2):
        (tmp_path / "step").write_bytes(bytes([step]) * 50)
        one.save(still=True)
    stage.store.put(keys.end(a), b"{}")
    (tmp_path / "step").write_bytes(b"x" * 50)
    assert one.save(still=True) == Ref(1, 3)
    assert checkpoints.held(stage.bucket, Shelf(a.job, 0)).newest_first == [Ref(1, 3), Ref(1, 2), Ref(1, 1)]


def test_rerun_from_checkpoint_needs_one(clock: Clock) -> None:
    bucket = build.make_bucket(clock)
    client = Client(bucket.store.url, opened=bucket.store, ambient=clock)
    plain = client.submit(command=["true"], name="plain")
    with pytest.raises(Refused, match=r"has no checkpoint\.dir"):
        plain.rerun(from_checkpoint=True)
    train = client.submit(command=["true"], name="train", array="2", checkpoint_dir="state")
    with pytest.raises(Refused, match=r"no task of the job .* has left a complete checkpoint"):
        train.rerun(from_checkpoint=True)
    made = Manifest(f"{train.id}.00001.000001", Ref(1, 1), 1.0, directories={b"a": 0o700})
    checkpoints.publish(bucket, Shelf(train.id, 1), made)
    again = train.rerun(from_checkpoint=True)
    assert (again.name, client.terms(again).checkpoint_from) == ("train-2", "default.train.1")
    client.cancel(train)
    run_out(client, train.id)
    client.delete(train)
    assert [row.key for row in bucket.store.list("checkpoints/").rows] == []
    with pytest.raises(NotFound):
        client.rerun(train, from_checkpoint=True)


def run_out(client: Client, j: JobId) -> None:
    """Until a cancelled job is over."""
    Tick(client.bucket).step()
    assert client.bucket.final(j) is not None


@pytest.fixture
def clock() -> Clock:
    return Clock()
