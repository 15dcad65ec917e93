"""The terms of a stored document: resolved once, tolerant of older and newer versions, without the models."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from stado_like.job.spec.validate import validate
from stado_like.job.terms import (
    Ask,
    Dependency,
    Group,
    LimitWarning,
    Terms,
    command_of,
    display_name,
    group_rank,
    terms_of,
)


def submitted(**spec: Any) -> dict[str, Any]:
    template = {"command": "python", "args": ["train.py"], **spec.pop("task_template", {})}
    return {"metadata": {"name": "train"}, "spec": {**spec, "task_template": template}}


def terms(**spec: Any) -> Terms:
    return terms_of(validate(submitted(**spec)))


def test_terms_of_the_smallest_job_are_the_defaults() -> None:
    assert terms() == Terms(
        workspace="default", name="train", labels={}, priority=0, several=False, tasks=1, array_size=0, lane_width=64,
        release_by_end=False, ask=Ask(1000, 1 << 30, 0), command=("python", "train.py"), env={}, cwd="", workdir="",
        restart_policy="OnFailure", on_failure="RestartTask", max_task_failures=0, max_restarts=10,
        max_machine_restarts=20, max_preemptions=None, max_retries_preemption=100, backoff_s=10, max_backoff_s=300,
        time_limit_s=None, ttl_s=60, stop_signal="SIGTERM", stop_grace_s=None, stop_after_disconnect_s=None,
        resident=False, terminates_agent=False, groups=(Group("", 0, 1),),
    )  # fmt: skip


def test_terms_of_a_document_without_its_defaults_are_the_same() -> None:
    """An older version stored fewer fields: what it left out means what it meant then, the default."""
    assert terms_of(submitted()) == terms()
    for lonely in (True, False):
        lifted = submitted(task_template={"resilience": {"backoff_seconds": 600}})
        assert terms_of(validate(lifted) if lonely else lifted).max_backoff_s == 600


def test_terms_of_a_newer_document_pass_over_what_they_do_not_know() -> None:
    newer = copy.deepcopy(validate(submitted()))
    newer["metadata"]["owner"] = "x"
    newer["spec"]["moon_phase"] = {"full": True}
    newer["spec"]["task_template"]["requested_resources"]["gpu_requests"]["colour"] = "red"
    assert terms_of(newer) == terms()


def test_terms_of_everything_asked_for() -> None:
    got = terms(
        priority=7, array={"size": 100, "max_parallel": 4}, max_task_failures=3, cwd="/home/x", workdir="sub",
        exclusive=True, pinned_host="gpu-1", resident=True, terminates_agent=True,
        task_template={
            "env": {"A": "b"}, "restart_policy": "Always", "time_limit_seconds": 60, "stop_grace_seconds": 5,
            "heartbeat_ttl_seconds": 10,
            "requested_resources": {"cpu_cores": 0.5, "memory_bytes": 1 << 20},
            "resilience": {
                "stop_signal": "SIGINT", "max_retries_failure": 1, "max_machine_restarts": 2, "max_preemptions": 3,
                "max_retries_preemption": 4, "backoff_seconds": 5, "max_backoff_seconds": 6,
                "stop_after_disconnect_seconds": 7, "signal_before_limit": {"signal": "SIGUSR1", "seconds": 8},
            },
        },
    )  # fmt: skip
    assert got == Terms(
        workspace="default", name="train", labels={}, priority=7, several=True, tasks=100, array_size=100,
        lane_width=4, release_by_end=True, ask=Ask(500, 1 << 20, 0, True, "gpu-1"), command=("python", "train.py"),
        env={"A": "b"}, cwd="/home/x", workdir="sub", restart_policy="Always", on_failure="RestartTask",
        max_task_failures=3, max_restarts=1, max_machine_restarts=2, max_preemptions=3, max_retries_preemption=4,
        backoff_s=5, max_backoff_s=6, time_limit_s=60, ttl_s=10, stop_signal="SIGINT", stop_grace_s=5,
        stop_after_disconnect_s=7, signal_before_limit=LimitWarning("SIGUSR1", 8), resident=True,
        terminates_agent=True, groups=(Group("", 0, 100),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("array", "several", "tasks", "lane_width", "release_by_end"),
    [
        (None, False, 1, 64, False),
        ({"size": 1}, True, 1, 64, False),
        ({"size": 10_000}, True, 10_000, 64, False),
        ({"size": 10, "max_parallel": 0}, True, 10, 64, False),
        ({"size": 10, "max_parallel": 3}, True, 10, 3, True),
        ({"size": 100, "max_parallel": 100}, True, 100, 100, True),
    ],
)
def test_lanes_follow_the_cap(
    array: dict[str, int] | None, several: bool, tasks: int, lane_width: int, release_by_end: bool
) -> None:
    got = terms(**({"array": array} if array else {}))
    assert (got.several, got.tasks, got.lane_width, got.release_by_end) == (several, tasks, lane_width, release_by_end)
    assert got.array_size == (tasks if several else 0)


def test_fail_job_never_restarts_whatever_the_policy_says() -> None:
    assert terms(on_failure="FailJob", task_template={"restart_policy": "Always"}).restart_policy == "Never"
    assert terms_of(submitted(on_failure="FailJob")).restart_policy == "Never"


def test_display_name_is_name_and_rank() -> None:
    assert display_name(terms(), 0) == "train-0"
    assert display_name(terms(array={"size": 9}), 3) == "train-3"


ENGINE = {"name": "engine", "task_template": {"command": "serve", "env": {"A": "1"}, "heartbeat_ttl_seconds": 10}}
CLIENTS = {
    "name": "client",
    "depends_on": [{"group_name": "engine"}],
    "task_template": {"command": "ask", "restart_policy": "Never", "requested_resources": {"machines": 3}},
}


def grouped(*groups: dict[str, Any], **spec: Any) -> Terms:
    return terms_of({"metadata": {"name": "run"}, "spec": {"task_groups": list(groups), **spec}})


def test_groups_have_ranks_in_the_order_in_which_they_are_listed() -> None:
    got = grouped(ENGINE, CLIENTS, leader_group="client")
    assert got.groups == (Group("engine", 0, 1), Group("client", 1, 3, (Dependency("engine", "Running"),)))
    assert (got.several, got.tasks, got.leader) == (True, 4, 1)
    assert [display_name(got, rank) for rank in range(4)] == [
        "run-engine-0", "run-client-0", "run-client-1", "run-client-2",
    ]  # fmt: skip
    assert [group_rank(got, rank) for rank in range(4)] == [0, 0, 1, 2]
    with pytest.raises(IndexError):
        got.group_of(4)


def test_each_rank_has_the_terms_of_its_own_group() -> None:
    got = grouped(ENGINE, CLIENTS)
    engine, client = got.for_rank(0), got.for_rank(2)
    seen = [(one.command, one.ttl_s, one.restart_policy, one.env) for one in (engine, client)]
    assert seen == [(("serve",), 10, "OnFailure", {"A": "1"}), (("ask",), 60, "Never", {})]
    assert client.ask.apart == "default.run/client" and not engine.ask.apart
    assert client.for_rank(2) is client and (client.tasks, client.groups) == (4, got.groups)
    assert display_name(client, 2) == "run-client-1"


def test_one_group_is_a_several_task_job_and_one_template_is_its_own_rank() -> None:
    assert grouped(ENGINE).several and grouped(ENGINE).tasks == 1
    assert terms().for_rank(0) == terms()


def test_what_one_group_needs_a_placement_for_holds_the_whole_job() -> None:
    wide = {"name": "wide", "task_template": {"command": "x", "requested_resources": {"topology": {"min_nodes": 2}}}}
    got = grouped(ENGINE, wide)
    assert got.held == "Waiting for workers to be created" and not got.shaped
    assert {got.for_rank(rank).held for rank in (0, 1)} == {got.held}


def test_a_service_is_always_started_again() -> None:
    got = terms(lifetime="Service", task_template={"restart_policy": "Never"})
    assert (got.service, got.restart_policy) == (True, "Always")


def test_entry_stands_where_a_word_is_braces() -> None:
    asked = submitted(
        array={"size": 2, "indices": [3, 9], "entries": ["a b", "{}"]},
        task_template={"command": "cp", "args": ["{}", "x{}", "to"]},
    )
    got = terms_of(asked)
    assert [command_of(got, rank) for rank in (0, 1)] == [("cp", "a b", "x{}", "to"), ("cp", "{}", "x{}", "to")]
    assert got.array_indices == (3, 9)
    assert command_of(terms(task_template={"args": ["{}"]}), 0) == ("python", "{}")


def test_thousandths_of_a_core_survive_as_whole_millis() -> None:
    for millis in (1, 3, 29, 333, 1001, 16_001, 65_535_999):
        asked = {"requested_resources": {"cpu_cores": millis / 1000, "memory_bytes": 1}}
        assert terms(task_template=asked).ask.cpu_millis == millis


def test_terms_and_units_are_read_without_pydantic() -> None:
    """The worker, and `stado --help`, must not pay a tenth of a second for models they do not use."""
    program = (
        "import sys, stado_like.job.terms, stado_like.job.spec.units, stado_like.job.spec.validate as v\n"
        "v.read_document('a: 1', 'x')\n"
        "assert not {'pydantic', 'pydantic_core'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
