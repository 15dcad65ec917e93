"""The job's own rows (metadata, spec without the template) of the table that every field is tested against."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tests.pure.spec_rows import ABSENT, REQUIRED, As, Row, flag, part, text, whole

NAMES_REFUSED = ("", "a.b", "-a", "a-", "a b", "a/b", "é", "a\n", "a\tb", "\x1b[31m", "..", "a" * 58, "a" * 10_000)
IDS_REFUSED = ("", "train", "default.train", "default.train.0", "default.train.01", "D.train.1", "a.b.c.1", "a b.c.1")


def words(path: str, default: Any, accepts: tuple[str, ...], refuses: tuple[Any, ...] = (), **more: Any) -> Row:
    wrong: tuple[Any, ...] = (accepts[0].upper(), accepts[0].lower(), "", "x", None, 1, True, [], {})
    return Row(path, default, accepts, (*refuses, *wrong), **more)


def group(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "task_template": {"command": "true"}, **more}


GROUPED: dict[str, Any] = {"spec.task_template": ABSENT, "spec.task_groups": [group("a"), group("b")]}
WAITING: dict[str, Any] = {
    "spec.task_template": ABSENT,
    "spec.task_groups": [group("a", depends_on=[{"group_name": "b"}]), group("b")],
}
TWO: dict[str, Any] = {"spec.array.size": 2}
IDLE = {
    "enabled": True, "idle_timeout": 600, "grace_period_at_start": 0, "warn_before_kill": 60,
    "thresholds": {"gpu_utilization": 5}, "bypass_during_hours": "22:00-06:00 Europe/Berlin",
}  # fmt: skip
NO_LIST: tuple[Any, ...] = ("x", 5, True, {}, None, [1], [None], ["x"])


def volume(path: str, retain: bool) -> list[Row]:
    beside = {f"{path}[].name": "v"}
    return [
        Row(path, [], ([], [{"name": "v", "retain": not retain}]), (*NO_LIST, [{"name": "v"}] * 101)),
        text(f"{path}[].name", REQUIRED, ("v", "a b"), ("", "x" * 254), beside=beside),
        text(f"{path}[].mount_path", ABSENT, ("/data",), ("", "data"), beside=beside),
        whole(f"{path}[].size_bytes", ABSENT, 0, 1 << 60, beside=beside),
        flag(f"{path}[].retain", retain, beside=beside),
    ]


JOB_ROWS: list[Row] = [
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
    text("metadata.parent", ABSENT, ("default.train.1", "a-1.x_-y.12"), IDS_REFUSED),
    part("spec.array", ABSENT, {"size": 1, "max_parallel": 0}),
    whole("spec.array.size", REQUIRED, 1, 10_000, beside={"spec.array": {}}),
    whole("spec.array.max_parallel", 0, 0, 10_000, beside={"spec.array.size": 10_000}),
    replace(
        whole("spec.array.block", ABSENT, 1, 128, beside={"spec.array.size": 10_000}), default=64
    ),  # (None asks for the default)
    Row(
        "spec.array.indices",
        ABSENT,
        ([0, 1], [1, 3], [7, (1 << 31) - 1]),
        ([], [-1, 0], [0, 1 << 31], [1, 1], [3, 2], [1], [1, 2, 3], [0, True], ["0", 1], [0.0, 1], "0-1", {}, 2),
        TWO,
    ),
    Row(
        "spec.array.entries",
        ABSENT,
        (["", ""], ["a\n", "é {}"], ["x" * 122_880, "y"]),
        ([], ["a"], ["a", "b", "c"], ["a", 1], ["a", None], ["a", "\0"], ["x" * 122_881, "y"], "ab", {}, 2),
        TWO,
    ),
    words("spec.start", "Independent", ("Independent", "Gang"), ("together",)),
    whole(
        "spec.min_available",
        ABSENT,
        1,
        10_000,
        beside={
            "spec.start": "MinAvailable",
            "spec.task_template.requested_resources": {"gpu_requests": {"count": 20_000}},
        },
    ),
    words("spec.on_failure", "RestartTask", ("RestartTask", "RestartJob", "FailJob"), ("Fail",)),
    words("spec.lifetime", "Batch", ("Batch", "Service"), ("Daemon",)),
    words("spec.policy", "Independent", ("Independent", "Gang", "GangIndependent"), ("FailJob",)),
    whole("spec.max_task_failures", 0, 0, 10_000),
    text(
        "spec.checkpoint_from",
        ABSENT,
        ("default.train.1", "a-b.Train_2.12"),
        ("", "train", "train.1", "default/train.1", "default.train", "default.train.0", "default.a.b.1", "d.train.1 "),
        beside={"spec.task_template.checkpoint.dir": "state"},
    ),
    text("spec.cwd", ABSENT, ("/", "/home/a b/ü", "/" + "a" * 4094), ("", "relative", "./x", "/" + "a" * 4095)),
    text("spec.workdir", ABSENT, ("/data", "sub/dir", ".", "a..b"), ("", "..", "a/../b", "a" * 4096)),
    flag("spec.exclusive"),
    text(
        "spec.pinned_host", ABSENT, ("gpu-1", "host.example.org", "a" * 255), ("", "a b", "a/b", ".", "-a", "a" * 256)
    ),
    flag("spec.resident"),
    flag("spec.terminates_agent"),
    Row(
        "spec.deadline",
        ABSENT,
        (
            "2026-01-31T12:00:00Z",
            As("2026-01-31 12:00:00+02:00", "2026-01-31T10:00:00Z"),
            As("2026-01-31T12:00Z", "2026-01-31T12:00:00Z"),
            As("2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123Z"),
        ),
        ("2026-01-31T12:00:00", "2026-01-31", "2026-02-30T12:00:00Z", "tomorrow", "", 1_769_860_800, True, [], {}),
    ),
    whole("spec.scheduling_timeout_seconds", ABSENT, 1, 31_622_400),
    Row("spec.after", [], ([], [{"job": "other", "state": "Ended"}]), (*NO_LIST, [{"job": "x"}] * 101)),
    text(
        "spec.after[].job",
        REQUIRED,
        ("other", "other.2", "ws/other", "ws/other.2", "ws.other.2"),
        ("", "train", "default/train", "/other", "a b", "other.0", "a.b.c", "WS/other"),
        beside={"spec.after[].job": "other"},
    ),
    Row(
        "spec.after[].state",
        "Completed",
        (
            "Completed",
            "Failed",
            "Ended",
            As("afterok", "Completed"),
            As("afternotok", "Failed"),
            As("afterany", "Ended"),
        ),
        ("completed", "after", "", None, 1),
        {"spec.after[].job": "other"},
    ),
    text("spec.bundle", ABSENT, ("0" * 64, "0123456789abcdef" * 4), ("", "0" * 63, "0" * 65, "A" * 64)),
    Row(
        "spec.collect",
        [],
        ([], ["out"], ["/abs/x", "a/b.txt"]),
        ("x", 5, {}, None, [1], [""], ["../x"], ["a/../../b"], ["a"] * 101),
    ),
    flag("spec.slurm_variables"),
    text("spec.leader_group", ABSENT, ("a", "b"), (*NAMES_REFUSED, "c"), beside=GROUPED),
    text("spec.complete_with", ABSENT, ("a", "b"), (*NAMES_REFUSED, "c"), beside=GROUPED),
    Row("spec.task_groups", [], (ABSENT,), (*NO_LIST, [group(f"g{n}") for n in range(101)]), GROUPED),
    text("spec.task_groups[].name", REQUIRED, ("c", "W_1", "a" * 51), NAMES_REFUSED, beside=GROUPED),
    Row("spec.task_groups[].task_template", REQUIRED, (ABSENT,), ("x", 5, True, [], None), GROUPED),
    Row(
        "spec.task_groups[].depends_on",
        [],
        ([], [{"group_name": "b", "condition": "Healthy"}]),
        (*NO_LIST, [{"group_name": "b"}] * 101),
        GROUPED,
    ),
    text("spec.task_groups[].depends_on[].group_name", REQUIRED, ("b",), (*NAMES_REFUSED, "a", "c"), beside=WAITING),
    words("spec.task_groups[].depends_on[].condition", "Running", ("Running", "Healthy"), ("Ended",), beside=WAITING),
    Row(
        "spec.model",
        ABSENT,
        (As(None, ABSENT),),
        ({}, {"name": "llama"}, {"name": "llama", "mount_path": "/model", "engine": True}, "llama", False, []),
        code="MODELS_NOT_SERVED",
    ),
    *volume("spec.shared_volumes", retain=False),
    *volume("spec.output_volumes", retain=True),
    part("spec.idle_auto_delete", ABSENT, IDLE),
    flag("spec.idle_auto_delete.enabled", beside={"spec.idle_auto_delete": {}}),
    *(
        whole(f"spec.idle_auto_delete.{name}", ABSENT, 0, 31_622_400, beside={"spec.idle_auto_delete": {}})
        for name in ("idle_timeout", "grace_period_at_start", "warn_before_kill")
    ),
    Row(
        "spec.idle_auto_delete.thresholds",
        {},
        ({}, {"gpu_utilization": 5, "cpu": 0.5}),
        ({"": 1}, {"x": "5"}, {"x": None}, {"x": True}, {"x": -1}, {"x": math.nan}, {"x": math.inf}, {1: 1}, [], None),
        {"spec.idle_auto_delete": {}},
    ),
    text(
        "spec.idle_auto_delete.bypass_during_hours",
        ABSENT,
        ("22:00-06:00 Europe/Berlin", "00:00-24:00 UTC", "09:30-17:00 America/Argentina/Buenos_Aires"),
        (
            "",
            "22:00-06:00",
            "22-06 UTC",
            "25:00-06:00 UTC",
            "22:00-24:30 UTC",
            "22:60-06:00 UTC",
            "22:00-06:00 Mars/Olympus",
            "22:00-06:00 Europe",
            "22:00-06:00 ../../etc/passwd",
            "22:00-06:00 /etc/localtime",
        ),
        beside={"spec.idle_auto_delete": {}},
    ),
    flag("spec.retry_on_heartbeat_expired"),
    whole("spec.max_heartbeat_retries", 0, 0, 1_000),
]
