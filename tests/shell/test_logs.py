"""Output, exact to the byte, however its pieces lie; gaps are told; following misses nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.bucket.bucket import Bucket
from stado_like.job import codec, keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import Doorbell
from stado_like.reading import logs
from stado_like.reading.logs import Gap, JobFollower, Piece, TaskFollower, read_raw, read_tail, read_text
from stado_like.store.meter import Meter
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, claim, end, log_tail, run, submit


def started() -> tuple[Bucket, AttemptId, Clock]:
    clock = Clock()
    bucket = build.make_bucket(clock)
    a = attempt(submit(bucket))
    claim(bucket, a)
    return bucket, a, clock


def put(bucket: Bucket, a: AttemptId, offset: int, body: bytes) -> None:
    bucket.store.put(keys.log_chunk(a, offset), body)


def raw(bucket: Bucket, a: AttemptId) -> bytes:
    return b"".join(read_raw(bucket, a))


def test_a_short_log_lies_in_the_end_alone() -> None:
    bucket, a, _ = started()
    end(bucket, a, log=log_tail(b"hello\n"))
    assert raw(bucket, a) == b"hello\n"


def test_binary_output_is_exact_and_its_text_has_marks() -> None:
    """Binary output breaks the viewer: raw equals the bytes, the text view uses replacement marks."""
    bucket, a, _ = started()
    body = bytes(range(256)) * 40
    put(bucket, a, 0, body[:5000])
    end(bucket, a, log=log_tail(body, offset=5000))
    assert raw(bucket, a) == body
    assert read_text(bucket, a) == body.decode("utf-8", "replace")


def test_a_character_cut_by_a_seam_is_put_together() -> None:
    """Encoding error in the log writer: bytes are kept, whatever the locale."""
    bucket, a, _ = started()
    body = "zażółć\n".encode()
    put(bucket, a, 0, body[:3])
    put(bucket, a, 3, body[3:])
    assert read_text(bucket, a) == "zażółć\n"


def test_pieces_that_repeat_and_overlap_give_each_byte_once() -> None:
    bucket, a, _ = started()
    body = bytes(range(100))
    put(bucket, a, 0, body[:40])
    put(bucket, a, 20, body[20:60])
    put(bucket, a, 30, body[30:50])
    put(bucket, a, 40, body[40:90])
    end(bucket, a, log=log_tail(body, offset=70))
    assert raw(bucket, a) == body


def test_missing_bytes_are_told_with_their_number() -> None:
    """Killed task leaves no log: what was flushed is readable, what was not is said to be missing."""
    bucket, a, _ = started()
    put(bucket, a, 0, b"a" * 10)
    put(bucket, a, 30, b"b" * 10)
    assert list(logs.read_parts(bucket, a)) == [Piece(0, b"a" * 10), Gap(10, 20), Piece(30, b"b" * 10)]
    assert "20 bytes of output are missing here" in read_text(bucket, a)
    assert raw(bucket, a) == b"a" * 10 + b"b" * 10


def test_an_end_without_its_last_bytes_says_so() -> None:
    bucket, a, _ = started()
    put(bucket, a, 0, b"abc")
    tail = log_tail(b"")
    end(bucket, a, log=type(tail)(offset=3, size=9, text=""))
    assert list(logs.read_parts(bucket, a))[-1] == Gap(3, 6)


def test_one_line_of_ten_mebibytes_is_kept_whole() -> None:
    """Log task dies on a long line: one 10 MiB line without newline is stored and read whole."""
    bucket, a, _ = started()
    line = b"x" * (10 << 20)
    for at in range(0, len(line), 1 << 20):
        put(bucket, a, at, line[at : at + (1 << 20)])
    assert raw(bucket, a) == line
    assert b"".join(one.body for one in read_tail(bucket, a, 1) if isinstance(one, Piece)) == line


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6), st.integers(0, 8))
def test_tail_equals_the_last_lines(body: bytes, cuts: list[int], lines: int) -> None:
    body = body.replace(b"\x00", b"\n")
    bucket, a, _ = started()
    seams = sorted({0, *(cut for cut in cuts if cut < len(body))})
    for begin, stop in zip(seams, [*seams[1:], len(body)], strict=True):
        put(bucket, a, begin, body[begin:stop])
    told = b"".join(one.body for one in read_tail(bucket, a, lines) if isinstance(one, Piece))
    expected = b"".join(body.splitlines(keepends=True)[-lines:]) if lines else b""
    if b"\r" in body or b"\x0b" in body or b"\x0c" in body or b"\x85" in body:
        split = body.split(b"\n")
        kept = [part + b"\n" for part in split[:-1]] + ([split[-1]] if split[-1] else [])
        expected = b"".join(kept[-lines:]) if lines else b""
    assert told == expected


@given(st.binary(max_size=50), st.lists(st.tuples(st.integers(0, 49), st.integers(1, 30)), max_size=8))
def test_any_pieces_of_one_output_give_its_bytes_in_order(body: bytes, cuts: list[tuple[int, int]]) -> None:
    bucket, a, _ = started()
    for begin, length in cuts:
        if begin < len(body):
            put(bucket, a, begin, body[begin : begin + length])
    at = 0
    for one in logs.read_parts(bucket, a):
        assert one.offset == at
        if isinstance(one, Piece):
            assert one.body == body[at : at + len(one.body)]
            at += len(one.body)
        else:
            at += one.size_bytes


# ---- following


def told(came: list[tuple[int, int, logs.Part]]) -> bytes:
    return b"".join(one.body for _, _, one in came if isinstance(one, Piece))


def test_following_gives_each_byte_once_and_ends_with_the_end() -> None:
    bucket, a, _ = started()
    follower = JobFollower(bucket, a.job, [TaskFollower(bucket, a.job, 0)])
    assert told(follower.step()) == b""
    put(bucket, a, 0, b"one\n")
    assert told(follower.step()) == b"one\n"
    put(bucket, a, 4, b"two\n")
    put(bucket, a, 8, b"three\n")
    assert told(follower.step()) == b"two\nthree\n"
    end(bucket, a, log=log_tail(b"one\ntwo\nthree\nfour\n", offset=14))
    assert told(follower.step()) == b"four\n"
    assert follower.done
    assert follower.step() == []


def test_following_sees_a_piece_that_grew_after_it_was_read() -> None:
    bucket, a, clock = started()
    follower = JobFollower(bucket, a.job, [TaskFollower(bucket, a.job, 0)])
    put(bucket, a, 0, b"one\n")
    assert told(follower.step()) == b"one\n"
    put(bucket, a, 0, b"one\ntwo\n")
    put(bucket, a, 8, b"three\n")
    assert told(follower.step()) == b""
    clock.now_s += logs.LIST_EVERY_S
    assert told(follower.step()) == b"two\nthree\n"


def test_following_goes_on_with_the_next_attempt() -> None:
    bucket, a, clock = started()
    follower = JobFollower(bucket, a.job, [TaskFollower(bucket, a.job, 0)])
    end(bucket, a, 1, log=log_tail(b"first\n"))
    assert [(n, one) for _, n, one in follower.step()] == [(1, Piece(0, b"first\n"))]
    assert not follower.done
    clock.now_s += 20
    run(bucket, a.next, 0, log=log_tail(b"second\n"))
    assert [(n, one) for _, n, one in follower.step()] == [(2, Piece(0, b"second\n"))]
    assert follower.done


def rings(bucket: Bucket, a: AttemptId) -> list[float]:
    found = bucket.store.get(keys.DOORBELL)
    assert found is not None
    events = codec.decode(Doorbell, found.body, keys.DOORBELL).events
    return [one.until for one in events if (one.kind, one.what) == ("follow", str(a.job))]


def test_follower_rings_until_something_comes_then_every_half_minute() -> None:
    bucket, a, clock = started()
    follower = JobFollower(bucket, a.job, [TaskFollower(bucket, a.job, 0)])
    follower.step()
    follower.step()
    assert len(rings(bucket, a)) == 1 and rings(bucket, a)[0] > clock.now_s + 30
    clock.now_s += 0.5
    follower.step()
    assert len(rings(bucket, a)) == 2
    put(bucket, a, 0, b"x")
    clock.now_s += 1
    follower.step()
    assert len(rings(bucket, a)) == 3
    clock.now_s += 29
    follower.step()
    before = len(rings(bucket, a))
    clock.now_s += 29
    follower.step()
    assert len(rings(bucket, a)) == before
    clock.now_s += 2
    follower.step()
    assert len(rings(bucket, a)) == before + 1


def test_follower_rings_at_once_for_a_new_attempt() -> None:
    bucket, a, _clock = started()
    follower = JobFollower(bucket, a.job, [TaskFollower(bucket, a.job, 0)])
    follower.step()
    end(bucket, a, 1, log=log_tail(b"x"))
    follower.step()
    before = len(rings(bucket, a))
    follower.step()
    assert len(rings(bucket, a)) == before + 1


@pytest.mark.parametrize("lines", [1, 3])
def test_tail_reads_only_the_pieces_it_needs(lines: int) -> None:
    bucket, a, _ = started()
    for at in range(50):
        put(bucket, a, at * 8, b"line %02d\n" % at)
    seen: list[str] = []
    inner = bucket.store.get
    bucket.store.get = lambda key: (seen.append(key), inner(key))[1]  # type: ignore[method-assign,func-returns-value]
    told_bytes = b"".join(one.body for one in read_tail(bucket, a, lines) if isinstance(one, Piece))
    assert told_bytes == b"".join(b"line %02d\n" % at for at in range(50 - lines, 50))
    assert len([key for key in seen if key.startswith("logs/")]) <= lines + 1


def test_following_many_tasks_asks_only_those_that_began() -> None:
    clock, meter = Clock(), Meter()
    bucket = build.make_bucket(clock, meter)
    j = submit(bucket, array={"size": 40})
    run(bucket, attempt(j, 7), log=log_tail(b"seven\n"))
    reader = Bucket(bucket.store, ambient=clock)
    follower = JobFollower(reader, j, [TaskFollower(reader, j, rank) for rank in range(40)])
    follower.ring()
    before = meter.snapshot()
    assert [(rank, one) for rank, _, one in follower.step()] == [(7, Piece(0, b"seven\n"))]
    assert (meter.snapshot() - before).total <= 4
