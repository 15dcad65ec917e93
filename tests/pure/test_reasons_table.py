"""The tables of the published run states, row by row: each sentence can be said word for word, and what is said today
has a story or a test that says it.

A row: `says` the sentence with its placeholders, `reads` it filled in, `by` which of our sentences makes that,
`states` where it is shown, and one of `now` (the stories and tests that show it), `later` (the part of the product it
comes with) or `excepted` (features that this product does not have).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from stado_like.job import budget, reasons, reasons_placement, rollup
from stado_like.job.budget import OUTCOME_OF, Ended
from stado_like.job.records import Budgets
from stado_like.job.spec import limits
from stado_like.job.spec.validate import validate
from stado_like.job.states import IRIS_VIEW, TERMINAL_JOB, TERMINAL_TASK, Cause, Decision, JobState, TaskState
from stado_like.job.terms import terms_of
from stado_like.reading.events import REASON_CODES
from stado_like.reading.shapes import TaskView, task_json

TESTS = Path(__file__).resolve().parent.parent
LATER = {"container", "placement", "drives", "network"}
EXCEPTED = {
    "node network",
    "external port",
    "identity",
    "model server",
    "agent sandbox",
    "tool gateway",
    "interactive token",
}
TABLES: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in sorted((TESTS / "data" / "reasons").glob("*.yaml"))
}
SENTENCES = [
    pytest.param(row, id=f"{table}: {row['says']}"[:100])
    for table, content in TABLES.items()
    for row in content.get("rows", ())
]
ROWS = [
    pytest.param(row, id=f"{table}/{part} {number}")
    for table, content in TABLES.items()
    for part in content
    if part != "table" and table != "iris"
    for number, row in enumerate(content[part])
]


def _pattern(says: str) -> re.Pattern[str]:
    return re.compile(re.sub("<[^>]+>", ".+", re.escape(says)))


@cache
def _story(name: str) -> Any:
    return yaml.safe_load((TESTS / "data" / "stories" / f"{name}.yaml").read_text())


def _lines(name: str) -> list[list[Any]]:
    """Every `[state, reason, …]` of a story: of its histories, and of what it shows in between."""
    story = _story(name)
    shown = [story.get("shows", {}), *(step.get("shows", {}) for step in story.get("steps", ()))]
    looks = [line for one in shown for line in one.get("tasks", {}).values()]
    looks += [one["job"] for one in shown if "job" in one]
    return [*(line for lines in story["tasks"].values() for line in lines), *story["history"], *looks]


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS.parent / path).read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


# ---- every row


@pytest.mark.parametrize("row", ROWS)
def test_row_says_when_it_is_said(row: dict[str, Any]) -> None:
    given = [name for name in ("now", "later", "excepted") if name in row]
    if "codes" not in row and "policy" not in row:
        assert len(given) == 1, "one of now, later, excepted"
    assert row.get("later", "container") in LATER
    assert row.get("excepted", "identity") in EXCEPTED
    for name in row.get("now", ()):
        if name.startswith("tests/"):
            path, _, function = name.partition("::")
            assert function in _functions(path), f"no such test: {name}"
        else:
            assert (TESTS / "data" / "stories" / f"{name}.yaml").exists(), f"no such story: {name}"


@pytest.mark.parametrize("row", SENTENCES)
def test_sentence_is_made_word_for_word(row: dict[str, Any]) -> None:
    if "excepted" in row:
        assert "by" not in row
        return
    reads = row.get("reads", row["says"])
    assert _pattern(row["says"]).fullmatch(reads)
    if "by" not in row:
        assert row["says"] == "<a reason given by a person>"
        return
    name, *values = row["by"]
    made = getattr(reasons, name, None) or getattr(reasons_placement, name)
    named = values.pop() if values and isinstance(values[-1], dict) else {}
    assert (made if isinstance(made, str) else made(*values, **named)) == reads
    if "code" in row:
        assert REASON_CODES[reads] == row["code"]


@pytest.mark.parametrize("row", [one for one in SENTENCES if "now" in one.values[0]])  # type: ignore[operator]
def test_story_says_it_in_that_state(row: dict[str, Any]) -> None:
    for name in row["now"]:
        if name.startswith("tests/") or "states" not in row:
            continue
        said = {line[0] for line in _lines(name) if _pattern(row["says"]).fullmatch(line[1])}
        assert said & set(row["states"]), f"{name} never says {row['says']!r} in {row['states']}"


# ---- states, liveness, restarts, exits


@pytest.mark.parametrize(
    ("kind", "row"), [(kind, row) for kind in ("runs", "workers") for row in TABLES["states"][kind]]
)
def test_state_exists_and_its_story_passes_through_it(kind: str, row: dict[str, Any]) -> None:
    if kind == "runs":
        assert (JobState(row["state"]) in TERMINAL_JOB) is row["terminal"]
    else:
        assert TaskState(row["state"])
    for name in row.get("now", ()):
        story = _story(name)
        lines = story["history"] if kind == "runs" else [line for told in story["tasks"].values() for line in told]
        assert row["state"] in {line[0] for line in lines}


def test_states_are_all_there() -> None:
    runs = {row["state"] for row in TABLES["states"]["runs"]}
    workers = {row["state"] for row in TABLES["states"]["workers"]}
    ours = {JobState.UNSCHEDULABLE.value}
    assert {state.value for state in JobState} - runs == ours
    more = {TaskState.ASSIGNED, TaskState.PREEMPTED, TaskState.UNSCHEDULABLE, TaskState.COSCHED_FAILED}
    assert {state.value for state in TaskState} - workers == {state.value for state in more}


@pytest.mark.parametrize("row", TABLES["liveness"]["rows"], ids=lambda row: f"{row['from']} to {row['to']}")
def test_liveness_goes_from_one_state_to_the_next(row: dict[str, Any]) -> None:
    for name in row["now"]:
        for told in _story(name)["tasks"].values():
            pairs = [(before[0], after[0], after[1]) for before, after in pairwise(told)]
            if (row["from"], row["to"], row["says"]) in pairs:
                break
        else:
            pytest.fail(f"{name} never goes from {row['from']} to {row['to']} with {row['says']!r}")


@pytest.mark.parametrize("row", TABLES["restarts"]["causes"], ids=lambda row: row["cause"])
def test_cause_of_a_restart_spends_what_the_table_says(row: dict[str, Any]) -> None:
    assert Cause(row["cause"]) in OUTCOME_OF
    for name in row.get("now", ()):
        if name.startswith("tests/"):
            continue
        spent = {
            line[3]["restart"]["budget"]
            for told in _story(name)["tasks"].values()
            for line in told
            if len(line) > 3 and line[2] == row["cause"]
        }
        assert spent == {row["spends"]}


def test_causes_of_restarts_are_all_there() -> None:
    told = {row["cause"] for row in TABLES["restarts"]["causes"]}
    final = {Cause.NONE, Cause.TIME_LIMIT, Cause.REQUESTED, Cause.UNDELIVERED}
    assert {cause.value for cause in Cause} - told <= {cause.value for cause in final} | {"unschedulable"}


@pytest.mark.parametrize("row", TABLES["exit-codes"]["codes"], ids=lambda row: f"{row['codes']} {row['state']}")
def test_exit_code_leads_to_the_state(row: dict[str, Any]) -> None:
    for name in row["now"]:
        if name.startswith("tests/"):
            continue
        lines = [line for told in _story(name)["tasks"].values() for line in told]
        assert any(line[0] == row["state"] and _pattern(row["says"]).fullmatch(line[1]) for line in lines)


# ---- Iris


@pytest.mark.parametrize("row", TABLES["iris"]["states"], ids=lambda row: row["state"])
def test_state_of_iris_is_shown_as_it_says(row: dict[str, Any]) -> None:
    for name in row["ours"]:
        state = TaskState(name)
        shown = task_json(TaskView(rank=0, name="t-0", state=state, reason=""))["iris"]
        assert shown == {
            "state": f"TASK_STATE_{row['state']}",
            "number": row["number"],
            "shown": row["shown"],
            "colour": row["colour"],
        }
        assert (state in TERMINAL_TASK) is row["terminal"]
    assert {state.value for state, view in IRIS_VIEW.items() if view.number == row["number"]} == set(row["ours"])


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ("SUCCEEDED", Cause.NONE),
        ("FAILED", Cause.FAILURE),
        ("KILLED", Cause.REQUESTED),
        ("WORKER_FAILED", Cause.MACHINE_LOST),
        ("PREEMPTED", Cause.PREEMPTED),
    ],
)
def test_state_of_iris_is_retried_where_it_says_so(state: str, cause: Cause) -> None:
    row = next(row for row in TABLES["iris"]["states"] if row["state"] == state)
    terms = terms_of(validate({"metadata": {"name": "t"}, "spec": {"task_template": {"command": "true"}}}))
    following = budget.decide(Ended(cause, "why"), terms, Budgets())
    assert (following.decision is Decision.RETRY) is row["retriable"]


def test_states_of_iris_are_all_there() -> None:
    assert {view.number for view in IRIS_VIEW.values()} == {row["number"] for row in TABLES["iris"]["states"]}


@pytest.mark.parametrize("row", TABLES["iris"]["jobs"], ids=lambda row: row["state"])
def test_job_state_of_iris_follows_its_rules_in_their_order(row: dict[str, Any]) -> None:
    spec = {"task_template": {"command": "true"}, "array": {"size": len(row["tasks"])}}
    spec["max_task_failures"] = row.get("max_task_failures", 0)
    terms = terms_of(validate({"metadata": {"name": "t"}, "spec": spec}))
    counts = Counter(TaskState(state) for state in row["tasks"])
    assert rollup.iris_job_state(terms, counts) == row["state"]


def test_budgets_of_iris_have_their_fields_and_defaults() -> None:
    rows = {row["budget"]: row for row in TABLES["iris"]["budgets"]}
    assert rows["failure"]["default"] == limits.DEFAULT_MAX_RESTARTS
    assert rows["preemption"]["default"] == limits.DEFAULT_MAX_RETRIES_PREEMPTION
    assert {"failures", "machine", "preemptions"} <= set(Budgets.__slots__)
