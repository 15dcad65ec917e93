"""For every code that a check can find, a bucket that has it. Each entry of CASES: the code, how the bucket comes to
be, and whether only an audit sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stado_like.bucket import cancel, entries, finish
from stado_like.bucket.bucket import Bucket
from stado_like.bucket.delete import delete_job
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.records import Claim, End, Order, Pointer, Room, Stop, Tombstone, Verdict
from stado_like.job.states import Cause, Decision, JobState, Outcome, TaskState
from stado_like.job.terms import terms_of
from tests.builders_check import DAY_AND_MORE_S, Yard, entries_of, move, only_entry, rewrite
from tests.builders_jobs import attempt, beat, claim, end, run, submit, worker

ARRAY: dict[str, Any] = {"array": {"size": 5, "max_parallel": 2}}
Make = Callable[[Yard, Bucket], object]


def _raw_claim(bucket: Bucket, a: AttemptId, queue_key: str = "") -> None:
    bucket.decide(keys.running(a), Claim(nonce="n", attempt=str(a), worker="w1", queue_key=queue_key))


def _raw_end(bucket: Bucket, a: AttemptId, **fields: Any) -> None:
    plain = {
        "nonce": "n",
        "attempt": str(a),
        "outcome": Outcome.COMPLETED,
        "decision": Decision.FINAL,
        "state": TaskState.COMPLETED,
        "reason": "exit 0",
        **fields,
    }
    bucket.decide(keys.end(a), End(**plain))


def _without_entry(yard: Yard, b: Bucket) -> None:
    b.store.delete(only_entry(b, submit(b)))


def _lane_not_released(yard: Yard, b: Bucket) -> None:
    j = submit(b, **ARRAY)
    run(b, attempt(j, 0))
    b.store.delete(_entry_of(b, attempt(j, 2)))


def _entry_of(b: Bucket, a: AttemptId) -> str:
    return next(key for key in entries_of(b, a.job) if str(a) in key)


def _lane_ahead(yard: Yard, b: Bucket) -> None:
    j = submit(b, **ARRAY)
    job = b.job(j)
    assert job is not None
    entries.enqueue(b, job, terms_of(job.document), attempt(j, 2))


def _end_gap(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j))
    _raw_end(b, attempt(j, n=3))


def _end_after_final(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j))
    _raw_end(b, attempt(j, n=2))


def _end_beyond(yard: Yard, b: Bucket) -> None:
    _raw_end(b, attempt(submit(b), rank=1))


def _beat_ahead(yard: Yard, b: Bucket) -> None:
    beat(b, attempt(submit(b), n=2))


def _budget(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j), 1)
    rewrite(b, keys.end(attempt(j)), budgets={"failures": 2})


def _job_gone(yard: Yard, b: Bucket) -> JobId:
    j = submit(b)
    b.store.delete(keys.job(j))
    return j


def _entry_beyond(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    job = b.job(j)
    assert job is not None
    entries.enqueue(b, job, terms_of(job.document), attempt(j, rank=1))


def _entry_again(cause: Cause) -> Make:
    """The entry of an attempt that ended comes back: a PUT delivered again, hours later."""

    def make(yard: Yard, b: Bucket) -> None:
        j = submit(b)
        key = only_entry(b, j)
        seen = b.store.get(key)
        assert seen is not None
        run(b, attempt(j), 0 if cause is Cause.NONE else 1, cause=cause)
        b.store.put(key, seen.body)

    return make


def _entry_beside_claim(yard: Yard, b: Bucket) -> None:
    _raw_claim(b, attempt(submit(b)))


def _later_entry_beside_claim(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j), 1)
    _raw_claim(b, attempt(j, n=2))


def _stray_entry(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    job = b.job(j)
    assert job is not None
    entries.enqueue(b, job, terms_of(job.document), attempt(j, n=4))


def _entry_of_final(yard: Yard, b: Bucket) -> None:
    j = submit(b, **ARRAY)
    cancel.cancel_job(b, j)
    job = b.job(j)
    assert job is not None
    entries.enqueue(b, job, terms_of(job.document), attempt(j, rank=4))


def _misnamed(yard: Yard, b: Bucket) -> None:
    """Its priority is not the job's."""
    key = only_entry(b, submit(b))
    move(b, key, key.replace("/1000.", "/0900."))


def _misnamed_later(yard: Yard, b: Bucket) -> None:
    """Its due time is not the end's."""
    j = submit(b)
    run(b, attempt(j), 1)
    key = only_entry(b, j)
    later = keys.parse_later(key)
    move(b, key, key.replace(f"{later.due_ms:013d}", f"{later.due_ms + 60_000:013d}"))


def _moved_half_way(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j), 1)
    key = only_entry(b, j)
    body = b.store.get(key)
    entries.move_due(b, keys.parse_later(key))
    assert body is not None
    b.store.put(key, body.body)


def _entry_differs(yard: Yard, b: Bucket) -> None:
    rewrite(b, only_entry(b, submit(b)), gpus=8)


def _claim_without_job(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    claim(b, attempt(j))
    b.store.delete(keys.job(j))


def _unsettled(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    claim(b, attempt(j))
    _raw_end(b, attempt(j))


def _stray_claim(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j))
    _raw_claim(b, attempt(j, n=2))


def _claim_beyond(yard: Yard, b: Bucket) -> None:
    _raw_claim(b, attempt(submit(b), rank=1))


def _order(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j))
    a = attempt(j)
    b.decide(keys.order("w1", "stop", a, 1), Order(nonce="n", attempt=str(a), kind="stop"))


def _verdict_alone(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    b.decide(keys.verdict(j), Verdict(nonce="n", state=JobState.CANCELLED, reason="x", early=True))


def _cancel_not_carried_out(yard: Yard, b: Bucket) -> None:
    finish.early_verdict(b, submit(b), JobState.CANCELLED, "x", by="ann")


def _cancelled_while_running(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    a = attempt(j)
    claim(b, a)
    cancel.cancel_job(b, j)
    end(b, a, cause=Cause.REQUESTED, reason="x")


def _stop_alone(yard: Yard, b: Bucket) -> None:
    j = submit(b, **ARRAY)
    b.decide(keys.stop(j, 1), Stop(nonce="n", reason="x"))


def _stop_not_carried_out(yard: Yard, b: Bucket) -> None:
    _stop_alone(yard, b)
    b.ensure(keys.cancel_index(JobId("default", "train", 1), 1), Pointer(what="x"))


def _finished_array(b: Bucket) -> JobId:
    j = submit(b, **ARRAY)
    for rank in range(5):
        run(b, attempt(j, rank))
    return j


def _no_final(yard: Yard, b: Bucket) -> None:
    j = _finished_array(b)
    b.store.delete(keys.final(j))
    b.store.delete(keys.verdict(j))
    b.ensure(keys.open_index(j), Pointer(what="submitted"))


def _final_with_claim(yard: Yard, b: Bucket) -> None:
    j = submit(b, **ARRAY)
    cancel.cancel_job(b, j)
    _raw_claim(b, attempt(j, 3))


def _final_of_one(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j))
    other = submit(b, "other", array={"size": 1})
    run(b, attempt(other))
    move(b, keys.final(other), keys.final(j))


def _deletion_never_began(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    run(b, attempt(j))
    b.ensure(keys.open_index(j), Pointer(what="deletion"))
    yard.clock.now_s += DAY_AND_MORE_S


def _open_orphan(yard: Yard, b: Bucket) -> None:
    b.ensure(keys.open_index(JobId("default", "never", 1)), Pointer(what="submitted"))
    yard.clock.now_s += DAY_AND_MORE_S


def _deletion_cut_short(yard: Yard, b: Bucket) -> None:
    j = _finished_array(b)
    b.ensure(keys.tombstone(j), Tombstone(nonce="n"))


def _late_heartbeat(yard: Yard, b: Bucket) -> None:
    """A heartbeat delivered again after its job was deleted."""
    j = submit(b)
    run(b, attempt(j))
    delete_job(b, j)
    beat(b, attempt(j))


def _status_of_nothing(yard: Yard, b: Bucket) -> None:
    beat(b, attempt(JobId("default", "never", 1)))


def _logs_of_nothing(yard: Yard, b: Bucket) -> None:
    b.store.put(keys.log_chunk(attempt(JobId("default", "never", 1)), 0), b"line\n")


def _alive_twice(yard: Yard, b: Bucket) -> None:
    j = submit(b)
    body = b.store.get(keys.job(j))
    assert body is not None
    b.store.put(keys.job(JobId("default", "train", 2)), body.body)


def _garbage(key_of: Callable[[JobId], str], body: bytes = b"{") -> Make:
    def make(yard: Yard, b: Bucket) -> None:
        j = submit(b)
        run(b, attempt(j))
        b.store.put(key_of(j), body)

    return make


def _foreign(*foreign: str) -> Make:
    def make(yard: Yard, b: Bucket) -> None:
        held = b.store._bucket.held  # type: ignore[attr-defined]
        for key in foreign:
            b.store._bucket.keys.append(key)  # type: ignore[attr-defined]
            held[key] = (b"x", '"e"', yard.clock.now_s)
        b.store._bucket.keys.sort()  # type: ignore[attr-defined]

    return make


def _negative(yard: Yard, b: Bucket) -> None:
    """Negative free resources."""
    worker(b, free=Room(cpu_millis=-1000, memory_bytes=1 << 30))


def _overcommitted(yard: Yard, b: Bucket) -> None:
    worker(b, free=Room(cpu_millis=1000, memory_bytes=1 << 40))
    for name in ("one", "two"):
        claim(b, attempt(submit(b, name)))


_newer = codec.encode({"x": 1}).replace(b'"v":1', b'"v":2')
CASES: tuple[tuple[str, Make, bool], ...] = (
    ("attempt-lost", _without_entry, False),
    ("rank-not-released", _lane_not_released, False),
    ("lane-ahead", _lane_ahead, False),
    ("end-gap", _end_gap, False),
    ("end-after-final", _end_after_final, False),
    ("end-beyond-job", _end_beyond, False),
    ("heartbeat-ahead", _beat_ahead, False),
    ("budget-mismatch", _budget, False),
    ("entry-without-job", _job_gone, False),
    ("entry-beyond-job", _entry_beyond, False),
    ("entry-of-ended", _entry_again(Cause.NONE), False),
    ("entry-of-ended", _entry_again(Cause.FAILURE), False),
    ("entry-spent", _entry_beside_claim, False),
    ("entry-spent", _later_entry_beside_claim, False),
    ("entry-stray", _stray_entry, False),
    ("entry-of-final-job", _entry_of_final, False),
    ("entry-misnamed", _misnamed, False),
    ("entry-misnamed", _misnamed_later, False),
    ("entry-twice", _moved_half_way, False),
    ("entry-differs", _entry_differs, True),
    ("claim-without-job", _claim_without_job, False),
    ("claim-of-ended", _unsettled, False),
    ("claim-stray", _stray_claim, False),
    ("claim-beyond-job", _claim_beyond, False),
    ("order-spent", _order, False),
    ("verdict-without-index", _verdict_alone, False),
    ("cancel-unfinished", _cancel_not_carried_out, False),
    ("cancel-without-verdict", lambda yard, b: b.ensure(keys.cancel_index(submit(b)), Pointer()), False),
    ("cancel-left", _cancelled_while_running, False),
    ("stop-without-index", _stop_alone, False),
    ("stop-unfinished", _stop_not_carried_out, False),
    ("job-not-final", _no_final, False),
    ("final-without-verdict", lambda yard, b: b.store.delete(keys.verdict(_finished_array(b))), False),
    ("final-with-open-attempt", _final_with_claim, False),
    ("final-of-one-task", _final_of_one, False),
    ("final-differs", lambda yard, b: rewrite(b, keys.final(_finished_array(b)), counts={"Completed": 4}), True),
    ("final-differs", lambda yard, b: rewrite(b, keys.final(_finished_array(b)), state="Failed"), True),
    ("open-missing", lambda yard, b: b.store.delete(keys.open_index(submit(b, **ARRAY))), False),
    ("open-left", lambda yard, b: b.ensure(keys.open_index(_finished_array(b)), Pointer(what="submitted")), False),
    ("open-left", _deletion_never_began, False),
    ("open-without-job", _open_orphan, False),
    ("deletion-unfinished", _deletion_cut_short, False),
    ("deletion-unfinished", _late_heartbeat, False),
    ("status-without-job", _status_of_nothing, False),
    ("data-without-job", _logs_of_nothing, False),
    ("name-alive-twice", _alive_twice, False),
    ("job-misnamed", _alive_twice, False),
    ("job-unreadable", _garbage(keys.job), False),
    ("job-unreadable", _garbage(keys.job, codec.encode({"document": {}})), False),
    ("job-newer", _garbage(keys.job, _newer), False),
    ("end-unreadable", _garbage(lambda j: keys.end(attempt(j))), False),
    ("end-newer", _garbage(lambda j: keys.end(attempt(j)), _newer), False),
    ("record-unreadable", _garbage(lambda j: keys.heartbeat(attempt(j))), True),
    ("record-unreadable", _garbage(lambda j: keys.OBSERVED), True),
    ("record-newer", _garbage(lambda j: keys.heartbeat(attempt(j)), _newer), True),
    ("record-elsewhere", lambda yard, b: rewrite(b, only_entry(b, submit(b)), attempt="a.b.1.00000.000001"), True),
    ("record-large", _garbage(keys.waiting, b" " * 70_000), False),
    ("foreign-key", _foreign("jobs/readme.txt"), False),
    ("foreign-key", _foreign("status/default/train.1/00000/end.1.json"), False),
    ("foreign-key", _foreign("queued/open/\x01\n"), False),
    ("foreign-key", _foreign("elsewhere/x", "logs/x", "zzz"), False),
    ("folder-is-a-key", _foreign("config/a", "config/a-b", "config/a/b"), False),
    ("capacity-negative", _negative, False),
    ("worker-overcommitted", _overcommitted, True),
)
