"""What ticks keep on a disk, for guards that matter only where a record or a whole store is another one under an old
name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.workspace import Quota, Workspace
from tests.builders_queue import Waiting


@contextmanager
def disk() -> Iterator[Path]:
    with TemporaryDirectory(prefix="stado-kept-") as place:
        yield Path(place)


def _stage() -> Waiting:
    stage = Waiting()
    stage.store.put(keys.STORE_VERDICT, b'{"nonce": "one"}')
    return stage


def _tick(stage: Waiting, cache: Path) -> None:
    Tick(Bucket(stage.store, ambient=stage.clock), cache=cache).step()


def attempt_that_another_claimed_is_that_ones() -> None:
    """The kept claim is of the worker that had it before; the one that has it now says that it lives."""
    stage = _stage()
    with disk() as cache:
        a = AttemptId(stage.put("twice"), 0, 1)
        stage.claim(a, "w1")
        _tick(stage, cache)
        stage.store.delete(keys.running(a))
        second = stage.claim(a, "w2")
        for _ in range(8):
            stage.clock.pass_s(60)
            stage.broadcast("w2", (a, second.nonce, True))
            _tick(stage, cache)
    assert not stage.keys(keys.end(a)), "an attempt that lives was reaped by the claim of who had it before"


def store_that_was_emptied_is_another() -> None:
    """Names and numbers begin anew there, and ask for another machine than what was kept says."""
    stage = _stage()
    with disk() as cache:
        for which, host in (("one", "w1"), ("two", "w2")):
            stage.store.put(keys.STORE_VERDICT, codec.encode({"nonce": which}))
            stage.store.put(keys.workspace("default"), codec.encode(Workspace(name="default", quota=Quota(max_cpus=8))))
            stage.put("train", pinned_host=host)
            _tick(stage, cache)
            _tick(stage, cache)
            if which == "one":
                for row in stage.store.list("").rows:
                    stage.store.delete(row.key)
        stage.machine("w1")
        _tick(stage, cache)
    assert not stage.orders(), "what wants another machine was placed as the job before it wished"


def job_that_is_no_more_is_not_queued_again() -> None:
    """It is known from the disk, and named by open/."""
    stage = _stage()
    with disk() as cache:
        j = stage.put("lost", array={"size": 2})
        _tick(stage, cache)
        for key in (*stage.keys("queued/"), keys.job(j)):
            stage.store.delete(key)
        stage.clock.pass_s(700)
        _tick(stage, cache)
    assert not stage.keys("queued/"), "a job without a record has entries again"
