"""Traces found by reading the transitions against each other: each left something that nobody would have mended."""

from __future__ import annotations

from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.cancel import carry_out_stop, stop_task
from stado_like.bucket.delete import delete_job
from stado_like.bucket.end import Seen, end_attempt
from stado_like.bucket.finish import early_verdict
from stado_like.bucket.settle import settle
from stado_like.bucket.submit import DoneAndDeleted, Submitted, submit
from stado_like.job import keys
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Pointer
from stado_like.job.spec.validate import validate
from stado_like.job.states import Cause, JobState
from stado_like.job.terms import terms_of
from stado_like.store.memory import MemoryStore
from stado_like.store.protocol import list_all


@pytest.fixture
def bucket(request: pytest.FixtureRequest) -> Bucket:
    return Bucket(MemoryStore(f"left-{request.node.name}"))


def document(name: str, **spec: Any) -> dict[str, Any]:
    return validate({"metadata": {"name": name}, "spec": {"task_template": {"command": "true"}, **spec}})


def submitted(bucket: Bucket, name: str, **spec: Any) -> JobId:
    made = submit(bucket, document(name, **spec))
    assert isinstance(made, Submitted)
    return made.id


def end_all(bucket: Bucket, j: JobId, cause: Cause = Cause.NONE, ranks: range = range(1)) -> None:
    job = bucket.job(j)
    assert job is not None
    for rank in ranks:
        a = AttemptId(j, rank, 1)
        ended = end_attempt(bucket, a, terms_of(job.document), Ended(cause, "over"), Seen(worker="w"))
        settle(bucket, a, ended.end, job=job)


def keys_of(bucket: Bucket) -> set[str]:
    return {row.key for row in list_all(bucket.store, "")} - {keys.DOORBELL}


def test_submit_over_a_deletion_cut_short_leaves_its_frame_and_the_tick_finishes_it(bucket: Bucket) -> None:
    j = submitted(bucket, "a", array={"size": 1})
    end_all(bucket, j)
    # The deletion up to and including `delete jobs/…`, then its process dies.
    bucket.ensure(keys.open_index(j), Pointer(what="deletion", at=bucket.now()))
    job = bucket.job(j)
    assert job is not None
    from stado_like.job.records import Tombstone

    bucket.ensure(keys.tombstone(j), Tombstone(nonce="n", request_id=job.request_id, at=bucket.now()))
    bucket.drop(keys.job(j))
    again = submit(bucket, document("a", array={"size": 1}))
    assert isinstance(again, Submitted) and again.id.k == 2
    for _ in range(3):
        Tick(bucket).step()
    assert not [key for key in keys_of(bucket) if key.startswith(keys.status_of(j))]
    assert keys.open_index(j) not in keys_of(bucket)
    assert keys.tombstone(j) in keys_of(bucket)


def test_deletion_of_a_job_whose_own_index_was_left_still_has_a_frame(bucket: Bucket) -> None:
    """A crash after `final` leaves open/<j> saying "submitted": the deletion must not rely on that one."""
    j = submitted(bucket, "a", array={"size": 1})
    end_all(bucket, j)
    bucket.ensure(keys.open_index(j), Pointer(what="submitted", at=0.0))
    seen: list[set[str]] = []
    drop = bucket.drop

    def watched(*unwanted: str) -> None:
        if keys.job(j) in unwanted:
            seen.append(keys_of(bucket))
        drop(*unwanted)

    bucket.drop = watched  # type: ignore[method-assign]
    delete_job(bucket, j)
    assert seen and all(keys.open_index(j) in present for present in seen)
    assert not [key for key in keys_of(bucket) if str(j) in key and not key.startswith(keys.DELETED)]


def test_stop_of_a_rank_never_released_goes_from_the_index_once_the_job_is_final(bucket: Bucket) -> None:
    j = submitted(bucket, "a", array={"size": 3, "max_parallel": 1})
    job = bucket.job(j)
    assert job is not None
    stop_task(bucket, j, 2)
    early_verdict(bucket, j, JobState.CANCELLED, "Run cancelled", by="someone")
    for _ in range(2):
        Tick(bucket).step()
    assert bucket.final(j) is not None
    bucket.ensure(keys.cancel_index(j, 2), Pointer(what="late"))  # its writer slept until now
    assert carry_out_stop(bucket, j, 2, job, terms_of(job.document))
    assert keys.cancel_index(j, 2) not in keys_of(bucket)


def test_failures_miscounted_by_an_old_listing_are_counted_again_by_the_tick(bucket: Bucket) -> None:
    j = submitted(bucket, "a", array={"size": 5, "max_parallel": 5}, max_task_failures=1)
    job = bucket.job(j)
    assert job is not None
    for rank in range(2):  # two ends whose settling saw none of the other: written without it
        a = AttemptId(j, rank, 1)
        terms = terms_of(
            {
                **job.document,
                "spec": {**job.document["spec"], "task_template": {"command": "true", "restart_policy": "Never"}},
            }
        )
        end_attempt(bucket, a, terms, Ended(Cause.FAILURE, "Exited with code 1"), Seen(worker="w"))
    assert bucket.verdict(j) is None
    Tick(bucket).step()
    verdict = bucket.verdict(j)
    assert verdict is not None and verdict.state is JobState.FAILED and verdict.early
    assert verdict.reason.startswith("2 of 5 workers failed; the first: Worker a-0 failed on w")


def test_same_request_after_the_deletion_is_told_that_it_is_done_and_deleted(bucket: Bucket) -> None:
    made = submit(bucket, document("a"), request_id="r1")
    assert isinstance(made, Submitted)
    end_all(bucket, made.id)
    delete_job(bucket, made.id)
    assert isinstance(submit(bucket, document("a"), request_id="r1"), DoneAndDeleted)
