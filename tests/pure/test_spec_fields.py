"""Every field of the specification against one table: accepts, default, bounds, wrong types, a misspelt neighbour.

A field of the models without a row fails; so does a row without a field.
"""

from __future__ import annotations

import copy
import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from stado_like.errors import InvalidSpecification
from stado_like.job.spec import limits
from stado_like.job.spec.complaints import parts, path_of
from stado_like.job.spec.validate import json_schema, validate

ABSENT = object()
REQUIRED = object()
BOTH = {"cpu_cores": 1, "memory_bytes": 1 << 30}
RESOURCES = "spec.task_template.requested_resources"
RESILIENCE = "spec.task_template.resilience"
NOT_INTEGERS: tuple[Any, ...] = ("5", True, 5.0, None, [], {}, math.nan, math.inf, 10**40, -(10**5000))
NOT_TEXTS: tuple[Any, ...] = (5, 1.5, True, None, [], {}, "\0", "a\0b", "\ud800")
NOT_FLAGS: tuple[Any, ...] = ("true", "yes", 1, 0, None, [])


@dataclass(frozen=True)
class Row:
    path: str
    default: Any
    accepts: tuple[Any, ...]
    refuses: tuple[Any, ...]
    beside: dict[str, Any] = field(default_factory=dict)  # what must stand with it, by path
    stored_as: str = ""


def whole(path: str, default: Any, low: int, high: int, **more: Any) -> Row:
    wrong = tuple(each for each in NOT_INTEGERS if not (each is None and default is ABSENT))
    return Row(path, default, (low, low + 1, high - 1, high), (low - 1, high + 1, *wrong), **more)


def flag(path: str) -> Row:
    return Row(path, False, (True, False), NOT_FLAGS)


def text(path: str, default: Any, accepts: tuple[Any, ...], refuses: tuple[Any, ...] = ("",)) -> Row:
    wrong = tuple(each for each in NOT_TEXTS if not (each is None and default is ABSENT))
    return Row(path, default, accepts, (*refuses, *wrong))


def part(path: str, default: Any, example: Any) -> Row:
    wrong: tuple[Any, ...] = ("x", 5, True, []) if default is ABSENT else ("x", 5, True, [], None)
    return Row(path, default, (example,), wrong)


NAMES_REFUSED = ("", "a.b", "-a", "a-", "a b", "a/b", "é", "a\n", "a\tb", "\x1b[31m", "..", "a" * 58, "a" * 10_000)
STORED_RESOURCES = {**BOTH, "gpu_requests": {"count": 0}}
STORED_RESILIENCE = {
    "stop_signal": "SIGTERM", "max_restarts": 10, "max_machine_restarts": 20, "backoff_seconds": 10,
    "max_backoff_seconds": 300, "max_retries_preemption": 100,
}  # fmt: skip

ROWS = [
    part("metadata", REQUIRED, {"name": "n", "labels": {}, "workspace": "w"}),
    text("metadata.name", REQUIRED, ("train", "a", "A_9", "_", "_a-b_", "a" * 57), NAMES_REFUSED),
    text("metadata.workspace", "default", ("default", "team-7", "a" * 57), (*NAMES_REFUSED, "Team", "a_b")),
    Row(
        "metadata.labels",
        {},
        ({}, {"team": "v"}, {"team.io/k_1": ""}, {"k": "é " * 10}, {f"k{n}": "" for n in range(64)}),
        (
            {"astraeus.io/x": "1"},
            {"job.astraeus.io/name": "1"},
            {"stado.io/a": "1"},
            {"": "x"},
            {"a=b": "x"},
            {"k": 1},
            {"k": None},
            {"k": "\n"},
            {"k": "\0"},
            {"k" * 254: ""},
            {"k": "v" * 1025},
            {1: "x"},
            {f"k{n}": "" for n in range(65)},
            [],
            "x",
            None,
            [["a", "b"]],
        ),
    ),
    part("spec", REQUIRED, ABSENT),
    whole("spec.priority", 0, -1000, 1000),
    part("spec.array", ABSENT, {"size": 1, "max_parallel": 0}),
    whole("spec.array.size", REQUIRED, 1, 10_000),
    whole("spec.array.max_parallel", 0, 0, 10_000, beside={"spec.array.size": 10_000}),
    Row("spec.start", "Independent", ("Independent",), ("Gang", "MinAvailable", "independent", "", "x", None, 1)),
    Row("spec.on_failure", "RestartTask", ("RestartTask",), ("RestartJob", "Fail", "", None, 1, [])),
    whole("spec.max_task_failures", 0, 0, 10_000),
    text("spec.cwd", ABSENT, ("/", "/home/a b/ü", "/" + "a" * 4094), ("", "relative", "./x", "/" + "a" * 4095)),
    text("spec.workdir", ABSENT, ("/data", "sub/dir", ".", "a..b"), ("", "..", "a/../b", "a" * 4096)),
    flag("spec.exclusive"),
    text(
        "spec.pinned_host", ABSENT, ("gpu-1", "host.example.org", "a" * 255), ("", "a b", "a/b", ".", "-a", "a" * 256)
    ),
    flag("spec.resident"),
    flag("spec.terminates_agent"),
    part("spec.task_template", REQUIRED, ABSENT),
    text("spec.task_template.command", REQUIRED, ("python", "./a b", "é", "/bin/sh"), ("", " ", "\n")),
    Row(
        "spec.task_template.args",
        [],
        ([], [""], ["a", "\n\t", "é"], ["x" * limits.ONE_STRING_MAX_BYTES], ["a"] * 65_536),
        ("x", {}, 5, None, [1], [None], [True], ["a\0"], ["\ud800"], [["a"]], ("a",), ["x" * 122_881], ["a"] * 65_537),
    ),
    Row(
        "spec.task_template.env",
        {},
        ({}, {"A": ""}, {"_a1": "x\ny"}, {"RANK": "0"}, {"A": "x" * (limits.ONE_STRING_MAX_BYTES - 2)}),
        (
            {"": "x"},
            {"1A": "x"},
            {"A-B": "x"},
            {"A=B": "x"},
            {"A\n": "x"},
            {"É": "x"},
            {"STADO_X": "x"},
            {"ASTRAEUS_X": "x"},
            {"A": 1},
            {"A": None},
            {"A": "x\0"},
            {1: "x"},
            [],
            "A=1",
            None,
            {"A": "x" * (limits.ONE_STRING_MAX_BYTES - 1)},
            {f"A{n}": "" for n in range(10_001)},
        ),
    ),
    Row("spec.task_template.restart_policy", "OnFailure", ("OnFailure", "Always", "Never"), ("always", "", None, 1)),
    whole("spec.task_template.time_limit_seconds", ABSENT, 60, 31_622_400),
    whole("spec.task_template.stop_grace_seconds", ABSENT, 1, 3_600),
    whole("spec.task_template.heartbeat_ttl_seconds", 60, 10, 86_400),
    part(RESOURCES, STORED_RESOURCES, STORED_RESOURCES),
    Row(
        f"{RESOURCES}.cpu_cores",
        1,
        (0.001, 0.5, 1, 2.125, 65_536),
        (0, 0.0, -1, 0.0001, 1.0005, 65_537, "1", True, None, [], math.nan, math.inf, -math.inf, 10**400),
        {f"{RESOURCES}.memory_bytes": 1},
    ),
    Row(
        f"{RESOURCES}.memory_bytes",
        1 << 30,
        (1, 1 << 30, 1 << 60),
        (0, -1, (1 << 60) + 1, "16GiB", *NOT_INTEGERS),
        {f"{RESOURCES}.cpu_cores": 1},
    ),
    part(f"{RESOURCES}.gpu_requests", {"count": 0}, {"count": 1}),
    whole(f"{RESOURCES}.gpu_requests.count", 0, 0, 65_536),
    part(RESILIENCE, STORED_RESILIENCE, STORED_RESILIENCE),
    Row(f"{RESILIENCE}.stop_signal", "SIGTERM", limits.STOP_SIGNALS, ("SIGKILL", "TERM", "sigterm", "", 15, None)),
    whole(f"{RESILIENCE}.max_restarts", 10, 0, 1_000),
    whole(f"{RESILIENCE}.max_machine_restarts", 20, 0, 1_000),
    whole(f"{RESILIENCE}.max_preemptions", ABSENT, 0, 1_000),
    whole(f"{RESILIENCE}.preemptible_after_seconds", ABSENT, 0, 604_800),
    whole(f"{RESILIENCE}.backoff_seconds", 10, 1, 86_400),
    whole(f"{RESILIENCE}.max_backoff_seconds", 300, 1, 86_400, beside={f"{RESILIENCE}.backoff_seconds": 1}),
    whole(f"{RESILIENCE}.max_retries_failure", ABSENT, 0, 1_000, stored_as=f"{RESILIENCE}.max_restarts"),
    whole(f"{RESILIENCE}.max_retries_preemption", 100, 0, 1_000),
    whole(f"{RESILIENCE}.stop_after_disconnect_seconds", ABSENT, 1, 31_622_400),
]
BY_PATH = {row.path: row for row in ROWS}


def smallest() -> dict[str, Any]:
    return {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}}}


def put(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    at = document
    *above, last = path.split(".")
    for step in above:
        at = at.setdefault(step, {})
    at[last] = value
    return document


def look(document: dict[str, Any], path: str) -> Any:
    at: Any = document
    for step in path.split("."):
        if step not in at:
            return ABSENT
        at = at[step]
    return at


def with_row(row: Row, value: Any) -> dict[str, Any]:
    document = smallest()
    if row.path.startswith("spec.array."):
        put(document, "spec.array.size", 5)
    for path, neighbour in row.beside.items():
        put(document, path, neighbour)
    return document if value is ABSENT else put(document, row.path, copy.deepcopy(value))


def refusal(document: Any) -> InvalidSpecification:
    with pytest.raises(InvalidSpecification) as refused:
        validate(document)
    error = refused.value
    assert error.message == "Failed to validate object"
    assert all(error.detail) and all(error.detail.values())
    json.dumps(error.as_json()).encode()
    assert all(len(path) < 300 and len(sentence) < 400 for path, sentence in error.detail.items())
    return error


def written(path: str) -> str:
    return path_of(path.split("."))


def test_every_field_of_the_models_has_a_row() -> None:
    fields = {".".join((*at, name)) for at, model in parts().items() for name in model.model_fields}
    assert fields == set(BY_PATH)
    assert len(ROWS) == len(BY_PATH)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_field_accepts(row: Row) -> None:
    for value in row.accepts:
        stored = validate(with_row(row, value))
        if value is not ABSENT:
            assert look(stored, row.stored_as or row.path) == value
        assert json.dumps(validate(stored)) == json.dumps(stored), "validating the stored form must not change it"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_field_default(row: Row) -> None:
    document = smallest()
    if row.path.startswith("spec.array."):
        document["spec"]["array"] = {} if row.default is REQUIRED else {"size": 5}
    if row.default is REQUIRED:
        *above, last = row.path.split(".")
        at: Any = document
        for step in above:
            at = at[step]
        at.pop(last, None)
        assert refusal(document).detail[written(row.path)] == "Required"
        return
    stored = look(validate(document), row.path)
    assert stored is ABSENT if row.default is ABSENT else stored == row.default
    if row.default is ABSENT and not row.stored_as:
        assert look(validate(with_row(row, None)), row.path) is ABSENT, "null is what is not asked for"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_field_refuses(row: Row) -> None:
    for value in row.refuses:
        error = refusal(with_row(row, value))
        assert error.code == "VALIDATION_ERROR"
        assert any(path.startswith(written(row.path)) for path in error.detail), (value, error.detail)
        assert len(error.detail) == 1, (value, error.detail)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_misspelt_neighbour_is_named_with_what_was_meant(row: Row) -> None:
    document = with_row(row, row.accepts[0] if row.beside else ABSENT)
    error = refusal(put(document, row.path + "x", 1))
    last = row.path.rsplit(".", 1)[-1]
    assert error.code == "UNKNOWN_FIELD"
    assert error.detail == {written(row.path + "x"): f"Unknown field; did you mean {last}?"}


@pytest.mark.parametrize(
    ("at", "model"), parts().items(), ids=lambda each: ".".join(each) if type(each) is tuple else ""
)
def test_known_but_later_field_is_refused_in_words(at: tuple[str, ...], model: type[BaseModel]) -> None:
    later = model.later  # type: ignore[attr-defined]
    assert not later & set(model.model_fields), "a field that exists is not for later"
    for name in later:
        document = put(with_row(Row(".".join((*at, "x")), None, (), ()), ABSENT), ".".join((*at, name)), 1)
        if at == ("spec", "array"):
            document["spec"]["array"]["size"] = 1
        error = refusal(document)
        assert error.code == "UNKNOWN_FIELD"
        assert "not supported by this version" in error.detail[path_of((*at, name))]


def test_range_sentence_is_the_published_one() -> None:
    error = refusal(put(smallest(), "spec.task_template.time_limit_seconds", 30))
    assert error.as_json()["detail"] == {
        "task_template.time_limit_seconds": "Must be between 60 and 31622400 seconds, got 30"
    }


def test_schema_names_every_field_with_its_description() -> None:
    schema = json_schema()
    json.dumps(schema)
    described = {"Document": schema, **schema["$defs"]}
    for model in parts().values():
        properties = described[model.__name__]["properties"]
        assert set(properties) == set(model.model_fields)
        assert all(each.get("description") for each in properties.values()), model
        assert described[model.__name__]["additionalProperties"] is False
    limit = described["TaskTemplate"]["properties"]["time_limit_seconds"]
    assert {"type": "integer", "minimum": 60, "maximum": 31_622_400} in limit["anyOf"]
