"""Durations, sizes and array shapes: every accepted form gives its number, everything else is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.errors import Exit, Refused
from stado_like.job.spec import limits, units

DURATIONS = [
    ("90s", 90),
    ("2m", 120),
    ("1h30m", 5_400),
    ("1h", 3_600),
    ("2d", 172_800),
    ("1d12h", 129_600),
    ("1h30m15s", 5_415),
    ("1.5h", 5_400),
    ("0.5s", 0.5),
    ("90m", 5_400),
    ("90", 90),
    ("1.5", 1.5),
    ("0", 0),
    (" 2m ", 120),
    (90, 90),
    (0.25, 0.25),
    (3.0, 3),
    # Slurm's colon forms
    ("4:00", 240),
    ("4:30", 270),
    ("1:00:00", 3_600),
    ("0:240:0", 14_400),
    ("90:00", 5_400),
    ("2-12", 216_000),
    ("2-12:30", 217_800),
    ("2-12:30:15", 217_815),
    ("0-0:1", 60),
]
NOT_DURATIONS = [
    "", " ", "junk", "-1", "-1h", "+5", "1x", "h", "5 m", "1h 30m", "30m1h", "1h1h", "4:", ":30", "1:2:3:4", "2-", "-2",
    "2-12:30:15:1", "1e3", "nan", "inf", "infinity", "unlimited", "UNLIMITED", "1H", "٣", "1,5h", "9" * 400, "101" * 5,
    "200000d", float("nan"), float("inf"), -1, -0.5, True, None, [], "1h\0", "1h\n2m", "1w",
]  # fmt: skip
SIZES = [
    ("512MiB", 512 << 20),
    ("16GiB", 16 << 30),
    ("16G", 16 << 30),
    ("1G", 1 << 30),
    ("1GB", 10**9),
    ("1GiB", 1 << 30),
    ("1g", 1 << 30),
    ("1gb", 10**9),
    ("1024M", 1 << 30),
    ("1e9", 10**9),
    ("1E+9", 10**9),
    ("1073741824", 1 << 30),
    ("24GB", 24 * 10**9),
    ("1.5TB", 1_500_000_000_000),
    ("1.5GiB", 3 << 29),
    ("4K", 4096),
    ("4kB", 4000),
    ("1T", 1 << 40),
    ("1PB", 10**15),
    ("512B", 512),
    ("0", 0),
    ("0.3KiB", 308),
    (4096, 4096),
    (1e9, 10**9),
]
NOT_SIZES = [
    "", "junk", "-1", "1.5", "G", "1 G B", "1Q", "16Gi", "16GBs", "0x10", "nan", "inf", "1e99", "9" * 31, "9" * 5000,
    "2E", "1.5e-3", float("nan"), float("inf"), 0.5, -1, True, None, {}, "1G\0", "２G",
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_duration_accepted_form_gives_seconds(text: str | float, seconds: float) -> None:
    """`4:00` became 4 h and `2-12` became "no limit" elsewhere; and minutes above 59 are Slurm's right."""
    got = units.duration_s(text)
    assert got == seconds
    assert type(got) is type(seconds)


@pytest.mark.parametrize("junk", NOT_DURATIONS, ids=repr)
def test_duration_junk_is_refused_and_never_unlimited(junk: object) -> None:
    """Junk is an error that names the accepted forms, never "no limit"."""
    with pytest.raises(Refused) as refused:
        units.duration_s(junk)  # type: ignore[arg-type]
    assert refused.value.exit_code is Exit.REFUSED
    assert units.DURATION_FORMS in refused.value.next_step
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(("text", "count"), SIZES)
def test_size_accepted_form_gives_bytes(text: str | float, count: int) -> None:
    """24GB asked, 22,888 MiB given: SI and binary are told apart by one table."""
    got = units.size_bytes(text)
    assert got == count
    assert type(got) is int


@pytest.mark.parametrize("junk", NOT_SIZES, ids=lambda junk: repr(junk)[:20])
def test_size_junk_is_refused_with_the_forms(junk: object) -> None:
    with pytest.raises(Refused) as refused:
        units.size_bytes(junk)  # type: ignore[arg-type]
    assert units.SIZE_FORMS in refused.value.next_step
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("forms", "read"),
    [
        (units.DURATION_FORMS, units.duration_s),
        (units.SIZE_FORMS, units.size_bytes),
        (units.ARRAY_FORMS, units.array_shape),
    ],
)
def test_every_form_that_help_names_is_accepted(forms: str, read: Callable[[str], object]) -> None:
    """The format accepted differs from the help text elsewhere: here the list itself is read back."""
    for form in forms.replace("each with ", "1-9").split(", "):
        read(form.split(" (")[0])


def test_bare_size_below_a_mebibyte_has_a_hint() -> None:
    """The same `--mem 4096` means bytes, MiB or KiB elsewhere: here bytes, and the person is told."""
    assert units.bare_size_hint("4096") == "4096 without a unit is 4096 bytes; write 4096MiB for 4 GiB"
    assert units.bare_size_hint(4096) == units.bare_size_hint("4096")
    for fine in ("1048576", "1073741824", "4096M", "0", "", "1e9", "9" * 5000):
        assert units.bare_size_hint(fine) == ""


@pytest.mark.parametrize(
    ("seconds", "words", "short"),
    [
        (0, "0 seconds", "0s"),
        (1, "1 second", "1s"),
        (0.5, "0.5 seconds", "0.5s"),
        (59.9999, "1 minute", "1m"),
        (240, "4 minutes", "4m"),
        (5_400, "1 hour 30 minutes", "1h30m"),
        (217_815, "2 days 12 hours 30 minutes 15 seconds", "2d12h30m15s"),
        (7_200, "2 hours", "2h"),
    ],
)
def test_duration_is_said_back_in_words(seconds: float, words: str, short: str) -> None:
    assert units.duration_words(seconds) == words
    assert units.duration_text(seconds) == short


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (4096, "4 KiB"),
        (16 << 30, "16 GiB"),
        (3 << 29, "1.5 GiB"),
        (24 * 10**9, "24 GB (22.35 GiB)"),
        (1_500_000_000_000, "1.5 TB (1.36 TiB)"),
        (1_000_003, "1000003 bytes (976.57 KiB)"),
    ],
)
def test_size_is_said_back_in_words(count: int, words: str) -> None:
    """What was understood is echoed, in the unit that machines report as well."""
    assert units.size_words(count) == words


@given(st.integers(0, units.DURATION_MAX_S * 1000))
def test_duration_short_form_reads_back(millis: int) -> None:
    seconds = millis / 1000
    assert units.duration_s(units.duration_text(seconds)) == pytest.approx(seconds, abs=1e-9)


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_a_refusal(text: str) -> None:
    for read in (units.duration_s, units.size_bytes, units.array_shape):
        try:
            read(text)
        except Refused as refused:
            assert refused.next_step.startswith("Accepted forms: ")


ARRAYS: list[tuple[str | int, int, int, list[int] | None]] = [
    ("10", 10, 0, None),
    ("10%3", 10, 3, None),
    (5, 5, 0, None),
    ("1", 1, 0, None),
    ("0-9", 10, 0, None),
    ("0-9%4", 10, 4, None),
    ("0-9:1", 10, 0, None),
    ("0-0", 1, 0, None),
    ("0-3,4-9", 10, 0, None),
    ("1-10:2", 5, 0, [1, 3, 5, 7, 9]),
    ("1,3,7", 3, 0, [1, 3, 7]),
    ("7,1,3%2", 3, 2, [1, 3, 7]),
    ("1-3,2,9", 4, 0, [1, 2, 3, 9]),
    ("1-3, 9", 4, 0, [1, 2, 3, 9]),
    ("4-4", 1, 0, [4]),
    ("07-09", 3, 0, [7, 8, 9]),
    ("2147483647-2147483647", 1, 0, [2147483647]),
    ("0-20000:4", 5001, 0, list(range(0, 20001, 4))),
]


@pytest.mark.parametrize(("text", "size", "cap", "indices"), ARRAYS)
def test_array_is_a_number_of_tasks_or_indices(text: str | int, size: int, cap: int, indices: list[int] | None) -> None:
    shape = units.array_shape(text)
    assert (shape.size, shape.max_parallel) == (size, cap)
    assert (list(shape.indices) if shape.indices is not None else None) == indices


@pytest.mark.parametrize(
    "text",
    ["-5", "%3", "5%0", "5%", "", "x", "1.5", "0", "1-", "5-3", "1-10:0", "1,,3", "1-2-3", "0:9", ":2", "1-10:2:3",
     "2147483648-2147483648", "10001", "0-10000", "1-2147483647", "0-9999,20000", "9" * 5000, "٣", True, None, 1.5],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_array_of_another_kind_is_refused(text: object) -> None:
    with pytest.raises(Refused) as refused:
        units.array_shape(text)  # type: ignore[arg-type]
    assert units.ARRAY_FORMS in refused.value.next_step
    assert len(refused.value.message) < 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("10", "10 tasks, indices 0 to 9"),
        ("1%1", "1 task, index 0, at most 1 at once"),
        ("7-7", "1 task, index 7"),
        ("1-10:2%2", "5 tasks, indices 1, 3, 5, 7, 9, at most 2 at once"),
        ("1-7", "7 tasks, indices 1, 2, 3, 4, 5, 6, 7"),
        ("1-99", "99 tasks, indices 1, 2, 3, …, 99"),
        ("5,1,5", "2 tasks, indices 1, 5 (1 named twice: one task each)"),
    ],
)
def test_array_is_said_back_in_words(text: str, words: str) -> None:
    assert units.array_shape(text).words == words


@given(st.sets(st.integers(0, limits.ARRAY_INDEX[1]), min_size=2, max_size=50))
def test_any_list_of_indices_is_kept_ascending(indices: set[int]) -> None:
    shape = units.array_shape(",".join(map(str, indices)))
    assert shape.indices == tuple(sorted(indices)) or list(range(shape.size)) == sorted(indices)
