"""The stored form: complete, plain JSON, and itself when it is submitted again, whatever the document was made of."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stado_like.errors import InvalidSpecification
from stado_like.job.spec.standing import not_yet
from stado_like.job.spec.validate import Defaults, read_document, validate
from tests.pure.spec_rows import ABSENT, As, Row, put, smallest
from tests.pure.spec_rows_job import JOB_ROWS
from tests.pure.spec_rows_task import TASK_ROWS

SMALL = 4_000  # characters; the largest values of a row are tried by themselves
CHOICES = [
    (row, value)
    for row in (*JOB_ROWS, *TASK_ROWS)
    for value in ((one.given if isinstance(one, As) else one) for one in row.accepts)
    if value is not ABSENT and len(repr(value)) < SMALL
]


def built(choices: list[tuple[Row, Any]]) -> dict[str, Any]:
    """The rows' values together in one document, with what each of them needs beside it; later ones win."""
    document = smallest()
    for row, value in choices:
        for path, neighbour in row.beside.items():
            put_where_it_can(document, path, neighbour)
        put_where_it_can(document, row.path, value)
    return document


def put_where_it_can(document: dict[str, Any], path: str, value: Any) -> None:
    try:
        put(document, path, copy.deepcopy(value))
    except (AttributeError, KeyError, TypeError):
        pass  # another row has put something else than a mapping there: that is a document too


@settings(max_examples=300)
@given(st.lists(st.sampled_from(CHOICES), min_size=1, max_size=6), st.booleans())
def test_any_mixture_of_accepted_values_is_stored_for_good_or_refused_in_full(
    choices: list[tuple[Row, Any]], operators: bool
) -> None:
    document = built(choices)
    before = copy.deepcopy(document)
    try:
        stored = validate(document, Defaults(max_restarts=1, max_machine_restarts=2) if operators else None)
    except InvalidSpecification as refused:
        assert refused.detail
        assert all(refused.detail.values())
        assert document == before, "validation changes nothing"
        return
    assert document == before, "validation changes nothing"
    text = json.dumps(stored, allow_nan=False)
    again = validate(read_document(text, "stored.json"))
    assert json.dumps(again) == text
    assert not_yet(again) == not_yet(stored)


def test_stored_form_of_the_smallest_document() -> None:
    """Written out once, so that a change of any default is seen."""
    assert validate(smallest()) == {
        "metadata": {"name": "train", "labels": {}, "workspace": "default"},
        "spec": {
            "priority": 0,
            "start": "Independent",
            "on_failure": "RestartTask",
            "lifetime": "Batch",
            "policy": "Independent",
            "max_task_failures": 0,
            "after": [],
            "collect": [],
            "slurm_variables": False,
            "exclusive": False,
            "resident": False,
            "terminates_agent": False,
            "task_template": {
                "pull_policy": "IfNotPresent",
                "command": "true",
                "args": [],
                "env": {},
                "requested_resources": {
                    "cpu_cores": 1,
                    "memory_bytes": 1 << 30,
                    "node_fraction": 0,
                    "cpu_burst": False,
                    "gpu_requests": {
                        "count": 0,
                        "models": [],
                        "healthy_only": False,
                        "min_per_machine": 0,
                        "policy": "BestEffort",
                        "ids": [],
                    },
                    "machines": 0,
                    "placement": "Any",
                },
                "restart_policy": "OnFailure",
                "volumes": [],
                "datavolume_refs": [],
                "secret_refs": [],
                "configs": [],
                "external_accesses": [],
                "heartbeat_ttl_seconds": 60,
                "isolation": "standard",
                "identity": False,
                "init_containers": [],
                "context_bindings": [],
                "resilience": {
                    "stop_signal": "SIGTERM",
                    "max_restarts": 10,
                    "max_machine_restarts": 20,
                    "backoff_seconds": 10,
                    "max_backoff_seconds": 300,
                    "max_retries_preemption": 100,
                },
            },
            "task_groups": [],
            "shared_volumes": [],
            "output_volumes": [],
            "retry_on_heartbeat_expired": False,
            "max_heartbeat_retries": 0,
        },
    }
