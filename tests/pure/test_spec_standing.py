"""Every field has one class; what a document asks for in vain is told, and nothing else; the page says what the code
says.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stado_like.job.spec.standing import ACTS, CLASSES, KEPT, LATER, REFUSED, classes, not_yet
from stado_like.job.spec.validate import validate
from tests.pure.spec_rows import ABSENT, As, Row, smallest, with_row
from tests.pure.spec_rows_job import JOB_ROWS
from tests.pure.spec_rows_task import TASK_ROWS
from tests.pure.specification_page import PAGE, page

ROWS = {row.path: row for row in (*JOB_ROWS, *TASK_ROWS)}
BY_PATH = {one.path: one for one in classes()}

MARKED_BY_THE_SPECIFICATION = {
    "task_template.init_containers",
    "task_template.context_bindings",
    "idle_auto_delete",
    "shared_volumes",
    "output_volumes",
    "retry_on_heartbeat_expired",
    "max_heartbeat_retries",
}
REFUSED_HERE = {
    "task_template.identity",
    "task_template.external_accesses",
    "task_template.interactive",
    "task_template.tools",
    "task_template.agent_sandbox",
    "model",
}


def test_page_is_what_the_models_say() -> None:
    assert PAGE.read_text() == page(), "run scripts/specification"


def test_every_field_is_listed_once_with_one_class() -> None:
    paths = [one.path for one in classes()]
    assert [path for path, count in Counter(paths).items() if count > 1] == []
    assert {path.removeprefix("spec.") for path in ROWS} == set(paths)
    assert {one.cls for one in classes()} == set(CLASSES)
    assert [one.path for one in classes() if one.later and one.cls != ACTS] == []


def test_only_what_may_be_is_marked_or_refused() -> None:
    outermost = {
        one.path
        for one in classes()
        if one.cls == KEPT and BY_PATH.get(one.path.rpartition(".")[0].removesuffix("[]"), one).cls != KEPT
    } | {one.path for one in classes() if one.cls == KEPT and "." not in one.path}
    assert outermost == MARKED_BY_THE_SPECIFICATION
    assert {one.path for one in classes() if one.cls == REFUSED} == REFUSED_HERE
    assert all(one.instead for one in classes() if one.cls == REFUSED)


def test_every_field_says_what_it_does_and_nothing_that_its_kind_says() -> None:
    """Type, unit, limits and default stand before the description; written in it too, they would part one day."""
    for one in classes():
        assert one.description and one.description.endswith((".", ")")), one.path
        for word in ("Integer,", "Text,", "Number,", "Map of text", "List of", "default none", "true or false,"):
            assert word not in one.description, one.path


def test_smallest_document_asks_for_nothing_in_vain() -> None:
    assert not_yet(validate(smallest())) == []


def shown_at(path: str) -> str:
    """As a person reads it: below `spec`, without the template's name, lists without their brackets."""
    words = [word.removesuffix("[]") for word in path.split(".")]
    return ".".join(word for word in words if word not in ("spec", "task_template", "task_groups"))


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.path)
def test_not_yet_names_the_field_exactly_when_it_is_set_to_something_else(row: Row) -> None:
    """Each accepted value of each field: told where its class is later, told by value for single words, else silent."""
    one = BY_PATH[row.path.removeprefix("spec.")]
    for value in row.accepts:
        if value is ABSENT:
            continue
        given, kept = (value.given, value.stored) if isinstance(value, As) else (value, value)
        said = not_yet(validate(with_row(row, given)))
        told = [each for each in said if _tells_of(each, row.path)]
        if one.cls == LATER and kept != row.default and not one.part:
            assert told, (row.path, value)
        elif one.cls in (KEPT, REFUSED):
            assert not told, (row.path, value)
        if not row.beside and (kept == row.default or one.cls in (KEPT, REFUSED)):
            assert said == []


def _tells_of(said: str, path: str) -> bool:
    """The field itself, or a part that it stands in."""
    name, at = said.partition(": ")[0], shown_at(path)
    return at == name or at.startswith(name + ".")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"start": "Gang"}, []),
        ({"policy": "Gang"}, []),
        ({"policy": "GangIndependent"}, []),
        ({"start": "Gang", "on_failure": "FailJob"}, []),
        ({"on_failure": "RestartJob"}, []),
        ({"start": "MinAvailable", "min_available": 1}, []),
        ({"lifetime": "Service"}, []),
        ({"shared_volumes": [{"name": "v"}], "max_heartbeat_retries": 3}, []),
    ],
)
def test_how_tasks_start_acts_whichever_word_said_it(spec: dict[str, Any], told: list[str]) -> None:
    document = {"metadata": {"name": "train"}, "spec": {"task_template": {"command": "true"}, **spec}}
    assert not_yet(validate(document)) == told


def test_groups_are_told_together() -> None:
    template = {"command": "true", "isolation": "sandbox", "volumes": [{"mount_path": "/scratch"}]}
    document = {
        "metadata": {"name": "train", "parent": "default.other.1"},
        "spec": {"task_groups": [{"name": name, "task_template": template} for name in ("a", "b")]},
    }
    assert not_yet(validate(document)) == ["volumes", "isolation: sandbox"]


def test_names_that_are_printed_are_not_those_of_other_fields() -> None:
    names = Counter(shown_at(one.path) for one in classes())
    assert [name for name, count in names.items() if name and count > 1] == []
