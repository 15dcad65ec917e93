"""Values of credentials never leave the machine, however output is written, cut, sent again and carried on."""

from __future__ import annotations

import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stado_like.bucket.bucket import Bucket
from stado_like.job import keys
from stado_like.job.keys import AttemptId
from stado_like.job.records import LOG_IN_END_BYTES
from stado_like.reading.logs import tail_bytes
from stado_like.store.protocol import list_all
from stado_worker.secrets import private
from stado_worker.secrets.masking import LEAST_VALUE_BYTES, NO_MASKS, Masks, needles
from stado_worker.shim import log_shipping
from stado_worker.shim.log_shipping import WITHHELD, LogShipping
from tests import builders_jobs as build
from tests.builders_jobs import Clock, attempt, submit

TOKEN = b"hf_s3cr3tT0ken"

VALUES = st.lists(st.text("abc\n", min_size=4, max_size=12).map(str.encode), min_size=1, max_size=3)


def a_log(folder: Path, masks: Masks | None = NO_MASKS) -> tuple[Bucket, AttemptId, LogShipping, Path]:
    bucket = build.make_bucket(Clock())
    a = attempt(submit(bucket))
    file = folder / "log"
    file.write_bytes(b"")
    return bucket, a, LogShipping(bucket, a, file, masks=masks), file


def write(file: Path, more: bytes) -> None:
    with file.open("ab") as opened:
        opened.write(more)


def pieces(bucket: Bucket, a: AttemptId) -> dict[int, bytes]:
    found = {}
    for row in list_all(bucket.store, keys.logs_of(a)):
        got = bucket.store.get(row.key)
        assert got is not None
        found[keys.parse_log_chunk(row.key)] = got.body
    return found


def sent(bucket: Bucket, a: AttemptId, rest: bytes = b"") -> bytes:
    """All that left the machine, in order. Pieces may overlap, and must say the same where they do."""
    whole = b""
    for offset, body in sorted(pieces(bucket, a).items()):
        assert offset <= len(whole), "nothing is left out"
        common = whole[offset : offset + len(body)]
        assert body[: len(common)] == common, "what was sent was changed"
        whole = whole[:offset] + max(body, common, key=len)
    return whole + rest


def naive(output: bytes, masks: Masks) -> bytes:
    """By the definition, place by place."""
    made = bytearray(output)
    for value in masks.values:
        for at in range(len(output)):
            if output.startswith(value, at):
                made[at : at + len(value)] = b"*" * len(value)
    for length in range(len(output), LEAST_VALUE_BYTES - 1, -1):
        end = output[len(output) - length :]
        if any(len(value) > length and value.startswith(end) for value in masks.values):
            made[len(output) - length :] = b"*" * length
            break
    return bytes(made)


@settings(max_examples=300)
@given(data=st.data(), values=VALUES)
def test_no_value_is_sent_however_output_is_cut_and_all_else_is_exact(data: st.DataObject, values: list[bytes]) -> None:
    masks = Masks.of(values)
    parts = st.one_of(st.sampled_from(values), st.text("abc\n ", max_size=9).map(str.encode))
    output = b"".join(data.draw(st.lists(parts, max_size=12)))
    with TemporaryDirectory() as folder:
        bucket, a, shipping, file = a_log(Path(folder), masks)
        at = 0
        while at < len(output):
            step = data.draw(st.integers(1, 7))
            write(file, output[at : at + step])
            at += step
            match data.draw(st.sampled_from(("write on", "send", "send a part", "send again", "carry on"))):
                case "send":
                    shipping.ship()
                case "send a part":
                    shipping.ship(data.draw(st.integers(0, at)))
                case "send again":  # its answer was lost
                    before = shipping.shipped
                    shipping.ship()
                    shipping.shipped = before
                case "carry on":
                    shipping = LogShipping.carry_on(bucket, a, file, masks=masks)
        before_end = sent(bucket, a)
        tail = shipping.tail()
        whole = before_end[: shipping.shipped] + tail_bytes(tail)
        assert sent(bucket, a)[: len(whole)] == whole[: len(sent(bucket, a))]
    assert (len(whole), tail.size) == (len(output), len(output))
    assert not any(value in whole for value in masks.values)
    assert whole == naive(output, masks)
    assert before_end == whole[: len(before_end)]


@given(
    output=st.text("ab", max_size=60).map(str.encode),
    values=st.lists(st.text("ab", min_size=4, max_size=9).map(str.encode), min_size=1, max_size=4),
    cut=st.integers(0, 60),
)
@example(output=b"aaaaaaaaab", values=[b"aaaa"], cut=5)
@example(output=b"abaabaaba", values=[b"abaaba"], cut=3)
@example(output=b"abaababaaba", values=[b"abaaba"], cut=3)
def test_overlapping_values_are_masked_by_the_definition(output: bytes, values: list[bytes], cut: int) -> None:
    masks = Masks.of(values)
    assert masks.masked(output, complete=True) == naive(output, masks)
    assert masks.masked(output, 0, cut, complete=True) == naive(output, masks)[:cut]
    held = masks.held_from(output)
    ends = [
        at for at in range(len(output)) if any(v != output[at:] and v.startswith(output[at:]) for v in masks.values)
    ]
    assert held == (ends[0] if ends else len(output))


def test_what_is_looked_for_in_the_output() -> None:
    assert needles(b"abc") == set(), "too short: half of any output would be blanked out"
    assert needles(b"token\n") == {b"token"}, "a shell's $(…) prints it without its newline"
    assert needles(b"-----BEGIN\nMIIEvQ\nshort\n") == {b"-----BEGIN\nMIIEvQ\nshort", b"-----BEGIN", b"MIIEvQ"}
    assert repr(Masks.of([TOKEN])) == "Masks(1 values)"


def test_token_broken_off_at_the_end_is_held_back_then_masked_as_far_as_it_goes(tmp_path: Path) -> None:
    bucket, a, shipping, file = a_log(tmp_path, Masks.of([TOKEN]))
    write(file, b"the token is " + TOKEN[:6])
    assert shipping.ship() == len(b"the token is ")
    assert not shipping.grown()
    assert shipping.ship() == 0
    assert shipping.last_lines() == "the token is ******"
    assert tail_bytes(shipping.tail()) == b"******"
    assert shipping.last_lines() == "the token is ******"
    assert sent(bucket, a) == b"the token is "


def test_a_long_end_that_is_held_back_does_not_keep_an_ended_attempt_waiting(tmp_path: Path) -> None:
    """Held back beyond what an end record takes along: it is no backlog, and goes when the process has ended."""
    value = os.urandom(60_000).replace(b"\n", b"n").replace(b"\r", b"r").strip()
    bucket, a, shipping, file = a_log(tmp_path, Masks.of([value]))
    write(file, b"x" * 10 + value[:40_000])
    while shipping.ship():
        pass
    assert (shipping.shipped, shipping.has_backlog()) == (10, False)
    tail = shipping.tail()
    assert tail.size - tail.offset <= LOG_IN_END_BYTES
    assert set(sent(bucket, a)[10:] + tail_bytes(tail)) == {ord("*")}


def test_unknown_masks_send_nothing_and_say_so(tmp_path: Path) -> None:
    bucket, a, shipping, file = a_log(tmp_path, None)
    assert shipping.last_lines() == ""
    write(file, TOKEN + b"\n")
    assert not shipping.has_backlog()
    assert shipping.ship() == 0
    tail = shipping.tail()
    assert (tail.offset, tail.size, tail_bytes(tail)) == (0, len(TOKEN) + 1, b"")
    assert shipping.last_lines() == WITHHELD
    assert pieces(bucket, a) == {}
    shipping.masks = Masks.of([TOKEN])
    assert tail_bytes(shipping.tail()) == b"*" * len(TOKEN) + b"\n"


@pytest.mark.parametrize("in_memory", [True, False])
def test_masks_are_kept_for_whoever_carries_on_and_lost_ones_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    (tmp_path / "shm").mkdir()
    monkeypatch.setattr(private, "MEMORY", tmp_path / "shm")
    monkeypatch.setattr(private, "LAST_SERVICE_UID", os.geteuid() if in_memory else -1)
    assert private.masks_of(tmp_path, []) is NO_MASKS
    assert private.masks_of(tmp_path, [{}]) is None
    private.keep_masks(tmp_path, Masks.of([b"hf_the_value", b"\xff\0raw"]))
    found = private.masks_of(tmp_path, [{}])
    assert found is not None
    assert found.values == (b"hf_the_value", b"\xff\0raw")
    (kept,) = tmp_path.rglob(private.MASKS)
    assert kept.is_relative_to(tmp_path / "shm") == in_memory
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    kept.write_bytes(b"[")
    assert private.masks_of(tmp_path, [{}]) is None


def test_without_masks_the_bytes_go_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_shipping, "PIECE_BYTES", 1000)
    bucket, a, shipping, file = a_log(tmp_path)
    output = os.urandom(30_000)
    write(file, output)
    assert sent(bucket, a, tail_bytes(shipping.tail())) == output


@pytest.mark.parametrize("value", [b"a" * 40, TOKEN, b"ab" * 30], ids=["run", "token", "period"])
def test_masking_a_mebibyte_takes_a_moment(value: bytes) -> None:
    """Also of a value that overlaps itself everywhere, and with the many lines of a key file."""
    masks = Masks.of([value, b"\n".join(os.urandom(32).hex().encode() for _ in range(50))])
    began_s = time.process_time()
    assert masks.masked(b"ab" * (1 << 18) + b"a" * (1 << 19)).count(b"*") >= (0 if value == TOKEN else 1 << 18)
    assert time.process_time() - began_s < 2.0
