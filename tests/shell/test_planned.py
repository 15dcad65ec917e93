"""What `job explain`, `submit --dry-run --explain` and `scheduler plan` say is what the next tick does: on stores that
stand still, each is asked, then a tick is made, and both are compared."""

from __future__ import annotations

from typing import Any

import pytest

from stado_coordinator.tick import Tick
from stado_like.bucket import holding
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.workspaces import Workspaces
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.waits import Waiting as Hint
from stado_like.job.workspace import Edit
from stado_like.planning.place_actions import PlaceOne
from stado_like.reading import explaining, planned
from tests.builders_queue import Waiting, job

RACK: dict[str, Any] = {"machines": 2, "topology": {"keep_within": "rack"}}
R1 = {"topology.stado.io/rack": "r1"}


@pytest.fixture
def stage() -> Waiting:
    return Waiting()


def busy(stage: Waiting, worker: str = "w1", *, cores: float = 4, takes: float = 3, limit_s: int | None = 3600) -> None:
    """A machine with one task that leaves a core free."""
    task = {"time_limit_seconds": limit_s} if limit_s else {}
    a = AttemptId(stage.put(f"runs-{worker}", cores=takes, task=task), 0, 1)
    claim = stage.claim(a, worker)
    stage.machine(worker, cores=cores, free=cores - takes, held=((a, claim.nonce),), labels=R1)


def explain(stage: Waiting, j: JobId) -> dict[str, Any]:
    return explaining.explain_json(explaining.explain(stage.bucket, j))


def tick(stage: Waiting) -> Any:
    return Tick(Bucket(stage.store, ambient=stage.clock)).step()


def test_what_is_told_to_be_placed_is_placed_there(stage: Waiting) -> None:
    j = stage.put("near", resources=RACK)
    stage.machine("w1", labels=R1)
    stage.machine("w2", labels=R1)
    said = explain(stage, j)["next"]
    assert said["does"] == "place"
    tick(stage)
    assert said["where"] == {f"near-{one.attempt.rank}": one.worker for one in stage.orders()}


def test_what_is_told_to_wait_is_not_placed_and_the_head_is_named(stage: Waiting) -> None:
    busy(stage)
    head = stage.put("head", cores=4)
    behind = stage.put("behind", cores=4)
    said = explain(stage, behind)
    assert said["next"]["does"] == "wait" and said["next"]["head"] == "head"
    assert said["next"]["reason"].startswith("Queued behind head, which starts by ")
    (held,) = said["next"]["holds"]
    tick(stage)
    (hold,) = holding.on_board(holding.read(stage.bucket))
    assert (hold.job, hold.worker) == (head, held["machine"]) and held["for"] == "head"
    assert explain(stage, head)["next"]["is_head"]


def test_machines_are_told_with_what_they_have_free_and_what_is_short(stage: Waiting) -> None:
    busy(stage)
    stage.machine("w2", cores=2)
    j = stage.put("large", cores=4)
    machines = {one["name"]: one for one in explain(stage, j)["machines"]}
    assert machines["w1"]["free"] == "1 of 4 cores, 16.0 of 16.0 GiB free"
    assert machines["w2"]["reasons"] == ["insufficient cpu: need 4 cores, 2 free"]


def test_room_that_is_held_is_a_machines_reason(stage: Waiting) -> None:
    busy(stage, limit_s=None)
    stage.put("head", cores=4)
    small = stage.put("small", cores=1)
    (machine,) = explain(stage, small)["machines"]
    assert "head" in machine["reasons"][0]


def test_jobs_of_other_workspaces_are_never_named(stage: Waiting) -> None:
    busy(stage)
    stage.put("unmentioned", cores=4, workspace="theirs")
    j = stage.put("mine", cores=4)
    said = str(explain(stage, j))
    assert "unmentioned" not in said and "(a job in another namespace)" in said


def test_a_job_of_a_workspace_over_its_quota_says_the_numbers_and_the_history_tells_it_once(stage: Waiting) -> None:
    Workspaces(stage.bucket, lambda: None, lambda: "ada").edit("default", Edit(quota={"max_cpus": 1}))
    stage.machine("w1", cores=8)
    first, second = stage.put("first"), stage.put("second")
    assert explain(stage, first)["next"]["does"] == "place"
    reason = explain(stage, second)["next"]["reason"]
    assert reason == "Waits for namespace quota: cores 1 in use + 1 asked > 1"
    tick(stage)
    assert [one.attempt.job for one in stage.orders()] == [first]
    stage.clock.pass_s(20)
    stage.machine("w1", cores=8)
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    for _ in range(3):
        one.step()
    found = stage.bucket.read(Hint, keys.waiting(second))
    assert found is not None and found.record.reason == reason
    told = [change.reason for change in found.record.history.changes]
    assert told.count("Quota reached: cores 1 in use + 1 asked > 1") == 1


def test_waiting_reasons_are_put_when_they_change_and_not_again(stage: Waiting) -> None:
    busy(stage, limit_s=None)
    head = stage.put("head", cores=4)
    one = Tick(Bucket(stage.store, ambient=stage.clock))
    stage.clock.pass_s(15)
    one.step()
    found = stage.bucket.read(Hint, keys.waiting(head))
    assert found is not None and found.record.reason == "Next to run (priority 0): waits for running work to end"
    stage.store.writes.clear()
    stage.clock.pass_s(5)
    one.step()
    assert not [key for kind, key in stage.store.writes if key.startswith(keys.STATUS)]


def test_a_supposed_job_gets_what_the_same_job_gets_when_it_is_submitted(stage: Waiting) -> None:
    busy(stage)
    stage.machine("w2", cores=2, labels=R1)
    for name, how in (("fits", {"cores": 2}), ("waits", {"cores": 4}), ("near", {"resources": RACK, "cores": 1})):
        document = job(name, **how)
        terms, following = planned.suppose(stage.bucket, document)
        said = planned.next_json(following, terms.workspace)
        j = stage.put(name, **how)
        now = explain(stage, j)["next"]
        assert (said["does"], said["where"], said["reason"]) == (now["does"], now["where"], now["reason"])
        cancelled = [key for key in stage.keys(keys.QUEUED) if f".{name}." in key]
        for key in cancelled:
            stage.store.delete(key)


def test_a_supposed_job_writes_nothing(stage: Waiting) -> None:
    stage.machine("w1")
    stage.store.writes.clear()
    planned.suppose(stage.bucket, job("thought-of", cores=2))
    assert stage.store.writes == []


def test_the_plan_that_is_shown_is_the_one_that_is_carried_out(stage: Waiting) -> None:
    stage.put("near", resources=RACK)
    busy(stage, "w1")
    stage.machine("w2", labels=R1)
    _, shown = Tick(Bucket(stage.store, ambient=stage.clock)).look()
    wanted = {(one.attempt, one.worker) for one in shown.actions if isinstance(one, PlaceOne)}
    tick(stage)
    assert wanted and {(one.attempt, one.worker) for one in stage.orders()} == wanted
