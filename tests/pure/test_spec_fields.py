"""Every field of the specification against one table: accepts, default, bounds, wrong types, a misspelt neighbour.

A field of the models without a row fails; so does a row without a field.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from stado_like.errors import InvalidSpecification
from stado_like.job.spec.complaints import parts, path_of
from stado_like.job.spec.validate import validate
from tests.pure.spec_rows import ABSENT, REQUIRED, As, Row, around, look, put, smallest, steps, with_row
from tests.pure.spec_rows_job import JOB_ROWS
from tests.pure.spec_rows_task import TASK_ROWS

ROWS = [*JOB_ROWS, *TASK_ROWS]
BY_PATH = {row.path: row for row in ROWS}


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
    return path_of(steps(path))


def fields_of_the_models() -> set[str]:
    """A group's template has the job's template's fields: those have their rows once."""
    return {
        ".".join((*at, name))
        for at, model in parts().items()
        for name in model.model_fields
        if at[:3] != ("spec", "task_groups[]", "task_template")
    }


def test_every_field_of_the_models_has_a_row() -> None:
    assert fields_of_the_models() == set(BY_PATH)
    assert len(ROWS) == len(BY_PATH)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_field_accepts(row: Row) -> None:
    for value in row.accepts:
        given, kept = (value.given, value.stored) if isinstance(value, As) else (value, value)
        stored = validate(with_row(row, given))
        if value is not ABSENT:
            assert look(stored, row.stored_as or row.path) == kept
        assert json.dumps(validate(stored)) == json.dumps(stored), "validating the stored form must not change it"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_field_default(row: Row) -> None:
    if row.default is REQUIRED:
        error = refusal(put(around(row), row.path, ABSENT))
        assert error.detail[written(row.path)].startswith("Required")
        return
    above = row.path.rpartition(".")[0]
    alone = not above or look(validate(smallest()), above) is not ABSENT
    stored = look(validate(smallest() if alone else put(around(row), row.path, ABSENT)), row.path)
    assert stored is ABSENT if row.default is ABSENT else stored == row.default
    if row.default is ABSENT and not row.stored_as and not (alone and row.beside):
        assert look(validate(with_row(row, None)), row.path) is ABSENT, "null is what is not asked for"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_field_refuses(row: Row) -> None:
    for value in row.refuses:
        error = refusal(with_row(row, value))
        assert error.code == row.code
        assert any(path.startswith(written(row.path)) for path in error.detail), (value, error.detail)
        assert len(error.detail) == 1, (value, error.detail)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.path)
def test_misspelt_neighbour_is_named_with_what_was_meant(row: Row) -> None:
    document = with_row(row, row.accepts[0] if row.beside else ABSENT)
    error = refusal(put(document, row.path + "x", 1))
    last = row.path.rsplit(".", 1)[-1]
    assert error.code == "UNKNOWN_FIELD"
    assert error.detail == {written(row.path + "x"): f"Unknown field; did you mean {last}?"}


def test_range_sentence_is_the_published_one() -> None:
    error = refusal(put(smallest(), "spec.task_template.time_limit_seconds", 30))
    assert error.as_json()["detail"] == {
        "task_template.time_limit_seconds": "Must be between 60 and 31622400 seconds, got 30"
    }
