"""What a task writes of itself: pairs, numbers, and a bound on all of it."""

from __future__ import annotations

import pytest

from stado_like.job.pairs import MOST_BYTES, MOST_KEYS, Pairs, number, readable, step_of


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (["step=120 total=1000 loss=0.31"], {"step": 120, "total": 1000, "loss": 0.31}),
        (["step=1", "step=2", "loss=3e-4"], {"step": 2, "loss": 0.0003}),
        (["step=5, loss=0.5; lr=.1"], {"step": 5, "loss": 0.5, "lr": 0.1}),
        (["train/loss=1.5 eval.acc=+2 phase=warm-up"], {"train/loss": 1.5, "eval.acc": 2, "phase": "warm-up"}),
        (["loss=nan gap=inf big=12345678901234567890"], {"loss": "nan", "gap": "inf", "big": "12345678901234567890"}),
        (["eta=1h30m url=http://x/?a=b"], {"eta": "1h30m", "url": "http://x/?a=b"}),
    ],
)
def test_progress_takes_the_last_value_of_each_key(lines: list[str], kept: dict[str, object]) -> None:
    pairs = Pairs()
    for line in lines:
        pairs.words(line)
    assert (pairs.typed(), pairs.ignored) == (kept, 0)


@pytest.mark.parametrize("garbage", ["epoch", "=5", "1step=5", "loss=", "a b", "ключ=1", "x" * 65 + "=1", "\x00=\x01"])
def test_garbage_is_counted_and_left_out(garbage: str) -> None:
    pairs = Pairs()
    pairs.words(f"{garbage} step=1")
    assert pairs.typed() == {"step": 1}
    assert pairs.ignored == len(garbage.split())


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("answer=forty two", {"answer": "forty two"}),
        ("  name = a=b = c ", {"name": "a=b = c"}),
        ("empty=", {"empty": ""}),
        ("accuracy=0.930", {"accuracy": "0.930"}),
    ],
)
def test_an_output_is_the_rest_of_its_line(line: str, kept: dict[str, str]) -> None:
    pairs = Pairs()
    pairs.line(line)
    pairs.line("")
    assert (pairs.values, pairs.ignored) == (kept, 0)


def test_no_more_than_64_keys_and_later_values_of_those_still_count() -> None:
    pairs = Pairs()
    for at in range(100):
        pairs.line(f"k{at}=0")
    pairs.line("k0=last")
    assert (len(pairs.values), pairs.values["k0"], len(pairs.left_out)) == (MOST_KEYS, "last", 100 - MOST_KEYS)


def test_no_more_than_4_kib_and_what_has_no_room_keeps_its_old_value() -> None:
    pairs = Pairs()
    pairs.line("a=" + "x" * 3000)
    pairs.line("b=" + "y" * 2000)
    pairs.line("a=" + "é" * 3000)
    pairs.line("c=1")
    assert {key: len(value) for key, value in pairs.values.items()} == {"a": 3000, "c": 1}
    assert pairs.left_out == {"a", "b"}
    assert pairs.size_bytes <= MOST_BYTES


def test_a_key_per_step_does_not_grow_what_is_remembered() -> None:
    pairs = Pairs()
    for at in range(10_000):
        pairs.words(f"step{at}=1")
    assert len(pairs.left_out) <= MOST_KEYS


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-07", -7), ("1.", 1.0), ("1e3", 1000.0), ("1e999", "1e999"), ("1_000", "1_000"), ("٣", "٣")],
)
def test_numbers(text: str, value: object) -> None:
    found = number(text)
    assert (found, type(found)) == (value, type(value))


def test_step_is_a_number_or_nothing() -> None:
    assert step_of({"step": 3}) == 3.0
    assert step_of({"step": "3/10"}) is None
    assert step_of({}) is None


def test_bytes_become_text_that_json_can_hold() -> None:
    assert readable(b"a\xff\x1b\tb\n") == "a\ufffd\ufffd\tb\n"
