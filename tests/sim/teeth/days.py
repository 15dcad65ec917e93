"""Traces for what day files must never do: tell of a job that goes on, or of one that was there before it."""

from __future__ import annotations

from stado_coordinator.compaction import RESIDENT_EVERY_S, Compaction
from stado_coordinator.tick import Tick
from stado_like.job import day_keys, keys
from stado_like.job.states import Cause
from stado_like.reading.candidates import Candidate
from stado_like.reading.day_rows import DayRows
from stado_like.store.protocol import list_all
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, run, submit
from tests.sim import scenarios as scene
from tests.sim.teeth.traces import stage


def job_that_is_to_be_retried_is_in_no_day_file() -> None:
    """Though nothing says that it goes on: its entry was lost, or is not listed yet."""
    with stage() as play:
        scene._submitted(play)
        hand = play.hand("w1")
        scene._take(play, hand)
        hand.end(scene._attempt(hand), Cause.FAILURE)
        Compaction().step(play.bucket("tick"), {}, (), resident=False)


def bucket_that_was_emptied_and_used_again_is_not_told_by_old_day_files() -> None:
    """The same name and incarnation, submitted at the same moment: only its record's etag is another one."""
    clock = Clock()
    bucket = build.make_bucket(clock)
    began = clock.now_s
    run(bucket, attempt(submit(bucket)))
    tick = Tick(bucket, resident=True)
    tick.step()
    clock.now_s += RESIDENT_EVERY_S + 300.0
    tick.step()
    clock.now_s += RESIDENT_EVERY_S + 300.0
    tick.step()
    assert list(list_all(bucket.store, day_keys.DAYS))
    bucket.drop(*(row.key for row in list_all(bucket.store, "") if not row.key.startswith(day_keys.DAYS)))
    clock.now_s = began
    j = submit(bucket)
    (row,) = list_all(bucket.store, keys.JOBS)
    told = DayRows(bucket, "", worth_a_listing=0).rows([Candidate(row.last_modified, row.key, row.etag)])
    assert told == {}, f"the job {j} waits, and was told by a day file as {told[row.key].state}"
