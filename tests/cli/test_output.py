"""Times, tables and values: what people read and what programs parse."""

from __future__ import annotations

import json

import pytest

from stado_cli.output import Column, Output, column, open_output, times
from stado_cli.output.human import aligned, lines


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1769860800.25, "2026-01-31T12:00:00.250Z"),
        (1769860800.9996, "2026-01-31T12:00:01.000Z"),
        (None, None),
    ],
)
def test_times_are_iso_utc_with_milliseconds(seconds: float | None, text: str | None) -> None:
    assert times.iso(seconds) == text


def test_times_do_not_depend_on_the_zone_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clock-drift alarms equal to the UTC offset: naive local timestamps never leave this program."""
    import time

    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert times.iso(1769860800) == "2026-01-31T12:00:00.000Z"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.85, "850ms"), (12.34, "12.3s"), (-5, "-5.0s"), (59.97, "1m00s"), (185, "3m05s"), (7620, "2h07m")],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert times.duration(seconds) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (16 * 1024**3, "16.0 GiB"), (None, "-")]
)
def test_sizes_are_powers_of_1024(size_bytes: int | None, text: str) -> None:
    assert times.size(size_bytes) == text


def test_table_in_a_pipe_is_aligned_and_cuts_nothing() -> None:
    columns = [column("NAME", "name"), Column("N", lambda row: row["n"], right=True)]
    rows = [{"name": "a" * 300, "n": 7}, {"name": "b\nc", "n": None}]
    assert aligned(columns, rows) == [
        "NAME" + " " * 298 + "N",
        "a" * 300 + "  7",
        "b c" + " " * 299 + "-",
    ]


def test_value_for_people_is_indented_fields() -> None:
    assert lines({"a": 1, "b": {"c": True, "d": []}, "e": [{"f": 1, "g": 2}, 3]}) == [
        "a: 1",
        "b:",
        "  c: yes",
        "  d: -",
        "e:",
        "  - f: 1",
        "    g: 2",
        "  - 3",
    ]


@pytest.mark.parametrize("as_json", [True, False])
def test_notes_go_to_standard_error_and_answers_to_standard_output(
    as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    output: Output = open_output(json=as_json, no_color=True)
    output.note("beside")
    output.table([column("A", "a")], [{"a": 1}])
    said = capsys.readouterr()
    assert said.err == "beside\n"
    assert said.out == ('[{"a": 1}]\n' if as_json else "A\n1\n")


def test_empty_table_is_an_empty_list_for_programs_and_a_note_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    open_output(json=True, no_color=True).table([column("A", "a")], [], empty="nothing there")
    assert capsys.readouterr().out == "[]\n"
    open_output(json=False, no_color=True).table([column("A", "a")], [], empty="nothing there")
    assert capsys.readouterr() == ("", "nothing there\n")


def test_text_that_is_not_unicode_is_still_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    open_output(json=True, no_color=True).stream({"name": "a\udcff", "other": "ż"})
    assert json.loads(capsys.readouterr().out) == {"name": "a\udcff", "other": "ż"}


def test_long_list_is_written_as_it_comes_and_is_one_json_value(capsys: pytest.CaptureFixture[str]) -> None:
    from stado_cli.output.as_json import AT_ONCE, JsonOutput

    rows = [{"name": f"job-{number}"} for number in range(2 * AT_ONCE + 3)]
    JsonOutput().table([], iter(rows))
    told = capsys.readouterr().out
    assert json.loads(told) == rows
    assert told == json.dumps(rows) + "\n"


def test_long_table_has_one_title(capsys: pytest.CaptureFixture[str]) -> None:
    from stado_cli.output.human import AT_ONCE, HumanOutput

    rows = [{"name": f"job-{number}"} for number in range(AT_ONCE + 3)]
    HumanOutput(no_color=True).table([column("JOB", "name")], iter(rows))
    assert capsys.readouterr().out.split() == ["JOB", *(row["name"] for row in rows)]
