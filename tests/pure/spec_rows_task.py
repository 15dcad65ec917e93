"""The template's rows of the table that every field of the specification is tested against."""

from __future__ import annotations

import math

from stado_like.job.spec import limits
from tests.pure.spec_rows import ABSENT, NOT_INTEGERS, REQUIRED, Row, part, text, whole

BOTH = {"cpu_cores": 1, "memory_bytes": 1 << 30}
RESOURCES = "spec.task_template.requested_resources"
RESILIENCE = "spec.task_template.resilience"
STORED_RESOURCES = {**BOTH, "gpu_requests": {"count": 0}}
STORED_RESILIENCE = {
    "stop_signal": "SIGTERM", "max_restarts": 10, "max_machine_restarts": 20, "backoff_seconds": 10,
    "max_backoff_seconds": 300, "max_retries_preemption": 100,
}  # fmt: skip


TASK_ROWS: list[Row] = [
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
