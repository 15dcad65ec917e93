"""Day files as bytes and as keys: what is written is read again, within bounds, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stado_like.errors import BadRecord
from stado_like.job import day_keys, day_rows, keys
from stado_like.job.day_rows import DayRow
from stado_like.job.ids import JobId

NAMES = st.text("abcXYZ019-_", min_size=1, max_size=40)
SAID = st.tuples(st.sampled_from(["Completed", "Failed"]), st.text(max_size=60), st.integers(-1000, 1000))
ROWS = st.builds(
    DayRow,
    st.builds(JobId, st.just("lab"), NAMES, st.integers(1, 2**40)),
    st.text(max_size=40),
    st.floats(0, 4e9),
    SAID,
)


def key_of(file: day_rows.DayFile) -> str:
    return day_keys.day_part("lab", "2026-01-31", file.digest)


@given(st.lists(ROWS, max_size=30))
def test_rows_are_read_as_they_were_written_newest_first(rows: list[DayRow]) -> None:
    found = [
        day_rows.read("lab", line) for file in day_rows.files(rows) for line in day_rows.lines(file.body, key_of(file))
    ]
    assert [row.at for row in found] == sorted((row.at for row in found), reverse=True)
    assert {(row.j, row.etag, row.at) for row in found} == {(row.j, row.etag, row.at) for row in rows}
    assert all(row in rows for row in found)


@given(st.lists(ROWS, min_size=1, max_size=10))
def test_line_is_found_by_its_jobs_name(rows: list[DayRow]) -> None:
    for row in rows:
        assert day_rows.name_in(row.line()).decode() == f"{row.j.name}.{row.j.k}"
        assert keys.job(row.j) == f"jobs/lab/{day_rows.name_in(row.line()).decode()}.json"
        assert day_rows.read_said(row.line(), row.etag) == list(row.said)
        assert day_rows.read_said(row.line(), f"{row.etag}x") is None


def test_same_rows_make_the_same_file_in_any_order_and_number() -> None:
    rows = [DayRow(JobId("lab", f"job-{n}", 1), f"e{n}", 1.0 * n, ("Completed",)) for n in range(9)]
    (one,), (other,) = day_rows.files(rows), day_rows.files([*reversed(rows), *rows])
    assert one == other and one.rows == 9


@pytest.mark.parametrize(("rows", "reason", "files"), [(25_000, "done", 3), (3_000, "x" * 4_096, 3)])
def test_files_stay_within_bounds(rows: int, reason: str, files: int) -> None:
    """By number, and by size where what is said is long."""
    made = list(
        day_rows.files(DayRow(JobId("lab", f"job-{n}", 1), "e", 1.0, ("Completed", reason)) for n in range(rows))
    )
    assert len(made) == files and sum(file.rows for file in made) == rows
    assert all(file.rows <= day_rows.MOST_ROWS for file in made)
    assert sum(len(day_rows.lines(file.body, key_of(file))) for file in made) == rows


def test_bytes_of_another_name_are_refused() -> None:
    one, other = (next(day_rows.files([DayRow(JobId("lab", name, 1), "e", 1.0, ())])) for name in ("a", "b"))
    with pytest.raises(BadRecord, match="not those that its name says"):
        day_rows.lines(one.body, key_of(other))
    with pytest.raises(BadRecord, match="cannot be unpacked"):
        day_rows.lines(b"no file", key_of(one))


@pytest.mark.parametrize(
    "key",
    [
        "days/lab/2026-01-31.1.0123.gz",
        "days/lab/2026-01-31.01.0123456789abcdef0123456789abcdef.gz",
        "days/lab/2026-1-31.1.0123456789abcdef0123456789abcdef.gz",
        "days/LAB/2026-01-31.1.0123456789abcdef0123456789abcdef.gz",
        "days/2026-01-31.1.0123456789abcdef0123456789abcdef.gz",
        "jobs/lab/2026-01-31.1.0123456789abcdef0123456789abcdef.gz",
        "days/lab/2026-01-31.1.0123456789abcdef0123456789abcdef.gz/x",
    ],
)
def test_key_of_another_shape_is_no_day_file(key: str) -> None:
    with pytest.raises(BadRecord):
        day_keys.parse_day_part(key)


def test_days_are_those_of_utc() -> None:
    assert day_keys.day_of(0.0) == "1970-01-01"
    assert (day_keys.day_of(1_769_903_999.999), day_keys.day_of(1_769_904_000.0)) == ("2026-01-31", "2026-02-01")


@given(st.text("jobs/labdefault-_.0123456789nX", max_size=40).map(lambda text: f"jobs/{text}"))
def test_what_looks_like_a_jobs_key_is_one(key: str) -> None:
    """The quick look says what the careful one says."""
    try:
        keys.parse_job(key)
    except BadRecord:
        assert not keys.is_job(key)
    else:
        assert keys.is_job(key)


def test_quick_look_at_every_edge_of_a_jobs_key() -> None:
    good = "jobs/lab/train.1.json"
    assert keys.is_job(good)
    bad = ["jobs/lab/train.0.json", "jobs/lab/train.01.json", "jobs/lab/train.json", "jobs/lab/a.b.1.json", f"{good}\n"]
    bad += [
        "jobs/a.b/1.json",
        "jobs/lab/x/train.1.json",
        "jobs//train.1.json",
        "job/lab/train.1.json",
        "jobs/lab/t.٣.json",
    ]
    assert [key for key in bad if keys.is_job(key)] == []
