"""Keys: what is built is what is parsed, nothing else parses, no key is another's folder, entries sort as scheduled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.errors import BadRecord
from stado_like.job import keys
from stado_like.job.keys import AttemptId, JobId
from stado_like.job.terms import Ask
from stado_like.store.key_shape import check_written

workspaces = st.from_regex(r"[a-z0-9-]{1,57}", fullmatch=True)
names = st.from_regex(r"[A-Za-z0-9_-]{1,57}", fullmatch=True)
jobs = st.builds(JobId, workspaces, names, st.integers(1, 10_000))
attempts = st.builds(AttemptId, jobs, st.integers(0, 99_999), st.integers(1, 2_000_000))
asks = st.builds(
    Ask,
    cpu_millis=st.integers(0, 65_536_000),
    memory_bytes=st.integers(0, 1 << 60),
    gpus=st.integers(0, 65_536),
    exclusive=st.booleans(),
    pinned_host=st.sampled_from(("", "node-1")),
)
times_ms = st.integers(0, 9_999_999_999_999)
workers = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}", fullmatch=True)
priorities = st.integers(-1000, 1000)
indexes = st.sampled_from((keys.QUEUED_OPEN, keys.QUEUED_HELD))


@given(attempts)
def test_attempt_id_is_read_back(a: AttemptId) -> None:
    assert AttemptId.parse(str(a)) == a
    assert JobId.parse(str(a.job)) == a.job
    assert a.next.previous == a


@given(attempts, indexes, priorities, times_ms, asks, workers, st.integers(1, 99))
def test_every_key_is_read_back(
    a: AttemptId, index: str, priority: int, at_ms: int, ask: Ask, worker: str, k: int
) -> None:
    j = a.job
    assert keys.parse_job(keys.job(j)) == j
    assert keys.parse_tombstone(keys.tombstone(j)) == j
    assert keys.parse_open_index(keys.open_index(j)) == j
    assert keys.parse_running(keys.running(a)) == a
    assert keys.parse_cancel_index(keys.cancel_index(j)) == (j, None)
    assert keys.parse_cancel_index(keys.cancel_index(j, a.rank)) == (j, a.rank)
    assert keys.parse_status(j, keys.end(a)) == keys.StatusKey("end", a.rank, a.n)
    assert keys.parse_status(j, keys.heartbeat(a)) == keys.StatusKey("heartbeat", a.rank, a.n)
    assert keys.parse_status(j, keys.stop(j, a.rank)) == keys.StatusKey("stop", a.rank)
    assert keys.parse_status(j, keys.verdict(j)) == keys.StatusKey("verdict")
    assert keys.parse_status(j, keys.final(j)) == keys.StatusKey("final")
    assert keys.parse_capacity(keys.capacity(worker)) == worker
    assert keys.parse_log_chunk(keys.log_chunk(a, at_ms % 10**12)) == at_ms % 10**12
    entry = keys.parse_entry(keys.entry(index, a, priority, at_ms, ask))
    assert (entry.attempt, entry.priority, entry.created_ms) == (a, priority, at_ms)
    assert entry.envelope == keys.envelope(ask)
    later = keys.parse_later(keys.later(at_ms, a, ask))
    assert (later.attempt, later.due_ms) == (a, at_ms)
    for kind in ("place", "stop"):
        order = keys.parse_order(keys.order(worker, kind, a, k))
        assert (order.worker, order.kind, order.attempt, order.k) == (worker, kind, a, k)


def every_key(a: AttemptId, ask: Ask, worker: str) -> list[str]:
    """One key of every kind in which this attempt, its job, or a worker is named."""
    j = a.job
    return [
        keys.job(j), keys.tombstone(j), keys.open_index(j), keys.running(a), keys.heartbeat(a), keys.end(a),
        keys.stop(j, a.rank), keys.verdict(j), keys.final(j), keys.waiting(j), keys.cancel_index(j),
        keys.cancel_index(j, a.rank), keys.log_chunk(a, 0), keys.capacity(worker), keys.wanted(worker),
        keys.entry(keys.QUEUED_OPEN, a, 0, 1, ask), keys.entry(keys.QUEUED_HELD, a, 0, 1, ask), keys.later(1, a, ask),
        keys.order(worker, "place", a, 1), keys.order(worker, "stop", a, 1), f"{keys.checkpoints_of(a)}x",
        keys.DOORBELL, keys.STORE_VERDICT, keys.TICK_LOCK, keys.TICK_REPORT, keys.OBSERVED, keys.SWEEP_CURSOR,
        keys.PAUSE,
    ]  # fmt: skip


@given(st.lists(attempts, min_size=1, max_size=3), asks, st.lists(workers, min_size=1, max_size=3))
def test_no_key_is_the_folder_of_another(some: list[AttemptId], ask: Ask, machines: list[str]) -> None:
    related = [*some, *(a.next for a in some), *(AttemptId(a.job, 0, 1) for a in some)]
    built = {key for a in related for machine in machines for key in every_key(a, ask, machine)}
    folders = {key[: slash.start()] for key in built for slash in re.finditer("/", key)}
    assert built & folders == set()


@given(attempts, asks, workers)
def test_every_key_may_be_written(a: AttemptId, ask: Ask, worker: str) -> None:
    for key in every_key(a, ask, worker):
        check_written(key)


@given(st.lists(st.tuples(attempts, priorities, times_ms, asks), max_size=8), indexes)
def test_listing_order_is_scheduling_order(rows: list[tuple[AttemptId, int, int, Ask]], index: str) -> None:
    entries = [keys.parse_entry(keys.entry(index, a, priority, at_ms, ask)) for a, priority, at_ms, ask in rows]
    in_list = [entry.order for entry in sorted(entries, key=lambda entry: entry.key)]
    assert in_list == sorted(in_list)


@given(st.lists(st.tuples(attempts, times_ms, asks), max_size=8))
def test_later_lists_the_first_due_first(rows: list[tuple[AttemptId, int, Ask]]) -> None:
    listed = sorted(keys.later(at_ms, a, ask) for a, at_ms, ask in rows)
    due = [keys.parse_later(key).due_ms for key in listed]
    assert due == sorted(due)


@given(asks)
def test_envelope_never_asks_for_more_than_the_task_does(ask: Ask) -> None:
    """An entry that would fit is never passed over for its name."""
    envelope = keys.envelope(ask)
    assert envelope.cores * 1000 <= ask.cpu_millis
    assert envelope.mib * keys.MIB <= ask.memory_bytes
    exact = envelope.cores * 1000 == ask.cpu_millis and envelope.mib * keys.MIB == ask.memory_bytes
    assert envelope.picky == (not exact or ask.exclusive or bool(ask.pinned_host))


STRAY = [
    (JobId.parse, "default.train"),
    (JobId.parse, "default.train.x"),
    (JobId.parse, "default.train.0"),
    (JobId.parse, "default.train.01"),
    (JobId.parse, "default.tr ain.1"),
    (JobId.parse, "default.train.1\n"),
    (JobId.parse, "default.train.\u0663"),
    (AttemptId.parse, "default.train.1.3.2"),
    (AttemptId.parse, "default.train.1.00003.2"),
    (AttemptId.parse, "default.train.1.00003.000000"),
    (AttemptId.parse, "default.train.1.00003.0000002"),
    (AttemptId.parse, "default.train.1.-0003.000002"),
    (keys.parse_job, "jobs/default/train.1"),
    (keys.parse_job, "jobs/default/sub/train.1.json"),
    (keys.parse_job, "jobs/default/tr\x01ain.1.json"),
    (keys.parse_running, "running/default.train.1.00003.000002"),
    (keys.parse_running, "running/default.train.1.00003.000002.json.json"),
    (keys.parse_entry, "queued/open/1000.1.default.train.1.00000.000001.c1m1024g0.json"),
    (keys.parse_entry, "queued/open/1000.0000000000001.default.train.1.00000.000001.c1m1024.json"),
    (keys.parse_entry, "queued/open/1000.0000000000001.default.train.1.00000.000001.c01m1024g0.json"),
    (keys.parse_entry, "queued/open/9000.0000000000001.default.train.1.00000.000001.c1m1024g0.json"),
    (keys.parse_entry, "queued/other/1000.0000000000001.default.train.1.00000.000001.c1m1024g0.json"),
    (keys.parse_later, "queued/later/1.default.train.1.00000.000001.c1m1024g0.json"),
    (keys.parse_order, "inbox/w/stop.default.train.1.00000.000001.01.json"),
    (keys.parse_order, "inbox/w/jump.default.train.1.00000.000001.1.json"),
    (keys.parse_order, "inbox/w/x/stop.default.train.1.00000.000001.1.json"),
    (keys.parse_cancel_index, "cancels/default.train.1.3.json"),
    (keys.parse_log_chunk, "logs/default/train.1/00000/000001/7.log"),
]


@pytest.mark.parametrize(("parse", "key"), STRAY, ids=[key for _, key in STRAY])
def test_what_we_would_not_write_is_not_read(parse: Callable[[str], Any], key: str) -> None:
    """What is done about a key that spells an attempt in another way goes to the true spelling, for ever in vain.

    Case: name with U+0001 in a bucket: reported, and the list survives.
    """
    with pytest.raises(BadRecord):
        parse(key)


STRANGE_STATUS = ["00003/end.2.json", "3/end.000002.json", "00003/stop.000001.json", "x", "final.json/x", "00003"]


@pytest.mark.parametrize("rest", STRANGE_STATUS)
def test_strange_status_key_is_refused(rest: str) -> None:
    j = JobId("default", "train", 1)
    with pytest.raises(BadRecord):
        keys.parse_status(j, keys.status_of(j) + rest)


dotted = st.text(alphabet="ab01.-/_jsonxcmg", max_size=40)


@given(st.sampled_from((keys.RUNNING, keys.OPEN, keys.DELETED, keys.CANCELS, keys.JOBS, keys.QUEUED_OPEN)), dotted)
def test_any_text_is_refused_or_is_exactly_a_key(prefix: str, rest: str) -> None:
    key = f"{prefix}{rest}.json"
    try:
        if prefix == keys.RUNNING:
            assert keys.running(keys.parse_running(key)) == key
        elif prefix == keys.OPEN:
            assert keys.open_index(keys.parse_open_index(key)) == key
        elif prefix == keys.DELETED:
            assert keys.tombstone(keys.parse_tombstone(key)) == key
        elif prefix == keys.CANCELS:
            assert keys.cancel_index(*keys.parse_cancel_index(key)) == key
        elif prefix == keys.JOBS:
            assert keys.job(keys.parse_job(key)) == key
        else:
            keys.parse_entry(key)
    except BadRecord as refused:
        assert refused.next_step


@pytest.mark.parametrize("name", ["", "0f" * 31, "0F" * 32, "0f" * 32 + ".part", "0f" * 32 + "\n", "x/" + "0f" * 32])
def test_only_a_digest_names_a_bundle(name: str) -> None:
    assert keys.parse_bundle(keys.bundle("0f" * 32)) == "0f" * 32
    check_written(keys.bundle("0f" * 32))
    with pytest.raises(BadRecord):
        keys.parse_bundle(f"bundles/{name}")
    with pytest.raises(BadRecord):
        keys.bundle(name)
