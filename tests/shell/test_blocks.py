"""Arrays in blocks: one claim and one end for several short tasks, through every transition."""

from __future__ import annotations

import pytest

from stado_like.bucket import cancel, delete, finish, load, mend
from stado_like.bucket import claim as claiming
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.claim import Over
from stado_like.bucket.end import Seen, commit, end_attempt
from stado_like.bucket.settle import settle
from stado_like.errors import BadRecord, InvalidSpecification
from stado_like.fsck.check import check
from stado_like.job import blocks, codec, keys, reasons
from stado_like.job.budget import Ended
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim
from stado_like.job.states import Cause, JobState, TaskState
from stado_like.reading.view import read_job, read_task
from stado_like.store.meter import Meter
from tests.builders_blocks import BLOCKED, block_end, end_block, run_block, terms_at, unit
from tests.builders_jobs import Clock, attempt, claim, document, end, make_bucket, run, submit


@pytest.fixture
def bucket() -> Bucket:
    return make_bucket(Clock())


def queued(bucket: Bucket) -> list[AttemptId]:
    return [keys.attempt_of_entry(row.key) for row in bucket.store.list(keys.QUEUED).rows]


def clean(bucket: Bucket) -> None:
    assert check(bucket, audit=True).findings == []


def finished(bucket: Bucket, j: JobId) -> dict[str, int]:
    job = bucket.job(j)
    assert job is not None
    assert finish.finish_if_over(bucket, j, job, terms_at(bucket, j))
    final = bucket.final(j)
    assert final is not None
    return dict(final.counts)


# ---- pure


def test_every_rank_is_in_one_block_and_every_unit_is_released_by_one() -> None:
    for size, block in ((8, 4), (9, 4), (100, 7), (5000, 64), (10_000, 64), (3, 2)):
        terms = terms_of_array(size, block)
        of = [rank for one in blocks.units(terms) for rank in blocks.ranks_of(terms, one)]
        assert of == list(range(size))
        assert all(rank in blocks.ranks_of(terms, blocks.unit_of(terms, rank) or 0) for rank in range(size))
        released = [one for unit in blocks.units(terms) for one in blocks.children(terms, unit)]
        assert sorted(released) == list(blocks.units(terms))[1:]
        assert all(one in blocks.children(terms, blocks.parent(terms, one) or 0) for one in released)


def terms_of_array(size: int, block: int):  # type: ignore[no-untyped-def]
    from stado_like.job.terms import terms_of

    return terms_of(document(array={"size": size, "block": block}))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"array": {"size": 8, "block": 4, "max_parallel": 2}}, "array.max_parallel"),
        ({"array": {"size": 8, "block": 4}, "template": {"checkpoint": {"path": "/c"}}}, "task_template.checkpoint"),
        ({"array": {"size": 8, "block": 4}, "collect": ["*.txt"]}, "collect"),
        ({"array": {"size": 8, "block": 4}, "scheduling_timeout_seconds": 60}, "scheduling_timeout_seconds"),
    ],
)
def test_what_a_block_cannot_keep_is_refused_beside_it(spec: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidSpecification) as refused:
        document(**spec)  # type: ignore[arg-type]
    assert said in str(refused.value.detail)


# ---- the way of a block


def test_a_submit_writes_one_entry_whatever_the_size() -> None:
    meter = Meter()
    bucket = make_bucket(Clock(), meter)
    submit(bucket, array={"size": 10_000, "block": 64})
    asked = meter.snapshot()
    assert len(queued(bucket)) == 1
    assert asked.total <= 7, meter.lines()  # open/, jobs/, its tombstone, one entry, the bell (read, and rung)


def test_an_array_in_blocks_runs_to_its_end(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    assert queued(bucket) == [unit(j)]
    claim(bucket, unit(j))
    assert queued(bucket) == [unit(j, 1)]  # a claim releases the next units
    end_block(bucket, unit(j), dict.fromkeys(range(4), 0))
    clean(bucket)
    run_block(bucket, unit(j, 1))
    clean(bucket)
    view = read_job(bucket, j)
    assert view.state is JobState.COMPLETED
    assert [one.state for one in view.tasks] == [TaskState.COMPLETED] * 8
    assert [one.attempt for one in view.tasks] == [1] * 8
    assert read_task(bucket, j, 5).exit_code == 0 and read_task(bucket, j, 5).worker == "w1"
    clean(bucket)


def test_a_rank_that_failed_is_tried_again_by_itself(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    end_block(bucket, unit(j), {0: 0, 1: 3, 2: 0, 3: 0})
    assert sorted(queued(bucket)) == [attempt(j, 1, 2), unit(j, 1)]
    clean(bucket)
    second = read_task(bucket, j, 1)
    assert (second.state, second.attempt) == (TaskState.PENDING, 2)
    assert second.attempts[0].exit_code == 3 and second.attempts[0].n == 1
    before = bucket.end(attempt(j, 1))
    assert before is not None and before.budgets.failures == 1
    run(bucket, attempt(j, 1, 2))
    clean(bucket)
    last = bucket.end(attempt(j, 1, 2))
    assert last is not None and last.budgets.failures == 1
    run_block(bucket, unit(j, 1))
    assert read_job(bucket, j).state is JobState.COMPLETED
    clean(bucket)


def test_ranks_given_back_are_first_attempts_of_their_own(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    end_block(bucket, unit(j), {0: 0}, given_back=[1, 2, 3])
    assert sorted(queued(bucket)) == [attempt(j, 1), attempt(j, 2), attempt(j, 3), unit(j, 1)]
    clean(bucket)
    for rank in (1, 2, 3):
        run(bucket, attempt(j, rank))
    run_block(bucket, unit(j, 1))
    assert [one.attempt for one in read_job(bucket, j).tasks] == [1] * 8
    clean(bucket)


def test_the_rank_that_goes_on_is_held_by_a_claim_of_its_own(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    bucket.decide(keys.running(attempt(j, 1)), Claim(nonce="n", attempt=str(attempt(j, 1)), worker="w1"))
    end_block(bucket, unit(j), {0: 0}, given_back=[1, 2, 3], goes_on=1)
    assert attempt(j, 1) not in queued(bucket)
    clean(bucket)
    end(bucket, attempt(j, 1))
    for rank in (2, 3):
        run(bucket, attempt(j, rank))
    run_block(bucket, unit(j, 1))
    assert read_job(bucket, j).state is JobState.COMPLETED
    clean(bucket)


def test_a_first_attempt_that_its_block_has_not_given_back_passes_no_gate(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    stray = Claim(nonce="s", attempt=str(attempt(j, 2)), worker="w2", queue_key="")
    for told in ("goes on", "carried"):
        assert claiming.send(bucket, attempt(j, 2), codec.encode(stray), "") is None
        assert isinstance(claiming.gate(bucket, attempt(j, 2), stray), Over), told
        assert bucket.claim(attempt(j, 2)) is None
        if told == "goes on":
            run_block(bucket, unit(j))


def test_a_lost_holder_costs_every_rank_of_its_block_one_machine(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    lost = Ended(Cause.MACHINE_LOST, reasons.MACHINE_LOST)
    done = end_attempt(bucket, unit(j), terms_at(bucket, j), lost, Seen(worker="w1", by="tick"))
    settle(bucket, unit(j), done.end, mending=True)
    assert sorted(queued(bucket)) == [*(attempt(j, rank, 2) for rank in range(4)), unit(j, 1)]
    one = bucket.end(attempt(j, 3))
    assert one is not None and one.budgets.machine == 1 and one.worker == "w1"
    clean(bucket)


def test_settling_again_queues_nothing_twice(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    record = block_end(bucket, unit(j), {0: 0, 1: 1}, given_back=[2, 3])
    stands = commit(bucket, unit(j), codec.encode(record)).end
    settle(bucket, unit(j), stands)
    before = queued(bucket)
    claim(bucket, attempt(j, 2))
    settle(bucket, unit(j), stands, mending=True)
    assert sorted(queued(bucket)) == sorted(set(before) - {attempt(j, 2)})
    clean(bucket)


# ---- decisions


def test_a_cancel_ends_blocks_that_nobody_holds(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    done = cancel.cancel_job(bucket, j)
    assert (done.ended, done.running, done.over) == (4, 0, True)
    view = read_job(bucket, j)
    assert view.state is JobState.CANCELLED and {one.state for one in view.tasks} == {TaskState.CANCELLED}
    assert queued(bucket) == []
    clean(bucket)


def test_a_cancel_leaves_a_claimed_block_to_its_holder(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    done = cancel.cancel_job(bucket, j)
    assert not done.over and done.running == 1
    end_block(bucket, unit(j), {0: 0, 1: 1}, given_back=[2, 3])
    job = bucket.job(j)
    assert job is not None
    assert cancel.carry_out(bucket, j, job, terms_at(bucket, j)).over
    assert [one.state for one in read_job(bucket, j).tasks[:4]] == [
        TaskState.COMPLETED,
        TaskState.FAILED,
        TaskState.CANCELLED,
        TaskState.CANCELLED,
    ]
    assert queued(bucket) == []
    clean(bucket)


def test_too_many_failures_in_a_block_end_the_job(bucket: Bucket) -> None:
    j = submit(bucket, on_failure="FailJob", max_task_failures=1, **BLOCKED)
    claim(bucket, unit(j))
    end_block(bucket, unit(j), {0: 1, 1: 1, 2: 0, 3: 0})
    verdict = bucket.verdict(j)
    assert verdict is not None and verdict.state is JobState.FAILED and verdict.early
    job = bucket.job(j)
    assert job is not None
    cancel.carry_out(bucket, j, job, terms_at(bucket, j))
    final = bucket.final(j)
    assert final is not None and final.state is JobState.FAILED
    clean(bucket)


def test_a_stop_of_a_rank_ends_at_once_where_nobody_holds_its_block(bucket: Bucket) -> None:
    """The block is given back, the others start by themselves."""
    j = submit(bucket, **BLOCKED)
    assert cancel.stop_task(bucket, j, 2)
    assert read_task(bucket, j, 2).state is TaskState.CANCELLED
    assert sorted(queued(bucket)) == [attempt(j, 0), attempt(j, 1), attempt(j, 3), unit(j, 1)]
    clean(bucket)


def test_a_stop_of_a_rank_whose_block_somebody_holds_is_left_to_the_holder(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    assert not cancel.stop_task(bucket, j, 2)
    assert bucket.end(unit(j)) is None and bucket.stop(j, unit(j).rank) is not None
    clean(bucket)


def test_a_claimer_of_a_block_of_which_one_is_stopped_gives_all_back(bucket: Bucket) -> None:
    """It would look for no rank's stop: it finds the mark, and gives all of them back to gates of their own."""
    j = submit(bucket, **BLOCKED)
    held = Claim(nonce="h", attempt=str(unit(j)), worker="w1")
    assert claiming.send(bucket, unit(j), codec.encode(held), "") is None
    assert not cancel.stop_task(bucket, j, 2)
    answer = claiming.gate(bucket, unit(j), held)
    assert answer == Over(reasons.BLOCK_GIVEN_BACK)
    stopped = Claim(nonce="t", attempt=str(attempt(j, 2)), worker="w1")
    assert claiming.send(bucket, attempt(j, 2), codec.encode(stopped), "") is None
    assert claiming.gate(bucket, attempt(j, 2), stopped) == Over(reasons.STOPPED_ON_REQUEST)
    for rank in (0, 1, 3):
        run(bucket, attempt(j, rank))
    run_block(bucket, unit(j, 1))
    job = bucket.job(j)
    assert job is not None
    cancel.carry_out_stop(bucket, j, 2, job, terms_at(bucket, j))
    assert finished(bucket, j) == {"Cancelled": 1, "Completed": 7}
    clean(bucket)


def test_a_stop_of_a_rank_that_its_block_ran_is_refused(bucket: Bucket) -> None:
    from stado_like.errors import Conflict

    j = submit(bucket, **BLOCKED)
    run_block(bucket, unit(j))
    with pytest.raises(Conflict):
        cancel.stop_task(bucket, j, 2)


# ---- what a crash leaves


def test_a_mender_finds_lost_units_lost_ranks_and_lost_retries(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    end_block(bucket, unit(j), {0: 0, 1: 1}, given_back=[2, 3])
    wanted = sorted(queued(bucket))
    bucket.drop(*(row.key for row in bucket.store.list(keys.QUEUED).rows))
    mend.mend_job(bucket, j, since=0.0, claimed={}, waiting={})
    assert sorted(queued(bucket)) == wanted
    clean(bucket)


def test_a_deleted_job_leaves_nothing(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    run_block(bucket, unit(j))
    run_block(bucket, unit(j, 1))
    delete.delete_job(bucket, j)
    assert [row.key for row in bucket.store.list("status/").rows] == []
    clean(bucket)


def test_a_row_that_cannot_be_read_is_a_bad_record(bucket: Bucket) -> None:
    j = submit(bucket, **BLOCKED)
    claim(bucket, unit(j))
    record = block_end(bucket, unit(j), dict.fromkeys(range(4), 0))
    broken = codec.to_plain(record) | {"carried": {**record.carried, "2": {"exit_code": "nought"}}}
    bucket.store.create(keys.end(unit(j)), codec.encode(broken))
    with pytest.raises(BadRecord):
        load.task_now(bucket, j, 2, load.list_status(bucket, j))
    assert "end-unreadable" in {one.code for one in check(bucket).findings}
