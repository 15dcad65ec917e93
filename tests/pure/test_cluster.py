"""What the operators of a cluster chose: its bounds, what a machine's own word does to it, when it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from stado_like.job.cluster import Cluster, leaves_restarts_open


@pytest.mark.parametrize(
    ("cluster", "given", "most_given", "graces"),
    [
        (Cluster(), None, None, (30, 3600)),
        (Cluster(stop_grace_seconds=60), None, None, (60, 3600)),
        (Cluster(stop_grace_seconds=60), 5, None, (5, 3600)),
        (Cluster(max_stop_grace_seconds=20), None, None, (20, 20)),
        (Cluster(max_stop_grace_seconds=20), 40, None, (20, 20)),
        (Cluster(max_stop_grace_seconds=20), 40, 100, (40, 100)),
        (Cluster(stop_grace_seconds=60, max_stop_grace_seconds=90), None, 10, (10, 10)),
    ],
)
def test_machine_is_told_first_and_the_ceiling_holds(
    cluster: Cluster, given: int | None, most_given: int | None, graces: tuple[int, int]
) -> None:
    assert cluster.graces(given, most_given) == graces


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({}, []),
        ({"max_restarts": 0, "max_machine_restarts": 1000, "stop_grace_seconds": 1, "max_stop_grace_seconds": 1}, []),
        ({"max_restarts": -1}, ["max_restarts"]),
        ({"max_restarts": 1001, "stop_grace_seconds": 0}, ["max_restarts", "stop_grace_seconds"]),
        ({"max_stop_grace_seconds": 86_401}, ["max_stop_grace_seconds"]),
        ({"stop_grace_seconds": 31, "max_stop_grace_seconds": 30}, ["stop_grace_seconds"]),
    ],
)
def test_values_out_of_bounds_are_named(values: dict[str, int], wrong: list[str]) -> None:
    assert list(Cluster(**values).wrong()) == wrong  # type: ignore[arg-type]


BOTH = {"task_template": {"resilience": {"max_restarts": 1, "max_machine_restarts": 0}}}


@pytest.mark.parametrize(
    ("spec", "is_open"),
    [
        ({"task_template": {}}, True),
        ({"task_template": {"resilience": {"max_restarts": 1}}}, True),
        ({"task_template": {"resilience": {"max_machine_restarts": 1}}}, True),
        (BOTH, False),
        ({"task_template": {"resilience": {"max_retries_failure": 0, "max_machine_restarts": 0}}}, False),
        ({"task_template": {"resilience": {"max_restarts": None, "max_machine_restarts": 0}}}, True),
        ({"task_groups": [BOTH, BOTH]}, False),
        ({"task_groups": [BOTH, {"task_template": {}}]}, True),
        ({"task_groups": "x", "task_template": 3}, True),
        (None, False),
    ],
)
def test_it_is_asked_only_where_a_document_leaves_it_something(spec: Any, is_open: bool) -> None:
    assert leaves_restarts_open({"spec": spec}) is is_open
