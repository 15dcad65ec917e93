"""What a reader says keeps a task off a machine, from the machine's last word: the same sentences as its own."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.bucket.bucket import Bucket
from stado_like.job.labels import of_task
from stado_like.job.records import Held
from stado_like.reading.listing import Wanted, list_jobs
from stado_like.reading.shapes import job_json
from stado_like.reading.view import read_job
from tests.builders_jobs import Clock, attempt, make_bucket, submit, worker


@pytest.fixture
def bucket() -> Bucket:
    return make_bucket(Clock())


def resources(**asked: Any) -> dict[str, Any]:
    return {"template": {"requested_resources": asked}}


def test_machine_without_the_label_is_told_apart(bucket: Bucket) -> None:
    worker(bucket, "w1", labels={"pool": "a"})
    worker(bucket, "w2")
    j = submit(bucket, **resources(node_selection={"mode": "Any", "match_labels": {"pool": "a"}}))
    assert {one.name: one.reasons for one in read_job(bucket, j).nodes} == {
        "w1": (),
        "w2": ("machine lacks label pool=a",),
    }


def test_machine_that_holds_one_of_the_run_takes_no_other(bucket: Bucket) -> None:
    j = submit(bucket, **resources(machines=2))
    other = submit(bucket, "other")
    held = Held(attempt=str(attempt(j, 0)), nonce="n", alive=True)
    worker(bucket, "w1", held=(held,))
    worker(bucket, "w2", held=(Held(attempt=str(attempt(other, 0)), nonce="n", alive=True),))
    worker(bucket, "w3", held=(Held(attempt="of a newer kind", nonce="n", alive=True),))
    shown = job_json(read_job(bucket, j))["placement"]["nodes"]
    assert shown == [
        {"name": "w1", "reasons": ["another worker of this run is already on the machine"]},
        {"name": "w2", "reasons": []},
        {"name": "w3", "reasons": []},
    ]
    assert all(one.fits for one in read_job(bucket, other).nodes)


def test_ability_that_no_worker_has_is_named(bucket: Bucket) -> None:
    worker(bucket, "w1")
    j = submit(bucket, template={"image": "busybox"})
    view = read_job(bucket, j)
    assert view.reason == "No machine fits: 1 of 1 machines ready"
    assert view.nodes[0].reasons == ("machine runs no containers (image busybox)",)


def test_derived_labels_are_shown_and_found_and_stored_nowhere(bucket: Bucket) -> None:
    group = {"name": "g", "task_template": {"command": "true"}}
    j = submit(bucket, "run", metadata={"labels": {"team": "vision"}}, task_groups=[group, {**group, "name": "h"}])
    submit(bucket, "other")
    shown = job_json(read_job(bucket, j))
    assert shown["labels"] == {"team": "vision", "astraeus.io/created-by": "ann"}
    assert shown["tasks"][1]["labels"] == {
        "team": "vision",
        "astraeus.io/created-by": "ann",
        "job.astraeus.io/name": "run",
        "job.astraeus.io/replica-index": "1",
        "job.astraeus.io/group": "h",
        "job.astraeus.io/group-replica-index": "0",
    }
    job = bucket.job(j)
    assert job is not None and job.document["metadata"]["labels"] == {"team": "vision"}
    assert of_task(bucket.terms(job), "", 0)["job.astraeus.io/group"] == "g"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"team": "vision"}, ["run"]),
        ({"astraeus.io/created-by": "ann"}, ["other", "run"]),
        ({"astraeus.io/created-by": "bob"}, []),
        ({"job.astraeus.io/name": "run"}, ["run"]),
        ({"job.astraeus.io/replica-index": "0"}, ["other", "run"]),
        ({"job.astraeus.io/replica-index": "1"}, ["run"]),
        ({"job.astraeus.io/replica-index": "01"}, []),
        ({"job.astraeus.io/group": "h"}, ["run"]),
        ({"job.astraeus.io/group": ""}, []),
        ({"job.astraeus.io/group-replica-index": "0"}, ["run"]),
        ({"job.astraeus.io/group-replica-index": "1"}, []),
        ({"team": "vision", "job.astraeus.io/group": "i"}, []),
    ],
)
def test_jobs_are_listed_by_derived_labels_too(bucket: Bucket, wanted: dict[str, str], found: list[str]) -> None:
    group = {"name": "g", "task_template": {"command": "true"}}
    submit(bucket, "run", metadata={"labels": {"team": "vision"}}, task_groups=[group, {**group, "name": "h"}])
    submit(bucket, "other")
    assert sorted(row.id.name for row in list_jobs(bucket, Wanted(labels=wanted)).rows) == found
