"""What an editor is given: whatever is accepted fits the JSON Schema, and what only a misspelling would need does not.

The schema cannot say everything (two fields that contradict each other, bytes of UTF-8): it may take more than is
accepted, never less.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from stado_like.job.spec.complaints import parts
from stado_like.job.spec.standing import CLASSES, classes
from stado_like.job.spec.validate import json_schema
from tests.pure.spec_rows import ABSENT, As, Row, put, smallest, with_row
from tests.pure.spec_rows_job import JOB_ROWS
from tests.pure.spec_rows_task import TASK_ROWS

ROWS = [*JOB_ROWS, *TASK_ROWS]


@cache
def checker() -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed here")
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_whatever_is_accepted_fits_the_schema(row: Row) -> None:
    for value in row.accepts:
        document = with_row(row, value.given if isinstance(value, As) else value)
        assert [f"{error.json_path}: {error.message[:200]}" for error in checker().iter_errors(document)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_a_misspelt_neighbour_does_not_fit_the_schema(row: Row) -> None:
    document = put(with_row(row, row.accepts[0] if row.beside else ABSENT), row.path + "x", 1)
    assert not checker().is_valid(document)


def test_wrong_kinds_and_bounds_do_not_fit_the_schema() -> None:
    assert checker().is_valid(smallest())
    for path, value in (
        ("spec.priority", 1_001),
        ("spec.priority", "5"),
        ("spec.start", "gang"),
        ("spec.resident", "yes"),
        ("spec.array.size", 0),
        ("spec.model", {"name": "llama"}),
        ("spec.task_template.identity", True),
        ("spec.task_template.time_limit_seconds", 30),
        ("spec.task_template.args", [1]),
        ("metadata.name", "a.b"),
    ):
        assert not checker().is_valid(put(smallest(), path, value)), path


def test_every_field_has_its_description_and_its_class() -> None:
    schema = json_schema()
    json.dumps(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    described = {"Document": schema, **schema["$defs"]}
    told = {(one.path.rpartition(".")[2], one.cls) for one in classes()}
    for model in set(parts().values()):
        properties = described[model.__name__]["properties"]
        assert set(properties) == set(model.model_fields)
        assert described[model.__name__]["additionalProperties"] is False
        for name, each in properties.items():
            assert each["description"].partition(".")[2], name
            assert each["x-stado"]["class"] in CLASSES
            assert (name, each["x-stado"]["class"]) in told
    limit = described["TaskTemplate"]["properties"]["time_limit_seconds"]
    assert {"type": "integer", "minimum": 60, "maximum": 31_622_400} in limit["anyOf"]
    assert limit["description"].startswith("Integer, seconds, 60 to 31622400, default none. ")
    start = described["Spec"]["properties"]["start"]
    assert start["enum"] == ["Gang", "MinAvailable", "Independent"]
    assert start["x-stado"] == {"class": "acts"}
